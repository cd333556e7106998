"""The two meanings of a block's predicates."""

from __future__ import annotations

from ..arith import Poly
from ..ir import Block, IterKind

Conjunction = tuple[Poly, ...]


def split_predicates(b: Block) -> tuple[Conjunction, Conjunction]:
    """(which instances exist, which steps of a reduction do) of a simplified block.

    A predicate over a loop that carries the reduction, and over none that moves the written element, leaves
    out steps: the element is there in any case. All others may keep the block from writing outside of its
    buffer.
    """
    carried = b.loop_vars(IterKind.REDUCE)
    if not carried or not b.predicates:
        return b.predicates, ()
    moving = frozenset(v for i in b.indices for v in i.vars())
    steps = tuple(p for p in b.predicates if p.vars() & carried and not p.vars() & moving)
    return tuple(p for p in b.predicates if p not in steps), steps
