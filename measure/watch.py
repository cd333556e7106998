"""Watches over forked candidates: their limits, their results, their last words, their ends.

One candidate runs at a time. Where there is a processor to spare, the next one builds beside it, and then
waits until it may run; where there is none, this never happens.
"""

from __future__ import annotations

import math
import os
import signal
import time
from dataclasses import dataclass, field, replace
from typing import Any, NoReturn

from . import child, frames
from .forked import POLL_SECONDS, Awaited, Forked, death_of, wait
from .messages import Failure, FailureKind, MeasureInput, MeasureResult, MessageError
from .program import Body
from .timing import longest_first_call
from .words import clip

# A result is a few hundred bytes and its texts are clipped: more is a candidate that writes on its own.
_MOST_RESULT_BYTES = 1 << 20


def measure(body: Body, item: MeasureInput) -> MeasureResult:
    """Runs `body` in a forked child, dead and reaped when this returns. The caller must have one thread."""
    return begin(body, item).finish()


def begin(
    body: Body, item: MeasureInput, processors: frozenset[int] | None = None, building: float = 0.0
) -> Watched:
    """Forks a child that builds, on the given processors only (None: on any), and then waits until it may
    run. `building`: the seconds that another process has built for it. Whoever begins one must `finish` or
    `discard` it. The caller must have one thread."""

    def live(channel: int, last_words: int, parent: int) -> NoReturn:
        child.live(body, item, channel, last_words, parent, processors)

    return Watched(item, Forked.begin(live), building)


@dataclass(slots=True)
class Watched:
    """A forked candidate. `built` and `let_go`: when it had built, and when it was let run; `building`: the
    seconds that its build took before it was forked."""

    item: MeasureInput
    forked: Forked
    building: float = 0.0
    started: float = field(default_factory=time.monotonic)
    built: float | None = None
    let_go: float | None = None
    may_run: bool = False
    has_ended: bool = False
    outcome: MeasureResult | Failure | None = None
    reader: frames.FrameReader = field(default_factory=lambda: frames.FrameReader(_MOST_RESULT_BYTES))

    @property
    def pid(self) -> int:
        return self.forked.pid

    def finish(self, item: MeasureInput | None = None, beside: Awaited | None = None) -> MeasureResult:
        """Lets it run once it has built, and waits for its end; it is dead and reaped then. `item`: the same
        with what there is to beat by now. `beside` is another that builds meanwhile."""
        self.item = item or self.item
        self.may_run = True
        self._let_go()
        try:
            wait([self] if beside is None else [self, beside], self)
        finally:
            status = self.forked.end()
        return self._conclude(status)

    def discard(self) -> None:
        """Ends it, whatever it does."""
        self.forked.end()

    @property
    def is_over(self) -> bool:
        return self.outcome is not None or self.has_ended

    def hear(self, data: bytes) -> None:
        try:
            for message in self.reader.feed(data):
                if self.outcome is not None:
                    return
                if message == child.STAGE_BUILT:
                    self.built = self.built or time.monotonic()
                    self._let_go()
                else:
                    self.outcome = self._result(message)
        except (frames.FrameError, MessageError) as error:
            self.outcome = Failure(self._kind, clip(f"the candidate wrote into its result channel: {error}"))

    def _let_go(self) -> None:
        if self.may_run and self.built is not None and self.let_go is None:
            self.let_go = time.monotonic()
            self.forked.send(frames.encode({"best_seconds": self.item.best_seconds}))

    def _result(self, message: Any) -> MeasureResult:
        if not isinstance(message, dict) or message.keys() != {"result"}:
            raise MessageError("neither a stage nor a result", "")
        result = MeasureResult.from_json(message["result"], "/result")
        if (result.item, result.attempt) != (self.item.item, self.item.attempt):
            raise MessageError(f"a result of another item, {result.item}", "/result/item")
        if result.seconds is not None and not self.may_run:
            raise MessageError("a time before it was let run", "/result")
        return result

    def left(self) -> float:
        """Seconds until the limit of the present stage, or until it is to be looked at anyway; one that waits
        to be let run has no limit."""
        limits, now = self.item.limits, time.monotonic()
        if self.is_over or (self.built is not None and self.let_go is None):
            return math.inf
        if self.built is None or self.let_go is None:
            left = self.started + limits.build_seconds - now
        else:
            left = self.let_go + limits.run_seconds - now
        return max(0.0, left if self.forked.open_ends else min(left, POLL_SECONDS))

    def look_around(self) -> None:
        if self.forked.has_ended:
            self.has_ended = True
        elif self.left() <= 0:
            self.outcome = self._late()
            self.forked.kill()

    def _late(self) -> Failure:
        limits = self.item.limits
        if self.built is None:
            limit = limits.build_seconds
            return Failure("build_timeout", f"the build took longer than its limit of {limit:g} s", limit)
        limit = limits.run_seconds
        return Failure("run_timeout", f"the run took longer than its limit of {limit:g} s", limit)

    @property
    def _kind(self) -> FailureKind:
        return "build_error" if self.built is None else "run_error"

    def _conclude(self, status: int) -> MeasureResult:
        """The outcome as a whole result, with times and last words."""
        now = time.monotonic()
        ended = self.outcome or self._out_of_the_race(status) or self._death(status)
        result = ended if isinstance(ended, MeasureResult) else MeasureResult.failed(self.item, ended)
        building = self.building + (self.built or now) - self.started
        running = 0.0 if self.let_go is None else now - self.let_go
        if failure := result.failure:
            elapsed = building if self.built is None else running
            elapsed = elapsed if failure.elapsed is None else failure.elapsed
            failure = replace(failure, elapsed=elapsed, last_words=self.forked.words)
        return replace(result, failure=failure, build_seconds=building, wall_seconds=building + running)

    def _out_of_the_race(self, status: int) -> MeasureResult | None:
        """Of a child whose first call was ended by its alarm: that it is slower than so."""
        limit = longest_first_call(self.item.best_seconds)
        if self.let_go is None or not limit or not os.WIFSIGNALED(status):
            return None
        if os.WTERMSIG(status) != signal.SIGPROF:
            return None
        return MeasureResult(self.item.item, self.item.attempt, limit, (limit,), censored=True)

    def _death(self, status: int) -> Failure:
        """Why a child is dead that said nothing."""
        doing = "building" if self.built is None else "running"
        words, is_memory = death_of(status, doing, self.forked.words)
        return child.out_of_memory(self._kind, self.item.limits) if is_memory else Failure(self._kind, words)
