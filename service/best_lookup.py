"""Looking a best-known schedule up, and remembering it with its ETag; for both clients."""

from __future__ import annotations

import json
import threading
from dataclasses import dataclass

import httpx

from ..measure.messages import NotATilewright, SourceUnreachable
from .calls import Call, Flow
from .exchange import ApiError
from .views import ScheduleView

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
    view: ScheduleView


class BestLookup:
    """The schedules that a client knows. Safe to use from several threads."""

    def __init__(self, url: str) -> None:
        self._url = url
        self._known: dict[Key, tuple[str, RemoteSchedule]] = {}
        self._lock = threading.Lock()

    def flow(self, key: Key) -> Flow[RemoteSchedule | None]:
        """The schedule, or None; a ConnectionError where the server cannot say."""
        with self._lock:
            known = self._known.get(key)
        try:
            answer = yield Call(
                "GET",
                "/v1/schedules/best",
                params=dict(zip(("workload", "target", "hardware"), key, strict=True)),
                headers={"If-None-Match": known[0]} if known else {},
                within=BEST_SECONDS,
                retry=False,
            )
        except NotATilewright as error:
            # A compiler that asks the wrong place goes on without a schedule, as with no place at all.
            raise SourceUnreachable(str(error)) from error
        except TimeoutError as error:
            raise SourceUnreachable(f"no answer within {BEST_SECONDS:g} s from {self._url}") from error
        except ApiError as error:
            if error.code == "no-schedule":
                return None
            if error.status >= 500 or error.status == 429:
                raise SourceUnreachable(f"{self._url} cannot answer now: {error}") from error
            raise
        if answer.status_code == 304:
            assert known is not None, "the server answers 304 only to an ETag that was sent"
            return known[1]
        return self._learn(key, answer)

    def _learn(self, key: Key, answer: httpx.Response) -> RemoteSchedule:
        view = ScheduleView.model_validate(answer.json())
        trace = json.dumps(view.trace, separators=(",", ":"))
        schedule = RemoteSchedule(trace, view.seconds, view.kind, view.reason, view)
        if etag := answer.headers.get("etag"):
            with self._lock:
                self._known[key] = (etag, schedule)
        return schedule
