"""The rule for blocks without a reduction: lanes along the last dimension of the output, a few vectors
unrolled."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from ..arith import poly
from ..ir import Block, InBounds, IndexValue, PrimFunc, loads, walk_expr
from ..schedule import Schedule
from ..target import Target
from .accesses import operations
from .factors import MAX_CODE
from .groups import Group
from .lanes import lane_widths
from .sketch import Constraint

UNROLL = (1, 2, 4, 8)


def fusable_dims(block: Block) -> int:
    """How many trailing dimensions can run as one: every access walks them contiguously, in full, or does not
    see them at all."""
    if any(type(e) in (InBounds, IndexValue) for e in walk_expr(block.value)):
        return 1
    count = 0
    for n in range(1, len(block.indices) + 1):
        tail = block.indices[-n:]
        shape = block.buffer.shape[-n:]
        if any(i.atom is not it for i, it in zip(tail, block.iters[-n:], strict=True)):
            break
        used = set(block.iters[-n:])
        same = all(
            (len(x.indices) >= n and x.indices[-n:] == tail and x.buffer.shape[-n:] == shape)
            or not any(i.vars() & used for i in x.indices)
            for x in loads(block.value)
        )
        if not same:
            break
        count = n
    return max(count, 1)


@dataclass(frozen=True, slots=True)
class Elementwise:
    """Fuses what walks memory in order, then splits into unrolled vectors; a block whose last dimension no
    loop walks stays as written."""

    name: str = "elementwise"
    fallback: bool = False

    def apply(self, sch: Schedule, group: Group, target: Target, tag: str) -> list[Constraint]:
        """Applies the structure; answers what the knobs must satisfy."""
        block = sch.get_block(group.main)
        _, b = sch.func.block(group.main)
        loops = sch.get_loops(block)
        along = b.indices[-1].atom if b.indices else None
        if not loops or along not in b.iters:
            return []
        fused = fusable_dims(b)
        last = loops[-1]
        if along is not b.iters[-1]:
            last = loops[b.iters.index(along)]
            sch.reorder(*(x for x in loops if x is not last), last)
        elif fused > 1:
            last = sch.fuse(*loops[-fused:])
        extent = last.var.extent.const or 1
        if extent < 2:
            return []
        lanes = sch.sample_categorical(lane_widths(target, b, last.var.extent), name=f"{tag}vl")
        unroll = sch.sample_categorical(tuple(u for u in UNROLL if u == 1 or u < extent), name=f"{tag}u")
        _, u, v = sch.split(last, [None, unroll, lanes])
        sch.unroll(u)
        sch.vectorize(v)
        work = operations(b)
        return [
            Constraint(f"{tag}beyond the extent", poly(lanes) * unroll, extent + lanes.domain[-1] - 1),
            Constraint(f"{tag}unrolled code", poly(unroll) * work, max(MAX_CODE, work)),
        ]


def elementwise(func: PrimFunc, group: Group, target: Target) -> Iterator[Elementwise]:
    """The one structure of a block without a reduction."""
    if not func.block(group.main)[1].is_reduction:
        yield Elementwise()
