"""Tries schedules one after the other and tells of each on standard output, a line of JSON each.

`begin` comes before a schedule is built, so that whoever reads knows which one ended this process.
"""

from __future__ import annotations

import json
import random
import sys
import time

from draw import Walk
from minimal import minimal, reproduction
from trial import Failure, judge, program

from tilewright.compiler.schedule import Schedule, Trace


def walk(workload: str, seed: str) -> Walk:
    """The random schedule of this seed."""
    rng = random.Random(seed)
    w = Walk(Schedule(program(workload)), rng)
    w.run(rng.randint(1, 12))
    return w


def tell(**fields: object) -> None:
    print(json.dumps(fields), flush=True)


def main(arguments: list[str]) -> None:
    """worker.py TARGET < lines of `NUMBER SEED WORKLOAD`"""
    target = arguments[0]
    for line in sys.stdin:
        number, seed, workload = line.rstrip("\n").split(" ", 2)
        begun = time.monotonic()
        w = walk(workload, seed)
        tell(begin=int(number), trace=w.sch.trace.to_json())
        verdict = judge(workload, w.sch, target)
        told = {"end": int(number), "workload": workload, "applied": w.applied, "refused": w.refused}
        if isinstance(verdict, Failure):
            told |= _failed(workload, w.sch.trace, target, verdict)
        elif verdict is not None:
            told["unbuilt"] = verdict
        tell(**told, seconds=time.monotonic() - begun)


def _failed(workload: str, trace: Trace, target: str, failure: Failure) -> dict[str, str]:
    small = minimal(trace, program(workload), lambda t: _fails(workload, t, target, failure.kind))
    python = reproduction(workload, small, target)
    return {"failure": failure.kind, "message": failure.message, "python": python}


def _fails(workload: str, trace: Trace, target: str, kind: str) -> bool:
    verdict = judge(workload, trace.apply(program(workload)), target)
    return isinstance(verdict, Failure) and verdict.kind == kind


if __name__ == "__main__":
    main(sys.argv[1:])
