"""compute_at: a block moved under a loop of its consumers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from ...arith import (
    Poly,
    Var,
    not_negative,
    poly,
    region,
    substitute,
)
from ...arith.region import Range
from ...ir import Block, For, LoopKind, PrimFunc, Stmt, loads, nest
from ...ir.func import fresh
from ..errors import ScheduleError
from ..find import blocks_under, check_in_no_unit, find_block, find_loop, readers, root_of, writers
from ..overlap import check_overlaps
from .loops import add_predicate


def _bound_loads(block: Block, buffer: object) -> list[tuple[Poly, ...]]:
    """The indices, over loop variables, at which the block reads the buffer."""
    m = block.binding
    return [tuple(substitute(i, m) for i in x.indices) for x in loads(block.value) if x.buffer is buffer]


def check_target(func: PrimFunc, at: For, path: tuple[For, ...], block: Block, primitive: str) -> None:
    """The loop does not stand around the block already, and is no vector loop; the block is no part of a
    unit."""
    check_in_no_unit(func, path, block, primitive)
    if any(f.var is at.var for f in path):
        raise ScheduleError(primitive, f"{block.name!r} is under loop {at.var.name!r} already", func, at)
    for outer in (
        f
        for p, _ in func.blocks()
        if any(f is at for f in p)
        for f in p[: [f is at for f in p].index(True) + 1]
    ):
        if outer.kind is LoopKind.VECTORIZED:
            raise ScheduleError(
                primitive,
                f"loop {outer.var.name!r} is a vector loop; whole loops cannot be its lanes",
                func,
                at,
            )


def check_compute_at(func: PrimFunc, block: Block, path: tuple[For, ...], at: For) -> None:
    """An intermediate with one writer, all of whose readers are under the loop, and whose own inputs are
    ready there."""

    def refuse(reason: str) -> ScheduleError:
        return ScheduleError("compute_at", reason, func, block)

    check_target(func, at, path, block, "compute_at")
    if block.buffer in func.params:
        raise refuse(
            f"{block.name!r} writes the output {block.buffer.name}, which is needed outside of the loop"
        )
    if writers(func, block.buffer) != [block]:
        raise refuse(f"{block.buffer.name} is written by more than one block")
    if block.is_reduction and block.init is None:
        raise refuse(f"the init of {block.name!r} was decomposed; move it before that")
    under = {b.name for _, b in blocks_under(at)}
    outside = [r.name for r in readers(func, block.buffer) if r.name not in under]
    if outside:
        raise refuse(
            f"{', '.join(map(repr, outside))} reads {block.buffer.name} outside of loop {at.var.name!r}"
        )
    if not under & {r.name for r in readers(func, block.buffer)}:
        raise refuse(f"nobody under loop {at.var.name!r} reads {block.buffer.name}")
    target = root_of(func, next(iter(under)))
    if root_of(func, block.name) > target:
        raise refuse(f"{block.name!r} comes after loop {at.var.name!r}")
    _check_inputs_ready(func, block, at, "compute_at", refuse(""))


def _check_inputs_ready(func: PrimFunc, block: Block, at: For, primitive: str, error: ScheduleError) -> None:
    """What the moved block reads must be complete when an iteration of the loop begins."""
    under = {b.name for _, b in blocks_under(at)}
    target = root_of(func, next(iter(under)))
    for x in loads(block.value):
        if x.buffer is block.buffer:
            continue
        for w in writers(func, x.buffer):
            if root_of(func, w.name) >= target:
                reason = f"{block.name!r} reads {x.buffer.name}, which {w.name!r} writes in that loop nest"
                raise ScheduleError(primitive, reason, error.func, error.at)


def identity_dims(
    func: PrimFunc, block: Block, indices: Sequence[Poly], primitive: str, buffer: str
) -> dict[Var, int]:
    """Iteration variable -> the dimension that it alone indexes. Refused where an index is anything but a
    variable or a constant."""
    dims: dict[Var, int] = {}
    for d, e in enumerate(indices):
        a = e.atom
        if isinstance(a, Var) and a in block.iters and a not in dims:
            dims[a] = d
        elif e.vars():
            reason = f"{block.name!r} indexes {buffer} by {e!r}, which is no iteration variable of its own"
            raise ScheduleError(primitive, reason, func, block)
    return dims


def renest(
    block: Block, dims: dict[Var, int], box: list[Range], keep: Sequence[Poly], func: PrimFunc, primitive: str
) -> tuple[tuple[Stmt, ...], list[Var]]:
    """New loops for the block: an iteration variable in `dims` covers its dimension's box, the others run in
    full."""
    loops: list[Var] = []
    binds: list[Poly] = []
    predicates = list(keep)
    taken = {f.var.name for path, _ in func.blocks() for f in path}
    for it in block.iters:
        own = it.name if it.name.startswith(block.name) else f"{block.name}_{it.name}"
        name = fresh(own, taken)
        if it in dims:
            base, span = box[dims[it]]
            if span.vars():
                raise ScheduleError(
                    primitive, f"the size of the region of {it.name!r} changes with a loop", func, block
                )
            v = Var(name, not_negative(span))
            binds.append(base + v)
            # A guarded read may reach over both ends of what it reads.
            predicates += [base + v - it.extent, -(base + v) - 1]
        else:
            v = Var(name, it.extent)
            binds.append(poly(v))
        loops.append(v)
    new = replace(block, binds=tuple(binds), predicates=())
    for p in predicates:
        new = add_predicate(new, p)
    return nest(loops, new), loops


def shared_outer_predicates(blocks: Sequence[Block], inner: set[Var]) -> list[Poly]:
    """Predicates that all blocks carry and that hold for a whole iteration: what does not exist for them does
    not for a moved block."""
    first = blocks[0].predicates
    return [p for p in first if not p.vars() & inner and all(p in b.predicates for b in blocks)]


def moved_under(func: PrimFunc, name: str, loop: Var, body: tuple[Stmt, ...], at_end: bool) -> PrimFunc:
    """The block taken away, and `body` at the start or the end of the loop's body."""

    def visit(s: Stmt) -> Stmt | tuple[Stmt, ...]:
        if type(s) is Block and s.name == name:
            return ()
        if type(s) is For and s.var is loop:
            return replace(s, body=(*s.body, *body) if at_end else (*body, *s.body))
        return s

    return func.rewrite(visit)


