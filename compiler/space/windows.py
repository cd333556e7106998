"""Windows: operands that a block reads at sums of a spatial and a reduction step."""

from __future__ import annotations

from dataclasses import dataclass

from ..arith import Fn, Var, poly
from ..ir import Block, IterKind, Load, loads
from .accesses import MAX_STRIDE


@dataclass(frozen=True, slots=True)
class Windows:
    """The parts of a block's iteration space. places: spatial variables that move a window. steps: reduction
    variables that move within it. channels: the other reduction variables."""

    places: tuple[Var, ...]
    steps: tuple[Var, ...]
    channels: tuple[Var, ...]

    @staticmethod
    def of(block: Block) -> Windows | None:
        """None for a block without windows, or with windows at a single place."""
        kind = dict(zip(block.iters, block.kinds, strict=True))
        places, steps = set[Var](), set[Var]()
        for x in loads(block.value):
            for i in x.indices:
                moving = [a for m in i.terms for a in m if isinstance(a, Var) and a in kind]
                here = {v for v in moving if kind[v] is IterKind.SPATIAL}
                there = {v for v in moving if kind[v] is IterKind.REDUCE}
                # A division takes a group's number from a channel, which moves no window.
                if len(here) == len(there) == 1 and all(len(m) < 2 for m in i.terms):
                    if i.atoms() - here - there or _elsewhere(block, here, x):
                        continue
                    places |= here
                    steps |= there
        if not any((v.extent.const or 2) > 1 for v in places):
            return None
        every = tuple(v for v in block.iters if kind[v] is IterKind.REDUCE)
        return Windows(
            tuple(v for v in block.iters if v in places),
            tuple(v for v in every if v in steps),
            tuple(v for v in every if v not in steps),
        )


def _elsewhere(block: Block, moved: set[Var], load: Load) -> bool:
    """Whether another operand moves, too: a group's number chooses channels, and is no place."""
    others = [x for x in loads(block.value) if x.buffer not in (load.buffer, block.buffer)]
    return any(i.vars() & moved for x in others for i in x.indices)


def lane_stride(load: Load, it: Var, places: tuple[Var, ...] = ()) -> int | None:
    """How many elements apart lanes along `it` read; None for more than MAX_STRIDE, for no fixed number, and
    where another place of a window lies between."""
    flat, pitch, passed = poly(0), poly(1), set[Var]()
    for i, extent in zip(reversed(load.indices), reversed(load.buffer.shape), strict=True):
        if it in i.vars() and passed & set(places):
            return None
        passed |= i.vars() - {it}
        flat, pitch = flat + i * pitch, pitch * extent
    if any(isinstance(a, Fn) and it in a.vars for a in flat.atoms()):
        return None
    stride = flat.coefficient(it)
    return stride if 0 <= stride <= MAX_STRIDE else None
