"""Traces applied to programs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ..ir import PrimFunc
from .errors import TraceError
from .index_expr import function_of
from .schedule import BlockRV, LoopRV, Schedule
from .steps import STEPS
from .trace import Instruction, Trace

#: Of a program while it is scheduled: its blocks, and how deep its loops are nested.
MAX_BLOCKS = 1_000
MAX_DEPTH = 100


def replay(trace: Trace, func: PrimFunc) -> Schedule:
    """See `Trace.apply`."""
    sch = Schedule(func)
    names: dict[str, Any] = {}
    for n, i in enumerate(trace.instructions):
        at = f"/steps/{n}"
        args = {k: _value(i, k, names, at) for k in i.args}
        method = getattr(sch, i.name)
        if "loops" in args:
            out = method(*args["loops"])
        elif i.name == "sample_categorical":
            out = method(args["candidates"], name=i.outputs[0])
        elif i.name == "sample_perfect_tile":
            out = method(**args, names=i.outputs)[1:]
        else:
            out = method(**args)
        _bind(names, i, out, at)
        _check_size(sch.func, at)
    return sch


def _check_size(func: PrimFunc, at: str) -> None:
    """Steps may double a program each time, and what is nested too deeply cannot be lowered."""
    blocks = deepest = 0
    for path, _ in func.blocks():
        blocks, deepest = blocks + 1, max(deepest, len(path))
    if blocks > MAX_BLOCKS:
        raise TraceError(f"after this step there are {blocks} blocks; at most {MAX_BLOCKS} are allowed", at)
    if deepest > MAX_DEPTH:
        raise TraceError(f"after this step loops are nested {deepest} deep; at most {MAX_DEPTH} may be", at)


def _value(i: Instruction, key: str, names: dict[str, Any], at: str) -> Any:
    v = i.args[key]
    kind = STEPS[i.name].args[key]
    if kind in ("block", "loop", "target"):
        return _named(v, kind, names, f"{at}/{key}")
    if kind == "loops":
        return [_named(x, "loop", names, f"{at}/{key}") for x in v]
    if kind == "map":
        return function_of(v)
    if kind == "factors":
        return [_named(x, "knob", names, f"{at}/{key}") if isinstance(x, str) else x for x in v]
    return v


def _named(name: str, kind: str, names: dict[str, Any], at: str) -> Any:
    if name not in names:
        raise TraceError(f"no earlier step gave {name!r}", at)
    found = names[name]
    wanted = {"block": BlockRV, "loop": LoopRV}.get(kind)
    if wanted is not None and not isinstance(found, wanted):
        raise TraceError(f"{name!r} is no {kind}", at)
    return found


def _bind(names: dict[str, Any], i: Instruction, out: Any, at: str) -> None:
    got: Sequence[Any] = out if isinstance(out, list) else [] if out is None else [out]
    if len(got) != len(i.outputs):
        raise TraceError(
            f"{i.name} gave {len(got)} results on this program, the trace names {len(i.outputs)}", at
        )
    names.update(zip(i.outputs, got, strict=True))
