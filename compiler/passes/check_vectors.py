"""What may stand under a vector loop."""

from __future__ import annotations

from dataclasses import dataclass

from ..codegen.errors import LoweringError
from ..ir import Block, For, IterKind, LoopKind, PrimFunc, combines_lanes


@dataclass(frozen=True, slots=True)
class CheckVectors:
    """Refuses a vector loop inside another one, one that carries a reduction, and one whose lanes write one
    element. A reduction over the elements of a register buffer may run in lanes: these are combined.

    Changes nothing. Runs on simplified programs.
    """

    def run(self, func: PrimFunc) -> PrimFunc:
        for path, b in func.blocks():
            vectors = [f for f in path if f.kind is LoopKind.VECTORIZED]
            if len(vectors) > 1:
                outer, inner = vectors[0].var.name, vectors[1].var.name
                reason = f"loop {inner!r} is a vector loop inside of {outer!r}, which is one already"
                raise LoweringError("check_vectors", reason, func, vectors[1])
            for f in vectors:
                _check(func, f, b)
        return func


def _check(func: PrimFunc, f: For, b: Block) -> None:
    name = f.var.name
    if f.var in b.loop_vars(IterKind.REDUCE):
        if combines_lanes(b, f.var):
            return
        reason = f"loop {name!r} carries a reduction into {b.buffer.name} and cannot be a vector loop"
        raise LoweringError("check_vectors", reason, func, f)
    if not any(f.var in i.vars() for i in b.indices):
        reason = f"all lanes of loop {name!r} store to one element of {b.buffer.name}"
        raise LoweringError("check_vectors", reason, func, f)
