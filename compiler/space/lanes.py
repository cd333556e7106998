"""Lanes: how many, and of what."""

from __future__ import annotations

from ..arith import Poly
from ..ir import Block, buffers_read, only_moves
from ..schedule import Schedule
from ..target import Target


def lane_widths(target: Target, block: Block, extent: Poly) -> tuple[int, ...]:
    """One and half a machine register of the widest element that the block touches; the whole loop where that
    is shorter."""
    touched = (block.buffer, *buffers_read(block))
    if only_moves(block.value):
        widest = max(b.dtype.bytes for b in touched)
    else:
        widest = max(b.dtype.value_bytes for b in touched)
    full = target.lanes(widest * 8)
    most = extent.const or full
    return tuple(sorted({min(most, max(2, full // 2)), min(most, max(2, full))}))


def copy_in_lanes(sch: Schedule, name: str, target: Target) -> None:
    """The last loop of an elementwise block in vectors of what it writes."""
    loop = sch.get_loops(sch.get_block(name))[-1]
    bytes_ = sch.func.block(name)[1].buffer.dtype.bytes
    width = min(target.vector_bytes // bytes_, 1 << ((loop.var.extent.const or 1).bit_length() - 1))
    if width > 1:
        _, loop = sch.split(loop, [None, width])
        sch.vectorize(loop)
