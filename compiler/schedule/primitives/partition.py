"""loop_partition: one loop as several, one after the other."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise

from ...arith import Atom, Knob, Poly, Var, is_contiguous, is_injective, poly, proven_negative, region
from ...ir import Block, Buffer, For, IterKind, LoopKind, PrimFunc, Stmt
from ...ir.func import fresh
from ..depend import Access, accesses, covers, inner_loops
from ..errors import ScheduleError
from ..find import blocks_under, find_loop, unit_of, units_of
from ..overlap import check_overlaps
from .copies import copy_body
from .loops import rebound

Point = int | Knob
MAX_PARTS = 16


def partition_points(func: PrimFunc, at: For, points: Sequence[Point]) -> tuple[list[Poly], list[Poly]]:
    """Where the parts begin, with the extent behind the last one; and polynomials that must be at most 0 for
    the points to rise, where that depends on knobs."""
    if isinstance(points, str) or not isinstance(points, Sequence) or not points:
        reason = f"points are a list such as [8] or [-2], got {points!r}"
        raise ScheduleError("loop_partition", reason, func, at)
    if len(points) >= MAX_PARTS:
        reason = f"at most {MAX_PARTS} parts are made, got {len(points)} points"
        raise ScheduleError("loop_partition", reason, func, at)
    extent = at.var.extent
    cuts = [poly(0)]
    for p in points:
        if not (isinstance(p, Knob) or (type(p) is int and abs(p) < 2**31)):
            reason = f"a point is an integer (from the end when below 0) or a knob, got {p!r}"
            raise ScheduleError("loop_partition", reason, func, at)
        cuts.append(extent + p if type(p) is int and p < 0 else poly(p))
    cuts.append(extent)
    open_: list[Poly] = []
    for low, high in pairwise(cuts):
        short = low - high + 1
        if proven_negative(short - 1):
            continue
        if not short.knobs():
            reason = f"the points {list(points)} do not rise from above 0 to below the extent {extent!r}"
            raise ScheduleError("loop_partition", reason, func, at)
        open_.append(short)
    return cuts, open_


def check_partition(func: PrimFunc, at: For, first: Poly, primitive: str) -> None:
    """A serial loop. A reduction that it carries begins in the first part, of `first` iterations, and only
    there, or its init was decomposed."""
    if at.kind is not LoopKind.SERIAL:
        reason = f"loop {at.var.name!r} is {at.kind} already; partition it first"
        raise ScheduleError(primitive, reason, func, at)
    for _, b in blocks_under(at):
        carried = b.loop_vars(IterKind.REDUCE)
        if b.init is None or at.var not in carried:
            continue
        steps = [n for n, k in enumerate(b.kinds) if k is IterKind.REDUCE]
        binds, extents = [b.binds[n] for n in steps], [b.iters[n].extent for n in steps]
        if not proven_negative(-first) or not is_injective(binds, extents, carried):
            loop = f"loop {at.var.name!r} carries the reduction of {b.name!r}, which may not begin"
            reason = f"{loop} in the first part alone; decompose its init first"
            raise ScheduleError(primitive, reason, func, at)


def loop_partition(
    func: PrimFunc, loop: Var, points: Sequence[Point]
) -> tuple[PrimFunc, list[Var], list[Poly]]:
    """Runs a loop as several consecutive loops that begin at 0 and at the points. A point below 0 counts from
    the end.

    before: `for i in range(10): B[i] = …`
    after `points=[8]`: `for i_0 in range(8): B[i_0] = …` then `for i_1 in range(2): B[i_1 + 8] = …`

    The first part keeps the blocks; the others get copies, with iteration variables and names of their own
    (`B_1`), and of buffers that each iteration fills before it reads them. Predicates that hold in a whole
    part vanish there. Legal for a serial loop; the steps of a reduction stay in their order, and its init
    stays in the first part. Refused: points that do not rise inside of the loop, a reduction that may not
    begin in the first part. Returns the program, the loops in order, and polynomials over knobs that must
    stay at most 0.
    """
    at = find_loop(func, loop, "loop_partition")
    cuts, open_ = partition_points(func, at, points)
    check_partition(func, at, cuts[1], "loop_partition")
    taken = {f.var.name for path, _ in func.blocks() for f in path}
    names = [fresh(f"{loop.name}_{n}", taken) for n in range(len(cuts) - 1)]
    divided, parts = partitioned(func, at, cuts, names)
    check_overlaps(divided, "loop_partition")
    return divided, parts, open_


def partitioned(
    func: PrimFunc, at: For, cuts: Sequence[Poly], names: Sequence[str]
) -> tuple[PrimFunc, list[Var]]:
    """The loop as one loop from each cut to the next, under the given names. Checks nothing."""
    variables = [Var(name, high - low) for name, low, high in zip(names, cuts[:-1], cuts[1:], strict=True)]
    fillable = refilled(func, at)
    blocks = {b.name for _, b in func.blocks()} | {str(unit_of(f)) for _, f in units_of(func)}
    taken = {b.name for b in func.params + func.allocs}
    new: list[Buffer] = []
    loops: list[Stmt] = []

    def keeps_init(b: Block) -> bool:
        return at.var not in b.loop_vars(IterKind.REDUCE)

    for n, (var, low) in enumerate(zip(variables, cuts[:-1], strict=True)):
        values: dict[Atom, Poly] = {at.var: low + poly(var)}
        if n == 0:
            body = rebound(at.body, values)
        else:
            own: dict[Buffer, Buffer] = {}
            for b in fillable:
                own[b] = replace(b, name=fresh(b.name, taken))
                taken.add(own[b].name)
            new += own.values()
            body = copy_body(at.body, values, blocks, own, keeps_init)
        loops.append(replace(at, var=var, body=body))

    def visit(s: Stmt) -> Stmt | tuple[Stmt, ...]:
        return tuple(loops) if type(s) is For and s.var is at.var else s

    divided = func.rewrite(visit)
    return replace(divided, allocs=(*func.allocs, *new)), variables


def refilled(func: PrimFunc, at: For) -> list[Buffer]:
    """The allocated buffers of which every iteration of the loop reads only what it has written itself, and
    that nobody else uses: each part can have its own."""
    under = {b.name for _, b in blocks_under(at)}
    outside = {a.buffer for s in func.body for a in accesses((s,)) if a.block.name not in under}
    uses: dict[Buffer, list[Access]] = {}
    for a in accesses(at.body):
        uses.setdefault(a.buffer, []).append(a)
    inner = inner_loops(at.body)
    return [
        b for b in func.allocs if b in uses and b not in outside and _begins_afresh(uses[b], at.var, inner)
    ]


def _begins_afresh(uses: list[Access], loop: Var, inner: set[Var]) -> bool:
    first = uses[0].block
    goes_on = any(a.block is first and not a.is_write for a in uses)
    if goes_on and (first.init is None or loop in first.loop_vars(IterKind.REDUCE)):
        return False
    if not uses[0].is_write:
        return False
    written = [a.indices for a in uses if a.is_write]
    if not all(is_contiguous(p, inner) for indices in written for p in indices):
        return False
    writes = region(written, inner)
    reads = region([a.indices for a in uses if not a.is_write], inner)
    return reads == [] or (writes is not None and reads is not None and covers(writes, reads))
