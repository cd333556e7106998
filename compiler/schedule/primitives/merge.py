"""merge_loops: neighbouring loops as one."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise

from ...arith import Atom, Poly, Var, poly
from ...ir import For, LoopKind, PrimFunc, Stmt
from ..depend import Access, crossing
from ..errors import ScheduleError
from ..find import find_loop
from ..overlap import check_overlaps
from .loops import rebound


def check_merge_loops(func: PrimFunc, loops: Sequence[Var]) -> list[For]:
    """At least two serial loops of one extent, each right behind the one before; what one block writes,
    another one uses in the same iteration only."""
    found = [find_loop(func, v, "merge_loops") for v in loops]
    if len(found) < 2:
        at = found[0] if found else None
        raise ScheduleError("merge_loops", "at least two loops are needed", func, at)
    for f in found:
        if f.kind is not LoopKind.SERIAL:
            reason = f"loop {f.var.name!r} is {f.kind} already; merge it first"
            raise ScheduleError("merge_loops", reason, func, f)
    for first, second in pairwise(found):
        if _follower(func, first) is not second:
            reason = f"loop {second.var.name!r} does not stand right behind {first.var.name!r}"
            raise ScheduleError("merge_loops", reason, func, second)
        if first.var.extent != second.var.extent:
            one, other = f"{first.var.name!r} has {first.var.extent!r}", f"{second.var.name!r} has"
            reason = f"loop {one} iterations, {other} {second.var.extent!r}"
            raise ScheduleError("merge_loops", reason, func, second)
    for n, second in enumerate(found):
        for first in found[:n]:
            met = crossing(first, second)
            if met is not None:
                raise ScheduleError("merge_loops", _reason(*met), func, second)
    return found


def _reason(a: Access, b: Access) -> str:
    one = f"{b.block.name!r} {'writes' if b.is_write else 'reads'} {b.buffer.name}"
    other = f"{a.block.name!r} {'writes' if a.is_write else 'reads'} it"
    return f"{one}, and it is not proved that {other} at that place in the same iteration only"


def _follower(func: PrimFunc, loop: For) -> Stmt | None:
    """The statement right behind the loop, where it stands."""
    bodies = [func.body, *(f.body for path, _ in func.blocks() for f in path)]
    for body in bodies:
        for s, behind in pairwise(body):
            if s is loop:
                return behind
    return None


def merge_loops(func: PrimFunc, loops: Sequence[Var]) -> tuple[PrimFunc, Var]:
    """Runs neighbouring loops as one, whose iteration holds those of the loops one after the other.

    before: `for i in range(8): B[i] = A[i] * 2` then `for j in range(8): C[j] = B[j] + 1`
    after: `for i in range(8): { B[i] = A[i] * 2; C[i] = B[i] + 1 }`
    Legal for serial loops of equal extents, each right behind the one before, where it is proved that what
    one writes is used by another one in the same iteration only. Returns the program and the loop.
    """
    found = check_merge_loops(func, loops)
    var = Var(found[0].var.name, found[0].var.extent)
    body: list[Stmt] = []
    for f in found:
        values: dict[Atom, Poly] = {f.var: poly(var)}
        body += rebound(f.body, values)
    merged = replace(found[0], var=var, body=tuple(body))
    others = {f.var for f in found[1:]}

    def visit(s: Stmt) -> Stmt | tuple[Stmt, ...]:
        if type(s) is not For:
            return s
        return merged if s.var is found[0].var else () if s.var in others else s

    new = func.rewrite(visit)
    check_overlaps(new, "merge_loops")
    return new, var