def compute_at(func: PrimFunc, name: str, loop: Var) -> tuple[PrimFunc, list[Var]]:
    """Moves a producer to the start of a loop's body, where it computes just what that iteration reads.

    before: `for i: B[i] = …` then `for i_0: for i_1: C[i_0 * 4 + i_1] = B[…]`
    after `compute_at(B, i_0)`: `for i_0: { for i: B[i_0 * 4 + i] = …; for i_1: C[…] = B[…] }`
    Returns the program and the block's new loops, one for each iteration variable. Refused: outputs, readers
    outside of the loop, a region that is no box, inputs written in the nest it would move to.
    """
    path, block = find_block(func, name, "compute_at")
    at = find_loop(func, loop, "compute_at")
    check_compute_at(func, block, path, at)
    under = list(blocks_under(at))
    inner = {f.var for p, _ in under for f in p if f is not at}
    consumers = [b for _, b in under if any(x.buffer is block.buffer for x in loads(b.value))]
    box = region([i for b in consumers for i in _bound_loads(b, block.buffer)], inner)
    if box is None:
        raise ScheduleError(
            "compute_at", f"what loop {loop.name!r} reads of {block.buffer.name} is not a box", func, at
        )
    dims = identity_dims(func, block, block.indices, "compute_at", block.buffer.name)
    body, loops = renest(block, dims, box, shared_outer_predicates(consumers, inner), func, "compute_at")
    moved = moved_under(func, name, loop, body, at_end=False)
    check_overlaps(moved, "compute_at")
    return moved, loops


def compute_locations(func: PrimFunc, name: str) -> list[Var]:
    """The loops under which `compute_at` may move a block, outermost first, in program order.

    Raises ScheduleError where there is none.
    """
    _, block = find_block(func, name, "sample_compute_location")
    found: list[Var] = []
    for reader in readers(func, block.buffer):
        for f in find_block(func, reader.name, "sample_compute_location")[0]:
            if f.var in found:
                continue
            try:
                compute_at(func, name, f.var)
            except ScheduleError:
                continue
            found.append(f.var)
    if not found:
        raise ScheduleError(
            "sample_compute_location", f"{name!r} may be moved under no loop of its readers", func, block
        )
    return found
