"""A lowered program as two: what is made before the calls, and the kernel."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace

from ..arith import Poly, Var, poly
from ..codegen.errors import LoweringError
from ..ir import (
    Block,
    Buffer,
    For,
    IterKind,
    LoopKind,
    PrimFunc,
    Stmt,
    indices_of,
    loads,
    map_expr,
    rewrite,
    walk,
)
from .fused import apart, inner_extent


def split_ahead(func: PrimFunc) -> tuple[PrimFunc, PrimFunc | None]:
    """(the kernel, what runs once before its calls) of a lowered program; None where nothing is constant but
    parameters.

    before: `for j: { for k: T[j, k] = W[k, j]; for i: for k: C[i, j] += A[i, k] * T[j, k] }`
    after: `f_pack(W): for j: for k: T[j, k] = W[k, j]` and
    `f(A, W, C): for j: for i: for k: C[i, j] += A[i, k] * T[j, k]`

    Both hold the buffers that go from one to the other among their allocated ones, marked constant: the
    kernel those that it reads, and the other function the same ones first, in the same order. The kernel has
    all parameters, the other function the constants that it reads.
    """
    made = [b for b in func.allocs if b.constant]
    if not made:
        return func, None
    ahead = frozenset(made)
    body = _only(func.body, ahead, made=False)
    used = {x.buffer for _, b in replace(func, body=body).blocks() for x in loads(b.value)}
    written = {b.buffer for _, b in replace(func, body=body).blocks()}
    kernel = replace(func, allocs=tuple(b for b in func.allocs if b in used | written), body=body)
    packing = _packing(_unfused(_only(func.body, ahead, made=True)))
    reads = {x.buffer for _, b in replace(func, body=packing).blocks() for x in loads(b.value)}
    pack = PrimFunc(
        f"{func.name}_pack",
        tuple(p for p in func.constants if p in reads),
        (*(b for b in made if b in used), *(b for b in made if b not in used)),
        packing,
        func.span,
    )
    _check_known(pack)
    return kernel, pack


def _only(body: Iterable[Stmt], ahead: frozenset[Buffer], *, made: bool) -> tuple[Stmt, ...]:
    """The blocks that write such buffers, or the others, in their loops."""
    out: list[Stmt] = []
    for s in body:
        if type(s) is Block:
            if (s.buffer in ahead) == made:
                out.append(s)
            continue
        assert type(s) is For
        inner = _only(s.body, ahead, made=made)
        if inner:
            out.append(replace(s, body=inner))
    return tuple(out)


def _unfused(body: Iterable[Stmt]) -> tuple[Stmt, ...]:
    """Fused loops as two where a block tells their iterations apart."""
    out: list[Stmt] = []
    for s in body:
        if type(s) is not For:
            out.append(s)
            continue
        size = inner_extent(s.var, [p for _, b in walk(s.body) for p in _polys(b)])
        if size is None or s.kind is LoopKind.VECTORIZED:
            out.append(replace(s, body=_unfused(s.body)))
        else:
            out += _unfused([_as_two(s, size)])
    return tuple(out)


def _as_two(s: For, size: int) -> For:
    outer, inner = Var(s.var.name, (s.var.extent.const or 1) // size), Var(f"{s.var.name}_1", size)

    def index(p: Poly) -> Poly:
        return apart([p], s.var, outer, inner)[0]

    def visit(b: Stmt) -> Stmt:
        if type(b) is not Block:
            return b
        at = b.iters.index(s.var)
        return replace(
            b,
            iters=(*b.iters[:at], outer, inner, *b.iters[at + 1 :]),
            kinds=(*b.kinds[:at], b.kinds[at], *b.kinds[at:]),
            binds=(*b.binds[:at], poly(outer), poly(inner), *b.binds[at + 1 :]),
            indices=tuple(map(index, b.indices)),
            value=map_expr(b.value, index),
            predicates=tuple(map(index, b.predicates)),
        )

    return For(outer, (For(inner, rewrite(s.body, visit)),))


def _polys(b: Block) -> Iterator[Poly]:
    yield from b.indices
    yield from indices_of(b.value)
    yield from b.predicates


def _packing(body: Iterable[Stmt]) -> tuple[Stmt, ...]:
    """The blocks in the loops that they depend on, each loop as a loop: the code runs once."""
    out: list[Stmt] = []
    for s in body:
        if type(s) is Block:
            out.append(_without_idle_predicates(s))
            continue
        assert type(s) is For
        inner = _packing(s.body)
        if any(s.var in _needs(b) for _, b in walk(inner)):
            kind = LoopKind.VECTORIZED if s.kind is LoopKind.VECTORIZED else LoopKind.SERIAL
            out.append(For(s.var, inner, kind))
        else:
            out += _without_loop(inner, s.var)
    return tuple(out)


def _moving(b: Block) -> set[Var]:
    """The variables that decide what the block writes, and where."""
    steps = {v for v, k in zip(b.iters, b.kinds, strict=True) if k is IterKind.REDUCE}
    return steps.union(*(i.vars() for i in (*b.indices, *indices_of(b.value))))


def _needs(b: Block) -> set[Var]:
    return _moving(b).union(*(p.vars() for p in b.predicates))


def _without_idle_predicates(b: Block) -> Block:
    """Without the conditions on loops that move nothing here: they say when the kernel reads the result."""
    moving = _moving(b)
    return replace(b, predicates=tuple(p for p in b.predicates if not p.vars() or p.vars() & moving))


def _without_loop(body: tuple[Stmt, ...], var: Var) -> tuple[Stmt, ...]:
    def visit(s: Stmt) -> Stmt:
        if type(s) is not Block or var not in s.iters:
            return s
        kept = [n for n, v in enumerate(s.iters) if v is not var]
        return replace(
            s,
            iters=tuple(s.iters[n] for n in kept),
            kinds=tuple(s.kinds[n] for n in kept),
            binds=tuple(s.binds[n] for n in kept),
        )

    return rewrite(body, visit)


def _check_known(pack: PrimFunc) -> None:
    """Nothing in it depends on a size, which only a call tells."""
    for path, b in pack.blocks():
        known: list[Poly] = [*b.buffer.shape, *b.indices, *indices_of(b.value), *b.predicates]
        for p in (*known, *(f.var.extent for f in path)):
            for size in p.sizes():
                reason = f"{b.buffer.name} is made ahead of the calls, and {size.name!r} is told by them"
                raise LoweringError("split_ahead", reason, pack, b)
