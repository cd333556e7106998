"""Blocks over the loops that are left."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace

from ..arith import Atom, Poly, Var, lower, poly, proven_negative, substitute
from ..ir import Block, For, IterKind, LoopKind, PrimFunc, Stmt, loads, map_expr


@dataclass(frozen=True, slots=True)
class Simplify:
    """Loops of one iteration, predicates that always hold and blocks that never run vanish. Loops on threads
    become serial ones, but for parallel ones where `threads` of the processor are to run them.

    So do buffers that nobody uses. The iteration variables of a block become the loop variables around it,
    so that indices and values are over these: a variable is of kind reduce when a reduction iteration
    variable was bound to it.

    before: `for i_0 in range(1): for i_1 in unrolled(4): if i_0 * 4 + i_1 < 4: B[i_0 * 4 + i_1] = …`
    after: `for i_1 in unrolled(4): B[i_1] = …`
    """

    threads: int = 1

    def run(self, func: PrimFunc) -> PrimFunc:
        in_order = {LoopKind.THREAD} if self.threads > 1 else {LoopKind.THREAD, LoopKind.PARALLEL}
        body = _body(func.body, (), {}, in_order)
        used = {b.buffer for _, b in replace(func, body=body).blocks()}
        for _, b in replace(func, body=body).blocks():
            used.update(x.buffer for x in loads(b.value))
        return replace(func, body=body, allocs=tuple(b for b in func.allocs if b in used))


def _body(
    body: Iterable[Stmt], path: tuple[Var, ...], units: dict[Atom, Poly], in_order: set[LoopKind]
) -> tuple[Stmt, ...]:
    out: list[Stmt] = []
    for s in body:
        if type(s) is Block:
            block = _block(s, path, units)
            if block is not None:
                out.append(block)
            continue
        assert type(s) is For
        if s.var.extent.const == 1:
            out += _body(s.body, path, {**units, s.var: poly(0)}, in_order)
        elif inner := _body(s.body, (*path, s.var), units, in_order):
            kind = LoopKind.SERIAL if s.kind in in_order else s.kind
            out.append(For(s.var, inner, kind, s.annotations))
    return tuple(out)


def _block(b: Block, path: tuple[Var, ...], units: dict[Atom, Poly]) -> Block | None:
    predicates = _live(substitute(p, units) for p in b.predicates)
    if predicates is None:
        return None
    binds = [substitute(p, units) for p in b.binds]
    values: dict[Atom, Poly] = {**units, **dict(zip(b.iters, binds, strict=True))}
    carried = {v for k, p in zip(b.kinds, binds, strict=True) if k is IterKind.REDUCE for v in p.vars()}
    return replace(
        b,
        iters=path,
        kinds=tuple(IterKind.REDUCE if v in carried else IterKind.SPATIAL for v in path),
        binds=tuple(poly(v) for v in path),
        indices=tuple(substitute(i, values) for i in b.indices),
        value=map_expr(b.value, lambda i: substitute(i, values)),
        predicates=predicates,
    )


def _live(predicates: Iterable[Poly]) -> tuple[Poly, ...] | None:
    """The predicates that decide something, none implied by another one; None when one never holds."""
    kept: list[Poly] = []
    for p in predicates:
        if proven_negative(p):
            continue
        low = lower(p).const
        if low is not None and low >= 0:
            return None
        gaps = [(p - q).const for q in kept]
        if any(g is not None and g <= 0 for g in gaps):
            continue
        kept = [q for q, g in zip(kept, gaps, strict=True) if g is None]
        kept.append(p)
    return tuple(kept)
