"""The init of a reduction as a block of its own."""

from __future__ import annotations

from dataclasses import dataclass, replace

from ..arith import Atom, Poly, Var, poly, proven_negative, substitute
from ..codegen.errors import LoweringError
from ..ir import Block, For, IterKind, PrimFunc, Stmt, map_expr
from ..ir.visit import Path


@dataclass(frozen=True, slots=True)
class LowerInit:
    """Each reduction that still has its init gets it before the outermost loop that carries the reduction.

    before: `for i: for k: { init: C[i] = 0; C[i] += A[i, k] }`
    after: `for i: { C[i] = 0; for k: C[i] += A[i, k] }`

    The init runs over copies of the other loops below that loop, vector loops as vector loops. Refused: a
    predicate over both spatial and reduction loops without which the init would leave the buffer.
    """

    def run(self, func: PrimFunc) -> PrimFunc:
        for name in [b.name for _, b in func.blocks() if b.init is not None]:
            path, block = func.block(name)
            carried = block.loop_vars(IterKind.REDUCE)
            depth = next((n for n, f in enumerate(path) if f.var in carried), len(path))
            before: Stmt = path[depth] if depth < len(path) else block
            nest = _init(func, block, path[depth:])
            func = _inserted(func, block, before, nest)
        return func


def _init(func: PrimFunc, block: Block, below: Path) -> tuple[Stmt, ...]:
    """The init over copies of the loops below, but those that only carry the reduction."""
    spatial = block.loop_vars(IterKind.SPATIAL)
    left = block.loop_vars(IterKind.REDUCE) - spatial
    copies = {f.var: Var(f.var.name, f.var.extent) for f in below if f.var not in left}
    loops: dict[Atom, Poly] = {v: poly(w) for v, w in copies.items()}
    kept = [n for n, k in enumerate(block.kinds) if k is IterKind.SPATIAL]
    # Two blocks never share an iteration variable.
    fresh = {block.iters[n]: Var(block.iters[n].name, block.iters[n].extent) for n in kept}
    iters: dict[Atom, Poly] = {v: poly(w) for v, w in fresh.items()}
    dropped = [p for p in block.predicates if p.vars() & left]
    assert block.init is not None
    init = Block(
        func.fresh_block_name(f"{block.name}_init"),
        tuple(fresh.values()),
        (IterKind.SPATIAL,) * len(kept),
        tuple(substitute(block.binds[n], loops) for n in kept),
        block.buffer,
        tuple(substitute(i, iters) for i in block.indices),
        map_expr(block.init, lambda i: substitute(i, iters)),
        predicates=tuple(substitute(p, loops) for p in block.predicates if p not in dropped),
        span=block.span,
    )
    if any(p.vars() & spatial for p in dropped):
        _check_inside(func, block, init)
    body: tuple[Stmt, ...] = (init,)
    for f in reversed(below):
        if f.var in copies:
            body = (For(copies[f.var], body, f.kind, f.annotations),)
    return body


def _inserted(func: PrimFunc, block: Block, before: Stmt, nest: tuple[Stmt, ...]) -> PrimFunc:
    var = before.var if type(before) is For else None

    def visit(s: Stmt) -> Stmt | tuple[Stmt, ...]:
        if s is block:
            steps = replace(block, init=None)
            return (*nest, steps) if before is block else steps
        return (*nest, s) if type(s) is For and s.var is var else s

    return func.rewrite(visit)


def _check_inside(func: PrimFunc, block: Block, init: Block) -> None:
    """Every iteration variable of the init stays in its extent without the predicates of the steps."""
    for it, bind in zip(init.iters, init.binds, strict=True):
        high = bind - it.extent
        gaps = [(high - p).const for p in init.predicates]
        if not proven_negative(high) and not any(g is not None and g <= 0 for g in gaps):
            reason = (
                f"{it.name!r} is bounded only together with a loop that carries the reduction; "
                "decompose the reduction before fusing"
            )
            raise LoweringError("lower_init", reason, func, block)
