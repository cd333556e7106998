"""Forks a child for one candidate and watches over it: its limits, its result, its last words, its end."""

from __future__ import annotations

import contextlib
import os
import selectors
import signal
import time
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
    results, last_words = os.pipe(), os.pipe()
    parent = os.getpid()
    pid = os.fork()
    if pid == 0:
        child.live(body, item, results[1], last_words[1], parent)
    os.close(results[1])
    os.close(last_words[1])
    with contextlib.suppress(OSError):  # the child does it too; the first of the two wins
        os.setpgid(pid, pid)
    watch = _Watch(item, pid, results[0], last_words[0])
    try:
        outcome = watch.wait()
    finally:
        status = _end(pid)
        watch.hear_last_words()
        os.close(results[0])
        os.close(last_words[0])
    return watch.conclude(outcome, status)


def _end(pid: int) -> int:
    """Kills the child's whole group and reaps the child; its wait status. Until it is reaped, the number of
    its group cannot be given to others."""
    for kill in (os.killpg, os.kill):
        with contextlib.suppress(ProcessLookupError, PermissionError):
            kill(pid, signal.SIGKILL)
    return os.waitpid(pid, 0)[1]


@dataclass(slots=True)
class _Watch:
    item: MeasureInput
    pid: int
    results: int
    last_words: int
    started: float = field(default_factory=time.monotonic)
    built: float | None = None
    tail: Tail = field(default_factory=Tail)
    reader: frames.FrameReader = field(default_factory=lambda: frames.FrameReader(_MOST_RESULT_BYTES))

    def wait(self) -> MeasureResult | Failure | None:
        """The child's result, or why it is not waited for any longer; None when it ended without a result."""
        with selectors.DefaultSelector() as selector:
            for descriptor in (self.results, self.last_words):
                os.set_blocking(descriptor, False)
                selector.register(descriptor, selectors.EVENT_READ)
            while (left := self._left()) > 0:
                if not selector.get_map():
                    if self._ended():
                        return None
                    time.sleep(min(left, _POLL_SECONDS))
                for key, _ in selector.select(left) if selector.get_map() else ():
                    data = os.read(key.fd, _READ)
                    if not data:
                        selector.unregister(key.fd)
                    elif key.fd == self.last_words:
                        self.tail.feed(data)
                    elif outcome := self._hear(data):
                        return outcome
        return self._late()

    def _left(self) -> float:
        """Seconds until the limit of the present stage."""
        if self.built is None:
            return self.started + self.item.limits.build_seconds - time.monotonic()
        return self.built + self.item.limits.run_seconds - time.monotonic()

    def _late(self) -> Failure:
        limits = self.item.limits
        if self.built is None:
            limit = limits.build_seconds
            return Failure("build_timeout", f"the build took longer than its limit of {limit:g} s", limit)
        limit = limits.run_seconds
        return Failure("run_timeout", f"the run took longer than its limit of {limit:g} s", limit)

    def _ended(self) -> bool:
        return os.waitid(os.P_PID, self.pid, os.WEXITED | os.WNOHANG | os.WNOWAIT) is not None

    def _hear(self, data: bytes) -> MeasureResult | Failure | None:
        try:
            for message in self.reader.feed(data):
                if message == child.STAGE_RUNNING:
                    self.built = self.built or time.monotonic()
                else:
                    return self._result(message)
        except (frames.FrameError, MessageError) as error:
            return Failure(self._kind, clip(f"the candidate wrote into its result channel: {error}"))
        return None

    def _result(self, message: Any) -> MeasureResult:
        if not isinstance(message, dict) or message.keys() != {"result"}:
            raise MessageError("neither a stage nor a result", "")
        result = MeasureResult.from_json(message["result"], "/result")
        if (result.item, result.attempt) != (self.item.item, self.item.attempt):
            raise MessageError(f"a result of another item, {result.item}", "/result/item")
        return result

    @property
    def _kind(self) -> FailureKind:
        return "build_error" if self.built is None else "run_error"

    def hear_last_words(self) -> None:
        """Takes what is left in the pipe; a process that escaped may hold it open, so this does not wait."""
        with contextlib.suppress(BlockingIOError):
            while data := os.read(self.last_words, _READ):
                self.tail.feed(data)

    def conclude(self, outcome: MeasureResult | Failure | None, status: int) -> MeasureResult:
        """`outcome` as a whole result, with times and last words."""
        now = time.monotonic()
        if isinstance(outcome, MeasureResult):
            result = outcome
        else:
            ended = outcome or self._out_of_the_race(status) or self._death(status)
            result = ended if isinstance(ended, MeasureResult) else MeasureResult.failed(self.item, ended)
        if failure := result.failure:
            since = self.started if self.built is None else self.built
            elapsed = now - since if failure.elapsed is None else failure.elapsed
            failure = replace(failure, elapsed=elapsed, last_words=self.tail.text)
        return replace(
            result,
            failure=failure,
            build_seconds=(self.built or now) - self.started,
            wall_seconds=now - self.started,
        )

    def _out_of_the_race(self, status: int) -> MeasureResult | None:
        """Of a child whose first call was ended by its alarm: that it is slower than so."""
        limit = longest_first_call(self.item.best_seconds)
        if self.built is None or not limit or not os.WIFSIGNALED(status):
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
