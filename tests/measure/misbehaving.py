"""Candidates that misbehave, each as a program for the fork server; the fork server imports this module."""

from __future__ import annotations

import ctypes
import os
import signal
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

from tilewright.measure import sandbox
from tilewright.measure.messages import Failure, MeasureInput, MeasureResult
from tilewright.measure.program import Body, Split, Stage


@dataclass
class _Program:
    body: Callable[[MeasureInput, Stage], MeasureResult]

    def prepare(self, item: MeasureInput) -> Body | Failure:
        return lambda stage: self.body(item, stage)


def _succeed(item: MeasureInput, stage: Stage) -> MeasureResult:
    stage.running()
    return MeasureResult(item.item, item.attempt, seconds=0.5, samples=(0.5, 0.75), error=0.25)


def _behaviour(item: MeasureInput, stage: Stage) -> MeasureResult:
    """Does what the trace says, so that one fork server can be shown several behaviours in a row."""
    return _BEHAVIOURS[item.trace["behaviour"]](item, stage)


def _hang_in_build(item: MeasureInput, stage: Stage) -> MeasureResult:
    print("building forever", file=sys.stderr)
    while True:
        time.sleep(60)


def _hang_in_run(item: MeasureInput, stage: Stage) -> MeasureResult:
    stage.running()
    while True:
        pass


def _sleep(item: MeasureInput, stage: Stage) -> MeasureResult:
    stage.running()
    time.sleep(item.trace["seconds"])
    return _succeed(item, stage)


def _close_everything_and_hang(item: MeasureInput, stage: Stage) -> MeasureResult:
    stage.running()
    os.closerange(0, 64)
    while True:
        time.sleep(60)


def _close_everything_and_exit(item: MeasureInput, stage: Stage) -> MeasureResult:
    os.closerange(0, 64)
    os._exit(7)


def _build_slowly(item: MeasureInput, stage: Stage) -> MeasureResult:
    time.sleep(item.trace["seconds"])
    return _succeed(item, stage)


def _tell_what_to_beat(item: MeasureInput, stage: Stage) -> MeasureResult:
    """And that a build is over: a file cannot be written, but the clock is the same in all processes."""
    built = time.monotonic()
    best = stage.running()
    raise LookupError(
        repr((best, item.best_seconds, built, time.monotonic(), sorted(os.sched_getaffinity(0))))
    )


def _say_where_it_builds(item: MeasureInput, stage: Stage) -> MeasureResult:
    raise LookupError(repr(sorted(os.sched_getaffinity(0))))


def _hurry(item: MeasureInput, stage: Stage) -> MeasureResult:
    """Gives a time before it may run."""
    return MeasureResult(item.item, item.attempt, seconds=0.5, samples=(0.5,))


def _ring(item: MeasureInput, stage: Stage) -> MeasureResult:
    """Ends as a candidate does whose first call takes too long."""
    stage.running()
    os.kill(os.getpid(), signal.SIGPROF)
    return _succeed(item, stage)


def _allocate_without_end(item: MeasureInput, stage: Stage) -> MeasureResult:
    stage.running()
    held = []
    while True:
        held.append(bytearray(16 << 20))


def _allocate_without_end_in_build(item: MeasureInput, stage: Stage) -> MeasureResult:
    held = []
    while True:
        held.append(bytearray(16 << 20))


def _say_bad_alloc(item: MeasureInput, stage: Stage) -> MeasureResult:
    print("terminate called after throwing an instance of 'std::bad_alloc'", file=sys.stderr)
    os.abort()


def _crash_in_run(item: MeasureInput, stage: Stage) -> MeasureResult:
    stage.running()
    ctypes.string_at(0)
    return _succeed(item, stage)


def _crash_in_build(item: MeasureInput, stage: Stage) -> MeasureResult:
    ctypes.string_at(0)
    return _succeed(item, stage)


def _raise_in_build(item: MeasureInput, stage: Stage) -> MeasureResult:
    raise LookupError("no such loop")


def _raise_in_run(item: MeasureInput, stage: Stage) -> MeasureResult:
    stage.running()
    raise LookupError("no such loop")


def _exit_quietly(item: MeasureInput, stage: Stage) -> MeasureResult:
    stage.running()
    os._exit(3)


def _call_sys_exit(item: MeasureInput, stage: Stage) -> MeasureResult:
    stage.running()
    sys.exit("enough")


def _kill_itself(item: MeasureInput, stage: Stage) -> MeasureResult:
    stage.running()
    os.kill(os.getpid(), signal.SIGKILL)
    return _succeed(item, stage)


def _print_much_and_succeed(item: MeasureInput, stage: Stage) -> MeasureResult:
    for _ in range(10_000):
        print("x" * 100)
    return _succeed(item, stage)


def _print_much_and_fail(item: MeasureInput, stage: Stage) -> MeasureResult:
    for _ in range(10_000):
        print("x" * 100)
    print("the last words")
    os._exit(1)


def _forge_a_result(item: MeasureInput, stage: Stage) -> MeasureResult:
    stage.running()
    os.write(sandbox.RESULT_DESCRIPTOR, b"\0\0\0\x03abc")
    return _succeed(item, stage)


