"""rfactor: the steps of one reduction loop kept apart in a buffer of their own, and combined at the end."""

from __future__ import annotations

from dataclasses import dataclass, replace

from ...arith import Atom, Poly, Var, is_injective, poly, substitute
from ...ir import (
    Binary,
    Block,
    Buffer,
    Expr,
    For,
    InBounds,
    IterKind,
    Load,
    PrimFunc,
    Select,
    Stmt,
    loads,
    map_expr,
)
from ...ir.rules import REDUCERS, identity
from ..errors import ScheduleError
from ..find import blocks_under, check_in_no_unit, find_loop, writers
from ..overlap import check_overlaps


@dataclass(frozen=True, slots=True, eq=False)
class _Reduction:
    """What rfactor takes apart: `block` under the loops `path`, the outermost of which that carries the
    reduction is `path[depth]`."""

    block: Block
    path: tuple[For, ...]
    depth: int
    op: str
    term: Expr

    @property
    def spatial(self) -> set[Var]:
        return self.block.loop_vars(IterKind.SPATIAL)

    @property
    def reduce(self) -> set[Var]:
        return self.block.loop_vars(IterKind.REDUCE)

    @property
    def steps(self) -> tuple[Poly, ...]:
        """The predicates that leave out steps."""
        return tuple(p for p in self.block.predicates if p.vars() & self.reduce)

    @property
    def existing(self) -> tuple[Poly, ...]:
        """The predicates that leave out whole elements."""
        return tuple(p for p in self.block.predicates if not p.vars() & self.reduce)


def check_rfactor(func: PrimFunc, at: For, axis: int) -> _Reduction:
    """One reduction with its init whose reduce variables are bound to reduction loops only, written by no
    other block, and whose steps are taken once."""
    loop = f"loop {at.var.name!r}"
    found = [(p, b) for p, b in _whole_paths(func, at) if at.var in b.loop_vars(IterKind.REDUCE)]
    if not found:
        raise ScheduleError("rfactor", f"{loop} carries no reduction", func, at)
    if len(found) > 1:
        names = ", ".join(repr(b.name) for _, b in found)
        raise ScheduleError("rfactor", f"{loop} carries several reductions: {names}", func, at)
    path, block = found[0]

    check_in_no_unit(func, path, block, "rfactor")

    def refuse(reason: str) -> ScheduleError:
        return ScheduleError("rfactor", reason, func, block)

    rank = len(block.buffer.shape)
    if type(axis) is not int or not -rank - 1 <= axis <= rank:
        shape = f"{block.buffer.name} has {rank} dimensions"
        raise refuse(f"{shape}, so that axis is from {-rank - 1} to {rank}, got {axis!r}")
    if block.init is None:
        raise refuse(f"the init of {block.name!r} was decomposed; factor it before that")
    if writers(func, block.buffer) != [block]:
        raise refuse(f"{block.buffer.name} is written by more than one block")
    value = block.value
    if type(value) is not Binary or value.op not in REDUCERS:
        raise refuse(f"{block.name!r} combines its steps in a way that has no identity")
    depth = next(n for n, f in enumerate(path) if f.var in block.loop_vars(IterKind.REDUCE))
    r = _Reduction(block, path, depth, value.op, value.b)
    mixed = sorted(v.name for v in r.spatial & r.reduce)
    if mixed:
        raise refuse(f"loop {mixed[0]!r} moves both the element and the step of {block.name!r}")
    if any(p.vars() & r.spatial for p in r.steps):
        raise refuse(f"a predicate of {block.name!r} decides on its elements and its steps together")
    for f in path[depth:]:
        if f.var not in r.spatial | r.reduce and f.var.extent.const != 1:
            raise refuse(f"loop {f.var.name!r} repeats the steps of {block.name!r}")
    inner = {f.var for f in path[depth:]}
    if not is_injective(block.binds, [it.extent for it in block.iters], inner):
        raise refuse(f"the loops of {block.name!r} take some of its steps twice")
    for _, other in blocks_under(path[depth]):
        if other is not block and any(x.buffer is block.buffer for x in loads(other.value)):
            raise refuse(f"{other.name!r} reads {block.buffer.name} before all of its steps are taken")
    return r


def _whole_paths(func: PrimFunc, at: For) -> list[tuple[tuple[For, ...], Block]]:
    return [(p, b) for p, b in func.blocks() if any(f is at for f in p)]


