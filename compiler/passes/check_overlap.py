"""Overlapped tiles do work that may be done twice."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from ..arith import Fn, Poly, Var
from ..codegen.errors import LoweringError
from ..ir import Block, Buffer, For, LoopKind, PrimFunc, loads, walk


@dataclass(frozen=True, slots=True)
class CheckOverlap:
    """Refuses overlapped tiles that cannot be repeated. Changes nothing.

    The base of an overlapped tile is a minimum over the tile's loops, so that two iterations of these write
    some of the same elements. That is harmless if an iteration begins afresh: no buffer that it writes may
    be read before. The init of a reduction, its steps and what uses the result must all stand inside the
    tile's innermost loop. Iterations of a parallel loop run at once, so that what they all see must be
    written by one assignment. Runs on simplified programs, before buffers are compacted.
    """

    def run(self, func: PrimFunc) -> PrimFunc:
        seen: set[Var] = set()
        for path, b in func.blocks():
            for tile in _tiles(b):
                for f in path:
                    if f.kind is LoopKind.PARALLEL and f.var in tile:
                        _check_at_once(func, f, b)
                root = [f for f in path if f.var in tile][-1]
                if root.var not in seen:
                    seen.add(root.var)
                    _check(func, root)
        return func


def _tiles(b: Block) -> list[frozenset[Var]]:
    """For each minimum in the written indices, the loop variables that move the tile's base."""
    found: list[frozenset[Var]] = []
    for i in b.indices:
        _minima(i, found)
    return found


def _minima(p: Poly, found: list[frozenset[Var]]) -> None:
    for a in p.atoms():
        if type(a) is Fn and a.vars:
            if a.op == "min":
                found.append(a.vars)
            else:
                _minima(a.a, found)
                _minima(a.b, found)


def _check(func: PrimFunc, root: For) -> None:
    blocks = [b for _, b in walk(root.body)]
    written = {b.buffer for b in blocks}
    fresh: set[Buffer] = set()
    for b in blocks:
        for x in _reads(b):
            if x in written and x not in fresh:
                reason = (
                    f"loop {root.var.name!r} moves an overlapped tile, whose work is done twice, but "
                    f"{b.name!r} goes on from what {x.name} held before; "
                    "put the init inside of the loop, or mask the tail"
                )
                raise LoweringError("check_overlap", reason, func, root)
        fresh.add(b.buffer)


def _check_at_once(func: PrimFunc, at: For, b: Block) -> None:
    inside = [x for _, x in walk(at.body)]
    users = [x for _, x in func.blocks() if x.buffer is b.buffer or b.buffer in _reads(x)]
    if b.buffer in func.allocs and all(any(x is y for y in inside) for x in users):
        return
    if sum(x.buffer is b.buffer for x in inside) > 1 or any(b.buffer in _reads(x) for x in inside):
        reason = (
            f"iterations of loop {at.var.name!r} overlap in {b.buffer.name}, and {b.name!r} is not all that "
            "uses it there"
        )
        raise LoweringError("check_overlap", reason, func, at)


def _reads(b: Block) -> Iterable[Buffer]:
    return (x.buffer for x in loads(b.value))