def _forge_in_build(item: MeasureInput, stage: Stage) -> MeasureResult:
    os.write(sandbox.RESULT_DESCRIPTOR, b'\0\0\0\x0c{"code":[1]}')
    time.sleep(3600)
    return _succeed(item, stage)


def _call_sys_exit_in_build(item: MeasureInput, stage: Stage) -> MeasureResult:
    sys.exit("enough")


def _write_a_huge_result(item: MeasureInput, stage: Stage) -> MeasureResult:
    stage.running()
    os.write(sandbox.RESULT_DESCRIPTOR, b"\x7f\0\0\0")
    return _succeed(item, stage)


def _answer_for_another(item: MeasureInput, stage: Stage) -> MeasureResult:
    stage.running()
    return MeasureResult("another", item.attempt, seconds=0.5, samples=(0.5,))


def _fork_a_grandchild(item: MeasureInput, stage: Stage) -> MeasureResult:
    stage.running()
    if os.fork() == 0:
        time.sleep(3600)
        os._exit(0)
    return _succeed(item, stage)


def _write_a_file(item: MeasureInput, stage: Stage) -> MeasureResult:
    stage.running()
    with open(item.trace["path"], "w") as file:
        file.write("here I was")
    return _succeed(item, stage)


def _ignore_signals_and_hang(item: MeasureInput, stage: Stage) -> MeasureResult:
    stage.running()
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGXCPU, signal.SIGALRM):
        signal.signal(number, signal.SIG_IGN)
    while True:
        time.sleep(60)


def _kill_the_fork_server(item: MeasureInput, stage: Stage) -> MeasureResult:
    stage.running()
    os.kill(os.getppid(), signal.SIGKILL)
    time.sleep(3600)
    return _succeed(item, stage)


def _look_around(item: MeasureInput, stage: Stage) -> MeasureResult:
    """Fails with a description of what it can see, which the test compares."""
    raise LookupError(
        repr(
            {
                "environment": sorted(os.environ),
                "descriptors": sorted(int(d) for d in os.listdir("/proc/self/fd"))[:-1],
                "stdin": os.read(0, 1),
                "cwd": os.getcwd(),
                "group is its own": os.getpgrp() == os.getpid(),
                "user": os.geteuid(),
                "no new privileges": _status_line("NoNewPrivs"),
                "threads": _status_line("Threads"),
            }
        )
    )


def _status_line(name: str) -> str:
    with open("/proc/self/status") as file:
        return next(line.split()[1] for line in file if line.startswith(f"{name}:"))


_BEHAVIOURS: dict[str, Callable[[MeasureInput, Stage], MeasureResult]] = {
    name.removeprefix("_"): value
    for name, value in list(globals().items())
    if name.startswith("_") and callable(value) and getattr(value, "__code__", None) is not None
}


def behaves() -> _Program:
    """Each candidate does what its trace says."""
    return _Program(_behaviour)


class Builds:
    """Each candidate does what its trace says, where that names a build, in a process that builds several."""

    def prepare(self, item: MeasureInput) -> Body | Split | Failure:
        return Split(_build, partial(_run_built, item))


_built: list[object] = []


def _build(item: MeasureInput) -> bytes | Failure:
    """Code that says who built it, as which of how many, when and where."""
    _built.append(bytearray(item.trace.get("keeps", 0)))
    behaviour = item.trace["behaviour"]
    if behaviour == "refuse":
        return Failure("constraint", "vectorize: no such loop")
    if behaviour in _IN_BUILD:
        _BEHAVIOURS[behaviour](item, _NoStage())
    time.sleep(item.trace.get("takes", 0.0))
    told = repr((os.getpid(), len(_built), time.monotonic(), sorted(os.sched_getaffinity(0))))
    return told.encode().ljust(item.trace.get("length", 0))


def _run_built(item: MeasureInput, code: bytes, stage: Stage) -> MeasureResult:
    if item.trace["behaviour"] != "say_who_built":
        return _BEHAVIOURS[item.trace["behaviour"]](item, stage)
    stage.running()
    raise LookupError(repr((os.getpid(), code.decode().strip())))


class _NoStage:
    def running(self) -> float | None:
        raise AssertionError("a build runs nothing")


_IN_BUILD = (
    *("raise_in_build", "crash_in_build", "hang_in_build", "allocate_without_end_in_build", "say_bad_alloc"),
    *("close_everything_and_exit", "forge_in_build", "call_sys_exit_in_build", "look_around"),
)


class Refuses:
    """Refuses every item before a child is forked."""

    def prepare(self, item: MeasureInput) -> Body | Failure:
        return Failure("build_error", "/blocks/0: no such block")


class CrashesInTheServer:
    """Has a bug outside the child."""

    def prepare(self, item: MeasureInput) -> Body | Failure:
        raise ZeroDivisionError("in the fork server")


class HangsInTheServer:
    """Never ends preparing."""

    def prepare(self, item: MeasureInput) -> Body | Failure:
        while True:
            pass


def does_not_start() -> _Program:
    raise ImportError("libtensor.so is missing")
