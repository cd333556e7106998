"""Batches: iteration variables over which nothing is used again."""

from __future__ import annotations

from ..ir import Block, IterKind, loads


def batches(main: Block) -> set[int]:
    """Positions of the spatial iteration variables that move each of several reads: nothing is used again
    from one of their steps to the next."""
    reads = [x for x in loads(main.value) if x.buffer is not main.buffer]
    moved = [{v for i in x.indices for v in i.vars()} for x in reads]
    return {
        n
        for n, (v, k) in enumerate(zip(main.iters, main.kinds, strict=True))
        if k is IterKind.SPATIAL and len(reads) > 1 and all(v in m for m in moved)
    }
