"""Where artifacts are made: a process of one thread that forks a confined child for each kind of work.

Run as `python -m tilewright.measure.run_only.bench DESCRIPTOR NAME` like the fork server of measurements
(measure.zygote), with requests {"item": a BuildInput, "path": where the artifact goes, "most_bytes": …} and
answers {"failure": a Failure or null, "seconds": …}. It runs no candidate.
"""

from __future__ import annotations

import gc
import json
import os
import signal
import socket
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path
from typing import Any

from ...compiler.codegen.errors import BuildError
from ...compiler.codegen.standalone import standalone_program
from ...compiler.interpret import NotPlain
from ...compiler.ir import PrimFunc, VerifyError, from_json
from ...compiler.schedule import ScheduleError, Trace, TraceError
from ...compiler.target import Target, TargetError
from .. import frames
from ..builder import Builder
from ..messages import Failure, Limits, MeasureInput
from ..reference import confined
from ..words import clip, size_of
from ..zygote import READY, die_with_the_parent
from .data import write_data
from .messages import BuildInput

_NO_CODE = (ScheduleError, TraceError, VerifyError, BuildError, TargetError)


@dataclass(slots=True)
class Bench:
    """Whoever has one must `clear` it in the end."""

    builder: Builder | None = None

    def make(self, item: BuildInput, path: Path, most_bytes: int) -> Failure | None:
        """Writes the artifact to `path`, or says why there is none."""
        try:
            failure = self._program(item, path) if item.kind == "program" else _data(item, path)
        except _NO_CODE as error:
            failure = Failure("build_error", clip(str(error)))
        if failure is None and (size := path.stat().st_size) > most_bytes:
            words = f"its {item.kind} has {size_of(size)}, and the limit is {size_of(most_bytes)}"
            failure = Failure("build_error", words, float(most_bytes), of_workload=item.kind == "data")
        return failure

    def clear(self) -> None:
        if self.builder is not None:
            self.builder.discard()
            self.builder = None

    def _program(self, item: BuildInput, path: Path) -> Failure | None:
        builder = self._builder_for(item.limits)
        builder.start(_candidate(item))
        what = builder.finish().what
        if builder.is_spent:
            self.clear()
        if isinstance(what, Failure):
            return what
        path.write_bytes(what)
        return None

    def _builder_for(self, limits: Limits) -> Builder:
        if self.builder is not None and self.builder.limits != limits:
            self.clear()
        if self.builder is None:
            self.builder = Builder.begin(_program_of, limits)
        return self.builder


def _candidate(item: BuildInput) -> MeasureInput:
    return MeasureInput(
        item.build, item.attempt, item.workload, item.target, item.trace, item.input_seed, item.limits
    )


def _program_of(item: MeasureInput) -> bytes | Failure:
    """Runs in the confined child."""
    try:
        func = _parsed(json.dumps(item.workload, sort_keys=True))
        scheduled = Trace.from_json(item.trace).apply(func).func
        return standalone_program(scheduled, Target.parse(item.target), item.limits.memory_bytes)
    except _NO_CODE as error:
        kind = "constraint" if isinstance(error, ScheduleError) else "build_error"
        return Failure(kind, clip(str(error)))  # type: ignore[arg-type]


@lru_cache(maxsize=4)
def _parsed(workload: str) -> PrimFunc:
    return from_json(json.loads(workload))


def _data(item: BuildInput, path: Path) -> Failure | None:
    try:
        reference = confined(_candidate(item))
    except NotPlain as error:
        return Failure("build_error", clip(str(error)), of_workload=True)
    if isinstance(reference, Failure):
        return reference
    write_data(reference, path)
    return None


def main(arguments: Sequence[str]) -> int:
    descriptor = int(arguments[0])
    die_with_the_parent()
    # Terminals and service managers signal whole groups; this process ends when its parent lets go of it.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    with socket.socket(fileno=descriptor) as control:
        _warm_up()
        frames.send(control, READY)
        bench = Bench()
        while (request := frames.receive(control)) is not None:
            frames.send(control, _answer(bench, request))
        bench.clear()
    return 0


def _answer(bench: Bench, request: dict[str, Any]) -> dict[str, Any]:
    begun = time.monotonic()
    item = BuildInput.from_json(request["item"])
    failure = bench.make(item, Path(request["path"]), request["most_bytes"])
    seconds = time.monotonic() - begun
    if failure is not None and failure.elapsed is None:
        failure = replace(failure, elapsed=seconds)
    return {"failure": None if failure is None else failure.to_json(), "seconds": seconds}


def _warm_up() -> None:
    """Loads all that a child may need, which cannot read modules as the user it becomes."""
    from ...compiler import topi
    from ...compiler.space import default_schedule

    func = topi.create({"op": "matmul", "m": 4, "n": 4, "k": 4})
    target = Target.parse("llvm -mcpu=x86-64")
    standalone_program(default_schedule(func, target).func, target)
    gc.collect()
    gc.freeze()


if __name__ == "__main__":
    os._exit(main(sys.argv[1:]))
