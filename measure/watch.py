"""Watches over forked candidates: their limits, their results, their last words, their ends.

One candidate runs at a time. Where there is a processor to spare, the next one builds beside it, and then
waits until it may run; where there is none, this never happens.
"""

from __future__ import annotations

import contextlib
import math
import os
import selectors
import signal
import socket
import time
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from . import child, frames
from .messages import Failure, FailureKind, MeasureInput, MeasureResult, MessageError
from .program import Body
from .timing import longest_first_call
from .words import Tail, clip

# A result is a few hundred bytes and its texts are clipped: more is a candidate that writes on its own.
_MOST_RESULT_BYTES = 1 << 20
_READ = 1 << 16
# How often a child that closed its pipes is asked whether it has ended.
_POLL_SECONDS = 0.005


def measure(body: Body, item: MeasureInput) -> MeasureResult:
    """Runs `body` in a forked child, dead and reaped when this returns. The caller must have one thread."""
    return begin(body, item).finish()


def begin(body: Body, item: MeasureInput, processors: frozenset[int] | None = None) -> Watched:
    """Forks a child that builds, on the given processors only (None: on any), and then waits until it may
    run. Whoever begins one must `finish` or `discard` it. The caller must have one thread."""
    ours, theirs = socket.socketpair()
    last_words = os.pipe()
    parent = os.getpid()
    pid = os.fork()
    if pid == 0:
        child.live(body, item, theirs.fileno(), last_words[1], parent, processors)
    theirs.close()
    os.close(last_words[1])
    with contextlib.suppress(OSError):  # the child does it too; the first of the two wins
        os.setpgid(pid, pid)
    ours.setblocking(False)
    os.set_blocking(last_words[0], False)
    return Watched(item, pid, ours, last_words[0], open_ends={ours.fileno(), last_words[0]})


