"""Which programs the reference evaluates as whole arrays: those whose loops are the domains of their
blocks."""

from __future__ import annotations

from ..arith import Var
from ..ir.expr import Binary
from ..ir.func import PrimFunc
from ..ir.rules import REDUCERS
from ..ir.stmt import Block, For, Stmt
from ..ir.visit import loads


def plain_problem(func: PrimFunc) -> str | None:
    """Why a program is not an unscheduled one; None when it is: each block alone in loops that are its
    iteration variables, without predicates, and reading its own buffer only as the accumulator of a
    reduction."""
    for stmt in func.body:
        inner: Stmt = stmt
        loops: list[Var] = []
        while isinstance(inner, For):
            loops.append(inner.var)
            if len(inner.body) != 1:
                return f"the loop {inner.var.name!r} holds {len(inner.body)} statements"
            inner = inner.body[0]
        problem = _block_problem(inner, loops)
        if problem is not None:
            return f"the block {inner.name!r} {problem}"
    return None


def _block_problem(b: Block, loops: list[Var]) -> str | None:
    bound = [p.atom for p in b.binds]
    if b.predicates:
        return "has predicates"
    if len(bound) != len(loops) or set(bound) != set(loops):
        return "is not bound to one loop for each of its iteration variables"
    if any(v.extent != it.extent for v, it in zip(bound, b.iters, strict=True) if isinstance(v, Var)):
        return "has loops of other extents than its iteration variables"
    own = [x for x in loads(b.value) if x.buffer is b.buffer]
    if not b.is_reduction:
        return "reads what it writes" if own else None
    v = b.value
    if (
        len(own) != 1
        or type(v) is not Binary
        or v.op not in REDUCERS
        or v.a is not own[0]
        or own[0].indices != b.indices
    ):
        return "is a reduction that reads more than its accumulator"
    return None
