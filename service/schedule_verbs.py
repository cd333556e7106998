"""The client's verbs for best-known schedules: looking them up, fixing them, carrying them elsewhere."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeVar

import httpx

from ..measure.messages import NotATilewright, SourceUnreachable
from .deadline import within
from .job_verbs import segment
from .schedule_views import (
    ChangedKeyView,
    ChangesView,
    ExplanationView,
    FreezesView,
    FreezeView,
    ImportView,
    NearbysView,
    PinsView,
    PinView,
    ReportView,
    SchedulesView,
    ScheduleView,
)
from .transport import ApiError, Transport

T = TypeVar("T")

# A compiler that asks for a schedule goes on without one after this long.
BEST_SECONDS = 0.9
_LINES = 100
_BYTES = 1 << 20


@dataclass(frozen=True, slots=True)
class RemoteSchedule:
    """A best-known schedule as the compiler takes it: texts and numbers (compiler ScheduleSource)."""

    trace: str
    seconds: float
    kind: str
    reason: str
    trial: str
    codegen_version: str
    workload: str
    target: str
    hardware: str
    view: ScheduleView

    @classmethod
    def of(cls, view: ScheduleView) -> RemoteSchedule:
        return cls(
            trace=json.dumps(view.trace, separators=(",", ":")),
            seconds=view.seconds or 0.0,
            kind=view.kind,
            reason=view.reason,
            trial=view.trial or "",
            codegen_version=view.codegen or "",
            workload=view.workload,
            target=view.target,
            hardware=view.hardware,
            view=view,
        )


@dataclass(frozen=True, slots=True)
class RemoteNearby:
    """A schedule of another key as the compiler takes it."""

    schedule: RemoteSchedule
    program: str
    description: str
    facts: str


@dataclass(slots=True)
class KnownSchedules:
    """What a server has answered, with its tags: asked again, it need not say the same again."""

    answers: dict[tuple[str, ...], tuple[str, RemoteSchedule]] = field(default_factory=dict)
    lock: threading.Lock = field(default_factory=threading.Lock)


class ScheduleVerbs:
    """`best`, `nearby` and `report` answer within a second or raise ConnectionError: a build waits."""

    _transport: Transport
    _known: KnownSchedules

    def best(
        self,
        workload: str,
        target: str,
        hardware: str,
        freeze: str | None = None,
        *,
        allow: Sequence[str] = (),
    ) -> RemoteSchedule | None:
        """The schedule by keys, or None; with `freeze`, the one that was best-known when that was made.
        `allow`: what the server may answer beside it, `same_family`, `transferred`, `default`."""
        params = {"workload": workload, "target": target, "hardware": hardware}
        params |= {"freeze": freeze} if freeze is not None else {}
        params |= {"allow": ",".join(allow)} if allow else {}
        key = tuple(params.values())
        with self._known.lock:
            known = self._known.answers.get(key)
        answer = self._ask_best(params, known[0] if known else None)
        if answer is None:
            return None
        if answer.status_code == 304:
            assert known is not None, "the server answers 304 only to an ETag that was sent"
            return known[1]
        schedule = RemoteSchedule.of(ScheduleView.model_validate(answer.json()))
        if etag := answer.headers.get("etag"):
            with self._known.lock:
                self._known.answers[key] = (etag, schedule)
        return schedule

    def _ask_best(self, params: Mapping[str, str], etag: str | None) -> httpx.Response | None:
        try:
            return self._soon(
                lambda: self._transport.request(
                    "GET",
                    "/v1/schedules/best",
                    params=params,
                    headers={"If-None-Match": etag} if etag else {},
                    timeout=BEST_SECONDS,
                    retry=False,
                )
            )
        except ApiError as error:
            if error.code == "no-schedule":
                return None
            raise

    def nearby(self, workload: str, structure: str, limit: int = 32) -> list[RemoteNearby]:
        """Best-known schedules of other keys that might do, for a build that is allowed to take them."""
        params = {"workload": workload, "structure": structure, "limit": limit}
        answer = self._soon(
            lambda: self._transport.request(
                "GET", "/v1/schedules/nearby", params=params, timeout=BEST_SECONDS, retry=False
            )
        )
        found = NearbysView.model_validate(answer.json()).schedules
        return [
            RemoteNearby(RemoteSchedule.of(one.schedule), one.program, one.description, one.facts)
            for one in found
        ]

    def report(self, trial: str, reason: str) -> str:
        """Say that a schedule does not replay here; the server looks for itself. What became of it."""
        path = f"/v1/schedules/{segment(trial)}:report"
        try:
            answer = self._soon(
                lambda: self._transport.request(
                    "POST", path, json={"reason": reason[:16_000]}, timeout=BEST_SECONDS, retry=False
                )
            )
        except ApiError as error:
            return f"kept: {error}"
        view = ReportView.model_validate(answer.json())
        return view.outcome if view.outcome == "retired" else f"{view.outcome}: {view.reason}"

    def _soon(self, ask: Callable[[], T]) -> T:
        try:
            return within(BEST_SECONDS, ask)
        except NotATilewright as error:
            # A compiler that asks the wrong place goes on without a schedule, as with no place at all.
            raise SourceUnreachable(str(error)) from error
        except TimeoutError as error:
            where = self._transport.url
            raise SourceUnreachable(f"no answer within {BEST_SECONDS:g} s from {where}") from error
        except ApiError as error:
            if error.status >= 500:
                raise SourceUnreachable(f"{self._transport.url} cannot answer now: {error}") from error
            raise

    def schedules(self) -> Iterator[ScheduleView]:
        """All best-known schedules in the order of their keys, page by page."""
        token: str | None = None
        while True:
            page = SchedulesView.model_validate(self._read("", {"page_token": token}))
            yield from page.schedules
            token = page.next_page_token
            if token is None:
                return

    def explain(self, workload: str, target: str, hardware: str) -> ExplanationView:
        """Why a lookup answers what it answers."""
        key = {"workload": workload, "target": target, "hardware": hardware}
        return ExplanationView.model_validate(self._read("/explain", key))

    def pin(self, workload: str, target: str, hardware: str, trial: str | None, note: str = "") -> PinView:
        """Serve this trial's schedule for the key, or with None the default schedule."""
        body = {"workload": workload, "target": target, "hardware": hardware, "trial": trial, "note": note}
        answer = self._transport.request("PUT", "/v1/schedules/pins", json=body, idempotent=True)
        return PinView.model_validate(answer.json())

    def unpin(self, workload: str, target: str, hardware: str) -> bool:
        """End the pin of a key; whether there was one."""
        key = {"workload": workload, "target": target, "hardware": hardware}
        return self._delete("/v1/schedules/pins", key)

    def pins(self) -> list[PinView]:
        return PinsView.model_validate(self._read("/pins")).pins

    def freeze(self, name: str, note: str = "") -> FreezeView:
        """Remember which schedule is served for every key now. Not retried once the request was sent."""
        body = {"name": name, "note": note}
        answer = self._transport.request("POST", "/v1/schedules/freezes", json=body)
        return FreezeView.model_validate(answer.json())

    def unfreeze(self, name: str) -> bool:
        """Forget a freeze; whether there was one."""
        return self._delete(f"/v1/schedules/freezes/{segment(name)}", None)

    def freezes(self) -> list[FreezeView]:
        return FreezesView.model_validate(self._read("/freezes")).freezes

    def changed_since(self, name: str) -> list[ChangedKeyView]:
        """Keys whose best-known schedule is another than the frozen one."""
        return ChangesView.model_validate(self._read(f"/freezes/{segment(name)}/changes")).changed

    def retire(self, trial: str, reason: str) -> ReportView:
        """Never serve this trial's schedule again."""
        path = f"/v1/schedules/{segment(trial)}:retire"
        answer = self._transport.request("POST", path, json={"reason": reason}, idempotent=True)
        return ReportView.model_validate(answer.json())

    def export_lines(self) -> Iterator[str]:
        """All best-known schedules, a record a line."""
        opened = self._transport.stream("/v1/schedules/export", params={}, headers={}, read_timeout=60.0)
        with opened as response:
            if not response.is_success:
                response.read()
                self._transport.checked(response)
            yield from (line for line in response.iter_lines() if line)

    def import_lines(self, lines: Iterable[str]) -> ImportView:
        """Take records of another store in, some at a time; bad lines are named by their number."""
        total = ImportView()
        for first, chunk in _chunks(lines):
            answer = self._transport.request(
                "POST", "/v1/schedules:import", json={"lines": chunk}, idempotent=True, timeout=120.0
            )
            got = ImportView.model_validate(answer.json())
            bad = [one.model_copy(update={"number": one.number + first}) for one in got.refused]
            total = ImportView(
                refused=[*total.refused, *bad],
                **{
                    name: getattr(total, name) + getattr(got, name)
                    for name in ("best", "challenger", "slower", "known")
                },
            )
        return total

    def _read(self, path: str, params: Mapping[str, Any] | None = None) -> Any:
        return self._transport.request("GET", f"/v1/schedules{path}", params=params).json()

    def _delete(self, path: str, params: Mapping[str, Any] | None) -> bool:
        try:
            self._transport.request("DELETE", path, params=params, idempotent=True)
        except ApiError as error:
            if error.status == 404:
                return False
            raise
        return True


def _chunks(lines: Iterable[str]) -> Iterator[tuple[int, list[str]]]:
    """Lines in bodies that a server takes, each with the number of lines before it."""
    chunk: list[str] = []
    size = first = 0
    for line in lines:
        if chunk and (len(chunk) == _LINES or size + len(line) > _BYTES):
            yield first, chunk
            first, chunk, size = first + len(chunk), [], 0
        chunk.append(line)
        size += len(line)
    if chunk:
        yield first, chunk
