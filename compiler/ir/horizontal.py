"""Reductions over the lanes of a vector."""

from __future__ import annotations

from ..arith import Var
from .expr import Binary, Load
from .rules import REDUCERS
from .stmt import Block, IterKind


def combines_lanes(b: Block, lane: Var) -> bool:
    """Whether the steps that the loop `lane` takes are the elements of a register buffer, one for each
    iteration: as lanes of one vector they are combined with each other first, then with the result. The
    written element does not move with the loop."""
    value = b.value
    if type(value) is not Binary or value.op not in REDUCERS:
        return False
    own, part = value.a, value.b
    if type(own) is not Load or own.buffer is not b.buffer or type(part) is not Load:
        return False
    if part.buffer.scope != "register" or part.buffer is b.buffer:
        return False
    moving = {it for it, bind in zip(b.iters, b.binds, strict=True) if lane in bind.vars()}
    kinds = {k for it, k in zip(b.iters, b.kinds, strict=True) if it in moving}
    return (
        kinds == {IterKind.REDUCE}
        and not any(v in moving for i in (*b.indices, *own.indices) for v in i.vars())
        and any(v in moving for i in part.indices for v in i.vars())
    )
