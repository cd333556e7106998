"""decompose_reduction: the init of a reduction as a block of its own."""

from __future__ import annotations

from dataclasses import replace

from ...arith import Atom, Poly, Var, is_injective, poly, proven_negative, substitute
from ...ir import Block, For, IterKind, PrimFunc, Stmt, map_expr
from ...ir.annotations import without_unit
from ..depend import accesses, inner_loops
from ..errors import ScheduleError
from ..find import find_block, find_loop
from ..overlap import check_overlaps


def check_decompose_reduction(func: PrimFunc, block: Block, path: tuple[For, ...], at: For) -> None:
    """The block has its init still, the loop stands around it, and no loop outside of it carries the
    reduction."""
    if block.init is None:
        what = "has no init; it was decomposed already" if block.is_reduction else "is not a reduction"
        raise ScheduleError("decompose_reduction", f"{block.name!r} {what}", func, block)
    if not any(f.var is at.var for f in path):
        raise ScheduleError(
            "decompose_reduction", f"loop {at.var.name!r} is not around {block.name!r}", func, at
        )
    carried = block.loop_vars(IterKind.REDUCE)
    position = next(n for n, f in enumerate(path) if f.var is at.var)
    inner = {f.var for f in path[position:]}
    if not is_injective(block.binds, [it.extent for it in block.iters], inner):
        reason = (
            f"steps of {block.name!r} are repeated under loop {at.var.name!r}; they would be added up anew"
        )
        raise ScheduleError("decompose_reduction", reason, func, at)
    for f in path[:position]:
        if f.var in carried:
            loop = f"loop {f.var.name!r}, outside of {at.var.name!r},"
            reason = f"{loop} carries the reduction; the init would run in the middle of it"
            raise ScheduleError("decompose_reduction", reason, func, f)
    _check_writes_apart(func, block, at)


def _check_writes_apart(func: PrimFunc, block: Block, at: For) -> None:
    """No other block under the loop writes an element of this one, such as another part of a loop of
    overlapped tiles: the init would run before it instead of behind."""
    own: dict[Atom, Poly] = {v: poly(Var(v.name, v.extent)) for v in inner_loops((at,))}
    mine = [substitute(i, own) for i in block.bound_indices()]
    for a in accesses((at,)):
        if not a.is_write or a.buffer is not block.buffer or a.block is block:
            continue
        if not any(
            proven_negative(p - q) or proven_negative(q - p) for p, q in zip(mine, a.indices, strict=True)
        ):
            reason = (
                f"{a.block.name!r} under loop {at.var.name!r} may write an element of {block.name!r}, whose "
                "init would run before that; decompose at a loop inside"
            )
            raise ScheduleError("decompose_reduction", reason, func, at)


def decompose_reduction(func: PrimFunc, name: str, loop: Var) -> tuple[PrimFunc, str]:
    """Gives the init of a reduction its own block, before `loop`, over copies of the spatial loops from
    `loop` inwards.

    before: `for i: for k: { init: C[i] = 0; C[i] += A[i, k] }`
    after `decompose_reduction(C, k)`: `for i: { C[i] = 0; for k: C[i] += A[i, k] }`
    Returns the program and the init block's name. Refused: a loop inside of another one that carries the
    reduction, outside of one that only repeats its steps, or around another block that may write the same
    elements.
    """
    path, block = find_block(func, name, "decompose_reduction")
    at = find_loop(func, loop, "decompose_reduction")
    check_decompose_reduction(func, block, path, at)
    below = path[next(n for n, f in enumerate(path) if f.var is loop) :]
    spatial = block.loop_vars(IterKind.SPATIAL)
    dropped = block.loop_vars(IterKind.REDUCE) - spatial
    copies: dict[Atom, Poly] = {
        f.var: poly(Var(f.var.name, f.var.extent)) for f in below if f.var not in dropped
    }
    kept = [n for n, k in enumerate(block.kinds) if k is IterKind.SPATIAL]
    assert block.init is not None
    init = Block(
        func.fresh_block_name(f"{name}_init"),
        tuple(block.iters[n] for n in kept),
        (IterKind.SPATIAL,) * len(kept),
        tuple(substitute(block.binds[n], copies) for n in kept),
        block.buffer,
        block.indices,
        block.init,
        predicates=tuple(substitute(p, copies) for p in block.predicates if not p.vars() & dropped),
        span=block.span,
    )
    # The copied block must own its iteration variables: two blocks never share one.
    fresh: dict[Atom, Poly] = {v: poly(Var(v.name, v.extent)) for v in init.iters}
    init = replace(
        init,
        iters=tuple(fresh[v].atom for v in init.iters),  # type: ignore[misc]
        indices=tuple(substitute(i, fresh) for i in init.indices),
        value=map_expr(init.value, lambda p: substitute(p, fresh)),
    )
    body: tuple[Stmt, ...] = (init,)
    for f in reversed(below):
        if f.var in copies:
            var = copies[f.var].atom
            assert isinstance(var, Var)
            body = (For(var, body, f.kind, without_unit(f.annotations)),)

    def visit(s: Stmt) -> Stmt | tuple[Stmt, ...]:
        if type(s) is Block and s.name == name:
            return replace(s, init=None)
        if type(s) is For and s.var is loop:
            return (*body, s)
        return s

    decomposed = func.rewrite(visit)
    check_overlaps(decomposed, "decompose_reduction")
    return decomposed, init.name