def rfactor(func: PrimFunc, loop: Var, axis: int = 0) -> tuple[PrimFunc, str]:
    """Makes a reduction loop a spatial one: each of its iterations gathers a part of the result, in a new
    dimension `axis` of a new buffer, and the parts are combined behind the reduction.

    before: `for i: for k_0: for k_1: { init: C[i] = 0; C[i] += A[i, k_0 * 4 + k_1] }`
    after `rfactor(k_1)`:
    `for i: { for k_0: for k_1: { init: C_rf[k_1, i] = 0; C_rf[k_1, i] += A[i, k_0 * 4 + k_1] };
    for k_1: { init: C[i] = 0; C[i] += C_rf[k_1, i] } }`

    Steps past the end of a split contribute the identity of the reducer. The block keeps its name where the
    parts are combined; the program and the name of the block that makes the parts are returned. Legal for a
    loop that carries one reduction, whose init was not decomposed, and moves none of its elements. The
    order of floating point additions changes, as it does in `reorder`.
    """
    at = find_loop(func, loop, "rfactor")
    r = check_rfactor(func, at, axis)
    block, old = r.block, r.block.buffer
    axis = axis if axis >= 0 else axis + len(old.shape) + 1
    shape = (*old.shape[:axis], loop.extent, *old.shape[axis:])
    parts = Buffer(func.fresh_buffer_name(f"{old.name}_rf"), shape, old.dtype)
    factored = _factored(func, r, loop, parts, axis)
    combined = _combined(r, loop, parts, axis)

    def visit(s: Stmt) -> Stmt | tuple[Stmt, ...]:
        if s is block:
            return factored
        return (s, *combined) if type(s) is For and s.var is r.path[r.depth].var else s

    new = replace(func.rewrite(visit), allocs=(*func.allocs, parts))
    check_overlaps(new, "rfactor")
    return new, factored.name


def _factored(func: PrimFunc, r: _Reduction, loop: Var, parts: Buffer, axis: int) -> Block:
    """The block that makes the parts: a reduction over the other loops, over none an assignment."""
    block = r.block
    spatial = [(it, b) for it, k, b in _iters(block) if k is IterKind.SPATIAL]
    fresh: dict[Atom, Poly] = {it: poly(Var(it.name, it.extent)) for it, _ in spatial}
    over = {f.var: Var(f.var.name, f.var.extent) for f in r.path if f.var in r.reduce}
    steps: dict[Atom, Poly] = {v: poly(w) for v, w in over.items()}
    fresh |= {it: substitute(b, steps) for it, k, b in _iters(block) if k is IterKind.REDUCE}

    def moved(p: Poly) -> Poly:
        return substitute(p, fresh)

    term, neutral = map_expr(r.term, moved), identity(r.op, parts.dtype)
    assert neutral is not None
    if r.steps:
        term = Select(InBounds(tuple(substitute(p, steps) for p in r.steps)), term, neutral)
    at = tuple(moved(i) for i in block.indices)
    at = (*at[:axis], poly(over[loop]), *at[axis:])
    others = [v for v in over if v is not loop]
    iters = [*(fresh[it].atom for it, _ in spatial), over[loop], *(over[v] for v in others)]
    return Block(
        func.fresh_block_name(f"{block.name}_rf"),
        tuple(v for v in iters if isinstance(v, Var)),
        (IterKind.SPATIAL,) * (len(spatial) + 1) + (IterKind.REDUCE,) * len(others),
        (*(b for _, b in spatial), poly(loop), *(poly(v) for v in others)),
        parts,
        at,
        Binary(r.op, Load(parts, at), term) if others else term,  # type: ignore[arg-type]
        neutral if others else None,
        r.existing,
        block.annotations,
        block.span,
    )


def _combined(r: _Reduction, loop: Var, parts: Buffer, axis: int) -> tuple[Stmt, ...]:
    """The block that combines the parts, over copies of the spatial loops and of the factored one."""
    block = r.block
    kept = [f for f in r.path[r.depth :] if f.var in r.spatial or f.var is loop]
    copies = {f.var: Var(f.var.name, f.var.extent) for f in kept}
    loops: dict[Atom, Poly] = {v: poly(w) for v, w in copies.items()}
    spatial = [(it, substitute(b, loops)) for it, k, b in _iters(block) if k is IterKind.SPATIAL]
    part = Var(loop.name, loop.extent)
    read = (*block.indices[:axis], poly(part), *block.indices[axis:])
    new = replace(
        block,
        iters=(*(it for it, _ in spatial), part),
        kinds=(IterKind.SPATIAL,) * len(spatial) + (IterKind.REDUCE,),
        binds=(*(b for _, b in spatial), loops[loop]),
        value=Binary(r.op, Load(block.buffer, block.indices), Load(parts, read)),  # type: ignore[arg-type]
        predicates=tuple(substitute(p, loops) for p in r.existing),
    )
    body: tuple[Stmt, ...] = (new,)
    for f in reversed(kept):
        body = (For(copies[f.var], body, f.kind, f.annotations),)
    return body


def _iters(b: Block) -> list[tuple[Var, IterKind, Poly]]:
    return list(zip(b.iters, b.kinds, b.binds, strict=True))
