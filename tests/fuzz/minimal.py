"""A failing trace made as short as possible, and the Python that shows the failure."""

from __future__ import annotations

from collections.abc import Callable

from tilewright.compiler.ir import PrimFunc
from tilewright.compiler.schedule import Instruction, ScheduleError, Trace, TraceError

_LOOKS = ("get_block", "get_loops", "get_blocks", "get_producers", "get_consumers")


def minimal(trace: Trace, func: PrimFunc, fails: Callable[[Trace], bool]) -> Trace:
    """The trace without every step that the failure does not need. `fails` applies and judges."""
    steps = list(trace.instructions)
    shrunk = True
    while shrunk:
        shrunk = False
        for n in reversed(range(len(steps))):
            fewer = without(steps, n)
            if len(fewer) < len(steps) and applies(fewer, func) and fails(Trace(tuple(fewer))):
                steps, shrunk = fewer, True
                break
    return Trace(tuple(steps))


def without(steps: list[Instruction], n: int) -> list[Instruction]:
    """The steps without step n and all that refer to its results."""
    gone = set(steps[n].outputs)
    out = steps[:n]
    for i in steps[n + 1 :]:
        if _names(i) & gone:
            gone |= set(i.outputs)
        else:
            out.append(i)
    return out


def _names(i: Instruction) -> set[str]:
    found: set[str] = set()
    for v in i.args.values():
        if isinstance(v, str):
            found.add(v)
        elif isinstance(v, tuple):
            found |= {x for x in v if isinstance(x, str)}
    return found


def applies(steps: list[Instruction], func: PrimFunc) -> bool:
    try:
        Trace(tuple(steps)).apply(func)
    except (ScheduleError, TraceError):
        return False
    return True


def reproduction(workload: str, trace: Trace, target: str) -> str:
    """A program that shows the failure, to be run beside this file."""
    lines = [
        "import tilewright",
        "from trial import judge, program",
        "",
        f"sch = tilewright.Schedule(program({workload!r}))",
        trace.script().rstrip(),
        f"print(judge({workload!r}, sch, {target!r}))",
    ]
    return "\n".join(lines)
