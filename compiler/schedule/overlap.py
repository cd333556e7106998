"""Overlapped tiles: some of their instances run twice, so that a reduction must begin afresh inside of each
tile."""

from __future__ import annotations

from ..arith import Var
from ..ir import Block, For, IterKind, PrimFunc
from .errors import ScheduleError


def check_overlaps(func: PrimFunc, primitive: str) -> None:
    """Every reduction over overlapped tiles runs whole inside of the loops that move a tile, and so does its
    init."""
    blocks = list(func.blocks())
    for path, b in blocks:
        if not b.is_reduction:
            continue
        tile = _tile_loops(b)
        moving = [n for n, f in enumerate(path) if f.var in tile]
        if not moving:
            continue
        root = path[moving[-1]]
        carried = b.loop_vars(IterKind.REDUCE)
        for f in path[: moving[-1]]:
            if f.var in carried:
                what = f"loop {root.var.name!r} moves an overlapped tile of {b.name!r}"
                carrier = f"inside of loop {f.var.name!r}, which carries the reduction"
                reason = f"{what} {carrier}; some steps would be added twice"
                raise ScheduleError(primitive, reason, func, root)
        if b.init is None:
            _check_init(func, blocks, b, root, primitive)


def _check_init(
    func: PrimFunc, blocks: list[tuple[tuple[For, ...], Block]], b: Block, root: For, primitive: str
) -> None:
    for path, other in blocks:
        if other.buffer is b.buffer and not other.is_reduction and not any(f.var is root.var for f in path):
            tile = f"loop {root.var.name!r} moves an overlapped tile of {b.name!r}"
            reason = f"{tile}, whose init {other.name!r} stands outside; some steps would be added twice"
            raise ScheduleError(primitive, reason, func, root)


def _tile_loops(b: Block) -> set[Var]:
    """The loop variables that move the base of an overlapped tile: those of the minima in the spatial
    bindings."""
    spatial = (p for p, kind in zip(b.binds, b.kinds, strict=True) if kind is IterKind.SPATIAL)
    return {v for p in spatial for v in p.clamped_vars()}
