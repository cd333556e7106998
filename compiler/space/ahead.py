"""Constant operands, packed before the calls: what every rule does with them."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress

from ..arith import Var
from ..ir import Block, Buffer, IterKind, PrimFunc, loads
from ..ir.annotations import made_ahead
from ..schedule import BlockRV, LoopRV, Schedule, ScheduleError


def constants_of(func: PrimFunc, main: Block) -> tuple[Buffer, ...]:
    """What the block reads that is there before the calls and worth packing: there is nothing to arrange in a
    vector."""
    made = made_ahead(func)
    found = dict.fromkeys(x.buffer for x in loads(main.value) if x.buffer.constant or x.buffer in made)
    return tuple(b for b in found if len(b.shape) > 1)


def packed_order(main: Block, buffer: Buffer, lane: Var | None, steps: Sequence[Var] = ()) -> tuple[int, ...]:
    """The dimensions of a copy in the order in which a tile walks them: those that move with the reduction,
    those of the tile, that of the lanes. steps: the reduction's variables as they will be nested, where that
    is not as they stand."""
    load = next(x for x in loads(main.value) if x.buffer is buffer)
    if not steps:
        steps = [v for v, k in zip(main.iters, main.kinds, strict=True) if k is IterKind.REDUCE]

    def turn(d: int) -> tuple[int, int]:
        moves = load.indices[d].vars()
        if lane is not None and lane in moves:
            return 2, 0
        reduced = [n for n, v in enumerate(steps) if v in moves]
        return (0, reduced[-1]) if reduced else (1, 0)

    return tuple(sorted(range(len(buffer.shape)), key=turn))


def pack_ahead(sch: Schedule, copy: BlockRV, at: LoopRV) -> None:
    """Packs a copy of a constant before the calls, what an iteration of the loop reads side by side; where
    that is no box, in the copy's own order."""
    with suppress(ScheduleError):
        sch.compute_at(copy, at)
    sch.compute_ahead(copy)
