"""Where a worker's work comes from over HTTP: measure's JobSource, spoken to a tilewright server."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, TypeVar

import httpx

from ..measure.health_messages import HealthReport, HealthUpdate
from ..measure.messages import (
    PROTOCOL,
    Drain,
    Lease,
    LeaseLost,
    LeaseUpdate,
    MeasureResult,
    MessageError,
    NameRetired,
    NotATilewright,
    Registration,
    SourceError,
    SourceRefused,
    SourceUnreachable,
    Superseded,
    Unauthorized,
    VersionRefused,
    WorkerHello,
)
from .traces import trace_id_of
from .transport import ApiError, Transport
from .worker_logs import log

M = TypeVar("M", Registration, Lease, LeaseUpdate, HealthUpdate)

DRAIN_HEADER = "Tilewright-Worker"
"""Of an answer without work: `drain` tells the worker to end."""

_BY_CODE: dict[str, type[SourceError]] = {
    "token-needed": Unauthorized,
    "token-wrong": Unauthorized,
    "scope-missing": Unauthorized,
    "superseded": Superseded,
    "name-retired": NameRetired,
    "lease-lost": LeaseLost,
    "conflict": LeaseLost,
    "protocol-refused": VersionRefused,
}


class WorkerClient:
    """A JobSource. `register` comes first: the calls after it carry the worker's id and session."""

    def __init__(self, transport: Transport) -> None:
        self._transport = transport
        self._identity: dict[str, Any] = {}
        self._traces: dict[str, str] = {}

    def register(self, hello: WorkerHello) -> Registration:
        answer = self._post("/v1/workers", hello.to_json())
        registration = self._read(Registration, answer)
        self._identity = {
            "protocol": PROTOCOL,
            "worker": registration.worker,
            "session": hello.session,
        }
        return registration

    def lease(self, max_items: int, wait_seconds: float) -> Lease | None:
        body = {**self._identity, "max_items": max_items, "wait_seconds": wait_seconds}
        answer = self._answer("/v1/leases", body, timeout=self._transport.timeout + wait_seconds)
        if answer.status_code == 204:
            if answer.headers.get(DRAIN_HEADER) == "drain":
                raise Drain
            return None
        granted = self._read(Lease, answer.json())
        self._traces = {item.item: item.traceparent for item in granted.items if item.traceparent}
        return granted

    def start(self, lease: str, item: str, attempt: int) -> None:
        log.debug("starts", extra=self._ids(lease, item))
        self._call(lease, "start", {"item": item, "attempt": attempt}, self._traces.get(item))

    def renew(self, lease: str) -> LeaseUpdate:
        return self._read(LeaseUpdate, self._call(lease, "renew", {}))

    def settle(self, lease: str, results: Sequence[MeasureResult]) -> LeaseUpdate:
        said = {"results": [result.to_json() for result in results]}
        for result in results:
            came = f"{result.seconds:.6g} s" if result.failure is None else result.failure.kind
            log.debug("settles: %s", came, extra=self._ids(lease, result.item))
        trace = next((self._traces[r.item] for r in results if r.item in self._traces), None)
        return self._read(LeaseUpdate, self._call(lease, "settle", said, trace))

    def release(self, lease: str) -> None:
        self._call(lease, "release", {})

    def health(self, report: HealthReport) -> HealthUpdate:
        path = f"/v1/workers/{self._identity['worker']}:health"
        return self._read(HealthUpdate, self._post(path, {**self._identity, "report": report.to_json()}))

    def leave(self) -> None:
        """Say that this worker ends, so that it is offline at once. No effect before `register`."""
        if self._identity:
            self._post(f"/v1/workers/{self._identity['worker']}:leave", self._identity)

    def _ids(self, lease: str, item: str) -> dict[str, str]:
        trace = trace_id_of(self._traces.get(item, ""))
        ids = {"worker": self._identity.get("worker", ""), "lease": lease, "trial": item}
        return ids | ({"trace_id": trace} if trace else {})

    def _call(self, lease: str, verb: str, said: dict[str, Any], trace: str | None = None) -> Any:
        """`trace`: the traceparent of what it is about, so that the server's log says so too."""
        path = f"/v1/leases/{lease}:{verb}"
        return self._post(path, {**self._identity, **said}, headers={"traceparent": trace} if trace else {})

    def _post(
        self,
        path: str,
        body: dict[str, Any],
        *,
        timeout: float | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> Any:
        """The answer's JSON, None for an empty one. Raises a SourceError."""
        answer = self._answer(path, body, timeout=timeout, headers=headers)
        return None if answer.status_code == 204 else answer.json()

    def _answer(
        self,
        path: str,
        body: dict[str, Any],
        *,
        timeout: float | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> httpx.Response:
        try:
            # The worker has its own patience with a server that is out of reach.
            return self._transport.request(
                "POST", path, json=body, timeout=timeout, headers=headers, retry=False
            )
        except ApiError as error:
            raise as_source_error(error) from error

    def _read(self, kind: type[M], answer: Any) -> M:
        try:
            return kind.from_json(answer)
        except MessageError as error:
            raise NotATilewright(
                f"an answer that is no {kind.__name__} ({error})", self._transport.url
            ) from error


def as_source_error(error: ApiError) -> SourceError:
    """A refusal as a worker or builder hears it."""
    if error.status >= 500 or error.status == 429:
        return SourceUnreachable(f"the server cannot serve now: {error}")
    return _BY_CODE.get(error.code, SourceRefused)(str(error))
