"""The steps of a reduction are taken once."""

from __future__ import annotations

from dataclasses import dataclass

from ..arith import Poly, Var, lower, poly, substitute
from ..codegen.errors import LoweringError
from ..ir import Block, Buffer, For, IterKind, PrimFunc, loads, walk


@dataclass(frozen=True, slots=True)
class CheckSteps:
    """Refuses a loop that repeats the steps of a reduction. Changes nothing. Runs on simplified programs.

    Its variable moves neither the element nor the step, and the init stands outside of it.
    """

    def run(self, func: PrimFunc) -> PrimFunc:
        for path, b in func.blocks():
            if not any(x.buffer is b.buffer for x in loads(b.value)):
                continue
            used = b.loop_vars(IterKind.REDUCE) | {v for i in b.indices for v in i.vars()}
            for f in path:
                if f.var not in used and not _runs_once(f.var, b) and not _begins_afresh(f, b.buffer):
                    reason = (
                        f"loop {f.var.name!r} repeats the steps of {b.name!r}; "
                        "put the init inside of the loop, or the reduction outside"
                    )
                    raise LoweringError("check_steps", reason, func, f)
        return func


def _runs_once(v: Var, b: Block) -> bool:
    """Whether a predicate leaves only the first iteration."""
    return any(v in p.vars() and _never(substitute(p, {v: poly(1)})) for p in b.predicates)


def _never(p: Poly) -> bool:
    low = lower(p).const
    return low is not None and low >= 0


def _begins_afresh(f: For, buffer: Buffer) -> bool:
    """Whether the buffer's first use in the loop is a write that needs no earlier value."""
    for _, b in walk(f.body):
        if any(x.buffer is buffer for x in loads(b.value)):
            return False
        if b.buffer is buffer:
            return True
    return False
