"""The client of a tilewright server: typed, synchronous, usable under a running event loop."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Self

import httpx

from ..measure.messages import NotATilewright, SourceUnreachable
from .deadline import within
from .event_stream import read_events
from .job_verbs import JobVerbs, segment
from .transport import ApiError, InsecureToken, Transport
from .views import (
    AskedView,
    EventView,
    JobsView,
    JobView,
    NewTokenView,
    OperatorsView,
    OperatorView,
    ScheduleView,
    TrialsView,
    TrialView,
    ValidationView,
    VersionView,
)
from .worker_verbs import WorkerVerbs

__all__ = ["ApiError", "Client", "InsecureToken", "NotATilewright", "RemoteSchedule", "SourceUnreachable"]

# A compiler that asks for a schedule goes on without one after this long.
BEST_SECONDS = 0.9
# The server pings an idle stream every 15 s; silence for longer is a lost connection.
_STREAM_SILENCE = 40.0
_WAIT_SLICE = 20.0
_MISSES = 5


@dataclass(frozen=True, slots=True)
class RemoteSchedule:
    """A best-known schedule as the compiler takes it: texts and numbers (compiler ScheduleSource)."""

    trace: str
    seconds: float
    kind: str
    reason: str
    view: ScheduleView


class Client(JobVerbs, WorkerVerbs):
    """Submits, follows and steers jobs, and looks best-known schedules up.

    Raises SourceUnreachable (a ConnectionError) when nothing answers, NotATilewright when something else
    does, ApiError when the server refuses, InsecureToken at once for a token that would travel in the clear.
    """

    def __init__(
        self,
        url: str,
        token: str | None = None,
        *,
        insecure_http: bool = False,
        timeout: float = 10.0,
        handler: httpx.BaseTransport | None = None,
    ) -> None:
        self._transport = Transport(url, token, insecure_http=insecure_http, timeout=timeout, handler=handler)
        self._schedules: dict[tuple[str, str, str], tuple[str, RemoteSchedule]] = {}
        self._lock = threading.Lock()

    @property
    def url(self) -> str:
        return self._transport.url

    @property
    def transport(self) -> Transport:
        return self._transport

    def close(self) -> None:
        self._transport.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def version(self) -> VersionView:
        return VersionView.model_validate(self._get("/version"))

    def submit(
        self,
        workload: Mapping[str, Any],
        *,
        target: str | Mapping[str, Any] = "llvm",
        trials: int = 64,
        seconds: float | None = None,
        target_seconds: float | None = None,
        patience: int | None = None,
        hardware: str | None = None,
        seed: int = 0,
        strategy: str = "guided",
        worker_wait: float | None = None,
        history: str = "use",
        suggestions: Sequence[Mapping[str, Any]] = (),
        measure: str = "workers",
        pool: str | None = None,
        labels: Mapping[str, str] | None = None,
        priority: int = 0,
    ) -> JobView:
        """Create a job. `history` "ignore": measure anew what was measured before. `suggestions` are tried
        first: JSON of traces, or `{"sketch": name, "knobs": {name: value}}`. `measure` "outside": whoever
        calls `ask` and `tell` measures. Only workers of the `pool` that have all the `labels` measure it;
        each step of `priority` is twice the share among your own jobs. Not retried once the request was sent:
        that could make two."""
        budget = {
            "trials": trials,
            "seconds": seconds,
            "target_seconds": target_seconds,
            "patience": patience,
        }
        body = _job_body(workload, target, budget, hardware, seed, strategy, worker_wait)
        body |= {"history": history, "suggestions": [dict(one) for one in suggestions], "measure": measure}
        body |= {"pool": pool, "labels": dict(labels or {}), "priority": priority}
        return JobView.model_validate(self._transport.request("POST", "/v1/jobs", json=body).json())

    def validate(
        self, workload: Mapping[str, Any], *, target: str | Mapping[str, Any] = "llvm", trials: int = 64
    ) -> ValidationView:
        """What `submit` would create, or the ApiError it would raise; creates nothing."""
        body = _job_body(workload, target, {"trials": trials}, None, 0, "guided", None)
        answer = self._transport.request(
            "POST", "/v1/jobs", json={**body, "validate_only": True}, idempotent=True
        )
        return ValidationView.model_validate(answer.json())

    def job(self, job: str, *, wait: float | None = None) -> JobView:
        """The job; with `wait`, as soon as it is finished, or as it stands after so many seconds."""
        if wait is None:
            return JobView.model_validate(self._get(f"/v1/jobs/{segment(job)}"))
        deadline = time.monotonic() + wait
        while True:
            slice_seconds = max(0.0, min(_WAIT_SLICE, deadline - time.monotonic()))
            view = JobView.model_validate(
                self._get(f"/v1/jobs/{segment(job)}", {"wait": f"{slice_seconds:.3f}s"}, extra=slice_seconds)
            )
            if view.finished or time.monotonic() >= deadline:
                return view

    def jobs(self, state: str | None = None) -> Iterator[JobView]:
        """All jobs, the newest first, page by page."""
        token: str | None = None
        while True:
            page = JobsView.model_validate(self._get("/v1/jobs", {"state": state, "page_token": token}))
            yield from page.jobs
            token = page.next_page_token
            if token is None:
                return

    def ask(self, job: str, count: int = 1, *, holder: str = "", wait: float = 0.0) -> list[TrialView]:
        """Up to `count` trials of a job that is measured outside, for `holder` to measure: those that it was
        given and has not told, then new ones. None where there is none within `wait` seconds (at most 60),
        or the job is over."""
        answer = self._transport.request(
            "POST",
            f"/v1/jobs/{segment(job)}/trials:ask",
            json={"count": count, "holder": holder},
            params={"wait": f"{wait:.3f}s"},
            timeout=self._transport.timeout + wait,
            idempotent=True,
        )
        return AskedView.model_validate(answer.json()).trials

    def tell(
        self,
        job: str,
        number: int,
        *,
        seconds: float | None = None,
        failure: str | None = None,
        message: str = "",
        samples: Sequence[float] = (),
        error: float | None = None,
        codegen: str | None = None,
    ) -> TrialView:
        """What came of trial `number`: `seconds` per call, or a kind of `failure` with a message. May be
        repeated. `error` of its output in tolerances and the `codegen` version that made the code are needed
        for it to become best-known."""
        failed = None if failure is None else {"kind": failure, "message": message}
        said = {"number": number, "seconds": seconds, "failure": failed, "samples": list(samples)}
        answer = self._transport.request(
            "POST",
            f"/v1/jobs/{segment(job)}/trials:tell",
            json={**said, "error": error, "codegen": codegen},
            idempotent=True,
        )
        return TrialView.model_validate(answer.json())

    def trials(self, job: str) -> Iterator[TrialView]:
        """The trials of a job in order, page by page."""
        token: str | None = None
        while True:
            page = TrialsView.model_validate(
                self._get(f"/v1/jobs/{segment(job)}/trials", {"page_token": token})
            )
            yield from page.trials
            token = page.next_page_token
            if token is None:
                return

    def events(self, job: str, *, after: int = 0) -> Iterator[EventView]:
        """The events of a job after number `after`, as they happen, until the job's last one.

        A connection that breaks is made again from the last event seen. Raises SourceUnreachable when the
        server stays away.
        """
        last = after
        misses = 0
        while True:
            # Asked before the stream: what a finished job's stream gives is all there is.
            finished = self.job(job).finished
            try:
                for event in self._stream(job, last):
                    last = event.seq
                    misses = 0
                    yield event
            except (httpx.HTTPError, SourceUnreachable) as error:
                misses += 1
                if misses > _MISSES:
                    raise SourceUnreachable(
                        f"the events of {job} at {self.url} broke off: {error}"
                    ) from error
                time.sleep(min(2.0, 0.1 * 2**misses))
                continue
            if finished:
                return

    def _stream(self, job: str, after: int) -> Iterator[EventView]:
        opened = self._transport.stream(
            f"/v1/jobs/{segment(job)}/events",
            params={},
            headers={"Accept": "text/event-stream", "Last-Event-ID": str(after)},
            read_timeout=_STREAM_SILENCE,
        )
        with opened as response:
            if not response.is_success:
                response.read()
                self._transport.checked(response)
            yield from read_events(response.iter_lines())

    def best(self, workload: str, target: str, hardware: str) -> RemoteSchedule | None:
        """The best-known schedule by keys, or None. Answers within a second or raises ConnectionError."""
        key = (workload, target, hardware)
        with self._lock:
            known = self._schedules.get(key)
        answer = self._ask_best(key, known[0] if known else None)
        if answer is None:
            return None
        if answer.status_code == 304:
            assert known is not None, "the server answers 304 only to an ETag that was sent"
            return known[1]
        view = ScheduleView.model_validate(answer.json())
        schedule = RemoteSchedule(
            json.dumps(view.trace, separators=(",", ":")), view.seconds, view.kind, view.reason, view
        )
        if etag := answer.headers.get("etag"):
            with self._lock:
                self._schedules[key] = (etag, schedule)
        return schedule

    def _ask_best(self, key: tuple[str, str, str], etag: str | None) -> httpx.Response | None:
        workload, target, hardware = key
        try:
            return within(
                BEST_SECONDS,
                lambda: self._transport.request(
                    "GET",
                    "/v1/schedules/best",
                    params={"workload": workload, "target": target, "hardware": hardware},
                    headers={"If-None-Match": etag} if etag else {},
                    timeout=BEST_SECONDS,
                    retry=False,
                ),
            )
        except NotATilewright as error:
            # A compiler that asks the wrong place goes on without a schedule, as with no place at all.
            raise SourceUnreachable(str(error)) from error
        except TimeoutError as error:
            raise SourceUnreachable(f"no answer within {BEST_SECONDS:g} s from {self.url}") from error
        except ApiError as error:
            if error.code == "no-schedule":
                return None
            if error.status >= 500:
                raise SourceUnreachable(f"{self.url} cannot answer now: {error}") from error
            raise

    def operators(self) -> list[OperatorView]:
        return OperatorsView.model_validate(self._get("/v1/operators")).operators

    def create_token(
        self, name: str, scopes: list[str], *, expires_seconds: float | None = None
    ) -> NewTokenView:
        """Make a token; the answer alone carries its value."""
        body = {"name": name, "scopes": scopes, "expires_seconds": expires_seconds}
        return NewTokenView.model_validate(self._transport.request("POST", "/v1/tokens", json=body).json())

    def _get(self, path: str, params: Mapping[str, Any] | None = None, extra: float = 0.0) -> Any:
        timeout = self._transport.timeout + extra
        return self._transport.request("GET", path, params=params, timeout=timeout).json()


def _job_body(
    workload: Mapping[str, Any],
    target: str | Mapping[str, Any],
    budget: Mapping[str, Any],
    hardware: str | None,
    seed: int,
    strategy: str,
    worker_wait: float | None,
) -> dict[str, Any]:
    return {
        "workload": dict(workload),
        "target": target if isinstance(target, str) else dict(target),
        "budget": dict(budget),
        "hardware": hardware,
        "seed": seed,
        "strategy": strategy,
        "worker_wait": worker_wait,
    }
