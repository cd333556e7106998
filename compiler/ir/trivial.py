"""What the printed form leaves out: iteration variables that are just the loops around a block."""

from __future__ import annotations

from collections.abc import Sequence
from collections.abc import Set as AbstractSet

from ..arith import Atom, Poly, Var
from .expr import Buffer, Expr
from .stmt import Block, IterKind
from .visit import Path, loads


def loop_kinds(
    loops: Sequence[Var], buffer: Buffer, moving: AbstractSet[Var], value: Expr
) -> tuple[IterKind, ...]:
    """The kind of each loop's variable when a block iterates over just its loops: `reduce` where the block
    goes on from what it wrote and the variable does not move (is not in `moving`) what it writes."""
    goes_on = any(x.buffer is buffer for x in loads(value))
    return tuple(IterKind.REDUCE if goes_on and v not in moving else IterKind.SPATIAL for v in loops)


def is_trivial(b: Block, path: Path) -> bool:
    """Whether the iteration variables of `b` are those that its loops alone tell: one for each loop, bound to
    it, with its extent and the kind that `loop_kinds` gives."""
    loops = [f.var for f in path]
    if len(loops) != len(b.iters):
        return False
    for v, it, bind in zip(loops, b.iters, b.binds, strict=True):
        if bind.atom is not v or it.extent != v.extent:
            return False
    if len(set(b.iters)) != len(b.iters) or not _vars((*b.indices,)) <= set(b.iters):
        return False
    own = dict(zip(b.iters, loops, strict=True))
    moving = {own[v] for v in _vars(b.indices)}
    return loop_kinds(loops, b.buffer, moving, b.value) == b.kinds


def _vars(indices: Sequence[Poly]) -> set[Var]:
    return {v for i in indices for v in i.vars()}


def extent_of(bind: Poly) -> Poly | None:
    """The extent that an iteration variable has unless another one is given: that of the loop it is."""
    a: Atom | None = bind.atom
    return a.extent if type(a) is Var else None
