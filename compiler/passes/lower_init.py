"""The init of a reduction as a block of its own."""

from __future__ import annotations

from dataclasses import dataclass, replace

from ..arith import Atom, Poly, Var, poly, proven_negative, substitute
from ..codegen.errors import LoweringError
from ..ir import Block, IterKind, PrimFunc, Stmt, map_expr
from ..schedule.primitives import decompose_reduction


@dataclass(frozen=True, slots=True)
class LowerInit:
    """Each reduction that still has its init gets it before the outermost loop that carries the reduction.

    before: `for i: for k: { init: C[i] = 0; C[i] += A[i, k] }`; after: `for i: { C[i] = 0; for k: C[i] +=
    A[i, k] }` The init runs over copies of the spatial loops below that loop, vector loops as vector loops.
    Refused: a predicate over both spatial and reduction loops without which the init would leave the
    buffer.
    """

    def run(self, func: PrimFunc) -> PrimFunc:
        for name in [b.name for _, b in func.blocks() if b.init is not None]:
            path, block = func.block(name)
            carried = block.loop_vars(IterKind.REDUCE)
            loop = next((f.var for f in path if f.var in carried), None)
            if loop is None:
                func, init = _in_place(func, block)
            else:
                func, init = decompose_reduction(func, name, loop)
            if any(
                p.vars() & carried and p.vars() & block.loop_vars(IterKind.SPATIAL) for p in block.predicates
            ):
                _check_inside(func, func.block(init)[1])
        return func


def _in_place(func: PrimFunc, block: Block) -> tuple[PrimFunc, str]:
    """A reduction of one step, which no loop carries: the init stands directly before it."""
    kept = [n for n, k in enumerate(block.kinds) if k is IterKind.SPATIAL]
    fresh = {block.iters[n]: Var(block.iters[n].name, block.iters[n].extent) for n in kept}
    values: dict[Atom, Poly] = {v: poly(w) for v, w in fresh.items()}
    assert block.init is not None
    init = Block(
        func.fresh_block_name(f"{block.name}_init"),
        tuple(fresh.values()),
        (IterKind.SPATIAL,) * len(kept),
        tuple(block.binds[n] for n in kept),
        block.buffer,
        tuple(substitute(i, values) for i in block.indices),
        map_expr(block.init, lambda i: substitute(i, values)),
        predicates=block.predicates,
        span=block.span,
    )

    def visit(s: Stmt) -> Stmt | tuple[Stmt, ...]:
        return (init, replace(block, init=None)) if s is block else s

    return func.rewrite(visit), init.name


def _check_inside(func: PrimFunc, init: Block) -> None:
    """Every iteration variable of the init stays in its extent without the predicates of the reduction
    steps.
    """
    for it, bind in zip(init.iters, init.binds, strict=True):
        high = bind - it.extent
        if proven_negative(high):
            continue
        gaps = [(high - p).const for p in init.predicates]
        if not any(g is not None and g <= 0 for g in gaps):
            reason = (
                f"{it.name!r} is bounded only together with a loop that carries the reduction; "
                "decompose the reduction before fusing"
            )
            raise LoweringError("lower_init", reason, func, init)
