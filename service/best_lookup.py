"""Looking a best-known schedule up, and remembering it with its ETag; for both clients."""

from __future__ import annotations

import json
import threading
from collections.abc import Sequence
from dataclasses import dataclass

import httpx

from ..measure.messages import NotATilewright, SourceUnreachable
from .calls import Call, Flow
from .exchange import ApiError
from .schedule_views import ScheduleView

# A compiler that asks for a schedule goes on without one after this long.
BEST_SECONDS = 0.9

Key = tuple[str, str, str]


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


def soon(call: Call, url: str) -> Flow[httpx.Response]:
    """The answer to a call that a build waits for; a ConnectionError where the server cannot say in time."""
    try:
        return (yield call)
    except NotATilewright as error:
        # A compiler that asks the wrong place goes on without a schedule, as with no place at all.
        raise SourceUnreachable(str(error)) from error
    except TimeoutError as error:
        raise SourceUnreachable(f"no answer within {BEST_SECONDS:g} s from {url}") from error
    except ApiError as error:
        if error.status >= 500 or error.status == 429:
            raise SourceUnreachable(f"{url} cannot answer now: {error}") from error
        raise


class BestLookup:
    """The schedules that a client knows. Safe to use from several threads."""

    def __init__(self, url: str) -> None:
        self._url = url
        self._known: dict[tuple[str, ...], tuple[str, RemoteSchedule]] = {}
        self._lock = threading.Lock()

    def flow(
        self, key: Key, freeze: str | None = None, allow: Sequence[str] = ()
    ) -> Flow[RemoteSchedule | None]:
        """The schedule, or None; a ConnectionError where the server cannot say."""
        params = dict(zip(("workload", "target", "hardware"), key, strict=True))
        params |= {} if freeze is None else {"freeze": freeze}
        params |= {"allow": ",".join(allow)} if allow else {}
        asked = tuple(f"{name}={value}" for name, value in params.items())
        with self._lock:
            known = self._known.get(asked)
        call = Call(
            "GET",
            "/v1/schedules/best",
            params=params,
            headers={"If-None-Match": known[0]} if known else {},
            within=BEST_SECONDS,
            retry=False,
        )
        try:
            answer = yield from soon(call, self._url)
        except ApiError as error:
            if error.code == "no-schedule":
                return None
            raise
        if answer.status_code == 304:
            assert known is not None, "the server answers 304 only to an ETag that was sent"
            return known[1]
        return self._learn(asked, answer)

    def _learn(self, asked: tuple[str, ...], answer: httpx.Response) -> RemoteSchedule:
        schedule = RemoteSchedule.of(ScheduleView.model_validate(answer.json()))
        if etag := answer.headers.get("etag"):
            with self._lock:
                self._known[asked] = (etag, schedule)
        return schedule
