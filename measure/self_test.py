"""What a machine's measuring is good for, as far as it can test itself: what `worker doctor` asks of it."""

from __future__ import annotations

import json
import os
import resource
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from .errors import MeasureError
from .messages import Failure, Limits, MeasureInput, MeasureResult
from .program import Body, Stage
from .runner import Runner

__all__ = ["Protections", "ShowsProtections", "protections", "timer_resolution"]

_PROGRAM = f"{__name__}:ShowsProtections"
_ITEM = MeasureInput("self-test", 0, {}, {}, {}, limits=Limits(5.0, 5.0, 1 << 28))
_LIMITS = {
    "processor time": resource.RLIMIT_CPU,
    "address space": resource.RLIMIT_AS,
    "file size": resource.RLIMIT_FSIZE,
    "core files": resource.RLIMIT_CORE,
    "processes": resource.RLIMIT_NPROC,
}


@dataclass(frozen=True, slots=True)
class Protections:
    """What confines a candidate here. `limits` by what they limit, None for no limit; `user` is its user id;
    `descriptors` the files that it holds open, and `variables` how many it has of the environment."""

    limits: dict[str, int | None]
    no_new_privs: bool | None
    user: int
    own_group: bool
    descriptors: tuple[int, ...]
    variables: int

    @property
    def missing(self) -> list[str]:
        """What should confine it and does not, in words."""
        missing = [f"no limit on {what}" for what, limit in self.limits.items() if limit is None]
        if self.no_new_privs is False:
            missing.append("it may gain privileges (no_new_privs)")
        if self.user == 0:
            missing.append("it runs as root")
        if not self.own_group:
            missing.append("it shares a process group")
        if self.descriptors != (0, 1, 2, 3):
            missing.append(f"it holds the descriptors {', '.join(map(str, self.descriptors))} open")
        return missing


class ShowsProtections:
    """A program for a Runner, whose candidate tells of its confinement and does nothing else."""

    def prepare(self, item: MeasureInput) -> Body:
        def body(stage: Stage) -> MeasureResult:
            stage.running()
            # A result carries numbers only; what a failure says is text.
            return MeasureResult.failed(item, Failure("run_error", json.dumps(_seen())))

        return body


def protections() -> Protections:
    """What a candidate finds around it, asked of one that runs as candidates do. Raises MeasureError where
    none can be run."""
    with Runner(_PROGRAM) as runner:
        result = runner.measure(_ITEM)
    assert result.failure is not None, "this program gives no time"
    try:
        said: dict[str, Any] = json.loads(result.failure.message)
    except ValueError as error:
        words = f"\n{result.failure.last_words}" if result.failure.last_words else ""
        raise MeasureError(f"{result.failure.kind}: {result.failure.message}{words}") from error
    return Protections(**{**said, "descriptors": tuple(said["descriptors"])})


def timer_resolution(tries: int = 20) -> float:
    """The least step in seconds by which the clock of this thread's processor time was seen to move."""
    steps = []
    for _ in range(tries):
        start = time.thread_time()
        while (now := time.thread_time()) == start:
            pass
        steps.append(now - start)
    return min(steps)


def _seen() -> dict[str, Any]:
    return {
        "limits": {what: _limit(number) for what, number in _LIMITS.items()},
        "no_new_privs": _no_new_privs(),
        "user": os.geteuid(),
        "own_group": os.getpgrp() == os.getpid(),
        "descriptors": [number for number in range(64) if _is_open(number)],
        "variables": len(os.environ),
    }


def _limit(which: int) -> int | None:
    soft, _ = resource.getrlimit(which)
    return None if soft == resource.RLIM_INFINITY else soft


def _is_open(number: int) -> bool:
    try:
        os.fstat(number)
    except OSError:
        return False
    return True


def _no_new_privs() -> bool | None:
    try:
        lines = Path("/proc/self/status").read_text().splitlines()
    except OSError:
        return None
    return next((line.split()[1] == "1" for line in lines if line.startswith("NoNewPrivs:")), None)