@dataclass(slots=True)
class Watched:
    """A forked candidate. `built` and `let_go`: when it had built, and when it was let run."""

    item: MeasureInput
    pid: int
    channel: socket.socket
    last_words: int
    started: float = field(default_factory=time.monotonic)
    built: float | None = None
    let_go: float | None = None
    may_run: bool = False
    open_ends: set[int] = field(default_factory=set)
    has_ended: bool = False
    outcome: MeasureResult | Failure | None = None
    tail: Tail = field(default_factory=Tail)
    reader: frames.FrameReader = field(default_factory=lambda: frames.FrameReader(_MOST_RESULT_BYTES))

    def finish(self, item: MeasureInput | None = None, beside: Watched | None = None) -> MeasureResult:
        """Lets it run once it has built, and waits for its end; it is dead and reaped then. `item`: the same
        with what there is to beat by now. `beside` is another that builds meanwhile."""
        self.item = item or self.item
        self.may_run = True
        self._let_go()
        try:
            self._wait([self] if beside is None else [self, beside])
        finally:
            status = self._end()
        return self._conclude(status)

    def discard(self) -> None:
        """Ends it, whatever it does."""
        self._end()

    def _wait(self, watched: Sequence[Watched]) -> None:
        """Until this one has an outcome, or has ended without."""
        with selectors.DefaultSelector() as selector:
            for one in watched:
                for end in one.open_ends:
                    selector.register(end, selectors.EVENT_READ, one)
            while self.outcome is None and not self.has_ended:
                left = min(one._left() for one in watched)
                for key, _ in selector.select(left):
                    if not key.data._read(key.fd):
                        selector.unregister(key.fd)
                for one in watched:
                    one._look_around()

    def _read(self, descriptor: int) -> bool:
        """Takes what there is; False at the end of it."""
        try:
            data = os.read(descriptor, _READ)
        except ConnectionResetError:
            data = b""
        if not data:
            self.open_ends.discard(descriptor)
        elif descriptor == self.last_words:
            self.tail.feed(data)
        else:
            self._hear(data)
        return bool(data)

    def _hear(self, data: bytes) -> None:
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
            with contextlib.suppress(OSError):  # it has ended, as will be seen
                self.channel.sendall(frames.encode({"best_seconds": self.item.best_seconds}))

    def _result(self, message: Any) -> MeasureResult:
        if not isinstance(message, dict) or message.keys() != {"result"}:
            raise MessageError("neither a stage nor a result", "")
        result = MeasureResult.from_json(message["result"], "/result")
        if (result.item, result.attempt) != (self.item.item, self.item.attempt):
            raise MessageError(f"a result of another item, {result.item}", "/result/item")
        if result.seconds is not None and not self.may_run:
            raise MessageError("a time before it was let run", "/result")
        return result

    def _left(self) -> float:
        """Seconds until the limit of the present stage, or until it is to be looked at anyway; one that waits
        to be let run has no limit."""
        limits, now = self.item.limits, time.monotonic()
        if self.outcome is not None or self.has_ended or (self.built is not None and self.let_go is None):
            return math.inf
        if self.built is None or self.let_go is None:
            left = self.started + limits.build_seconds - now
        else:
            left = self.let_go + limits.run_seconds - now
        return max(0.0, left if self.open_ends else min(left, _POLL_SECONDS))

    def _look_around(self) -> None:
        """Whether it is late, or has ended."""
        if not self.open_ends and self._ended():
            self.has_ended = True
        elif self._left() <= 0:
            self.outcome = self._late()
            self._kill()

    def _late(self) -> Failure:
        limits = self.item.limits
        if self.built is None:
            limit = limits.build_seconds
            return Failure("build_timeout", f"the build took longer than its limit of {limit:g} s", limit)
        limit = limits.run_seconds
        return Failure("run_timeout", f"the run took longer than its limit of {limit:g} s", limit)

    def _ended(self) -> bool:
        return os.waitid(os.P_PID, self.pid, os.WEXITED | os.WNOHANG | os.WNOWAIT) is not None

    def _kill(self) -> None:
        """Its whole group. Until the child is reaped, the number of its group cannot be given to others."""
        for kill in (os.killpg, os.kill):
            with contextlib.suppress(ProcessLookupError, PermissionError):
                kill(self.pid, signal.SIGKILL)

    def _end(self) -> int:
        """Kills the child, reaps it and takes its last words; its wait status."""
        self._kill()
        status = os.waitpid(self.pid, 0)[1]
        # A process that escaped may hold the pipe open, so this does not wait.
        with contextlib.suppress(BlockingIOError):
            while data := os.read(self.last_words, _READ):
                self.tail.feed(data)
        self.channel.close()
        os.close(self.last_words)
        return status

    @property
    def _kind(self) -> FailureKind:
        return "build_error" if self.built is None else "run_error"

    def _conclude(self, status: int) -> MeasureResult:
        """The outcome as a whole result, with times and last words."""
        now = time.monotonic()
        ended = self.outcome or self._out_of_the_race(status) or self._death(status)
        result = ended if isinstance(ended, MeasureResult) else MeasureResult.failed(self.item, ended)
        building = (self.built or now) - self.started
        running = 0.0 if self.let_go is None else now - self.let_go
        if failure := result.failure:
            elapsed = building if self.built is None else running
            elapsed = elapsed if failure.elapsed is None else failure.elapsed
            failure = replace(failure, elapsed=elapsed, last_words=self.tail.text)
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
        if not os.WIFSIGNALED(status):
            code = os.waitstatus_to_exitcode(status)
            return Failure(self._kind, f"it exited with status {code} while {doing}, without a result")
        name = _name_of(os.WTERMSIG(status))
        words = self.tail.text
        if name in ("SIGABRT", "SIGSEGV") and ("bad_alloc" in words or "out of memory" in words.lower()):
            return child.out_of_memory(self._kind, self.item)
        hint = ", perhaps by the system for want of memory" if name == "SIGKILL" else ""
        return Failure(self._kind, f"it died of {name} while {doing}{hint}")


def _name_of(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"
