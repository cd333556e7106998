"""A program whose sizes are numbers."""

from __future__ import annotations

from dataclasses import dataclass

from ..arith import Poly
from ..codegen.errors import LoweringError
from ..ir import LoopKind, PrimFunc

_CONSTANT = (LoopKind.UNROLLED, LoopKind.VECTORIZED)


@dataclass(frozen=True, slots=True)
class CheckConcrete:
    """Refuses a program with open knobs, and a vector or unrolled loop over a size. Changes nothing.

    Sizes may stand in shapes and in the extents of other loops: the kernel is given them.
    """

    def run(self, func: PrimFunc) -> PrimFunc:
        for b in func.params + func.allocs:
            for extent in b.shape:
                if not _is_known(extent):
                    raise LoweringError(
                        "check_concrete", f"the shape of {b.name} is open: {extent!r} is no integer", func
                    )
        for path, _ in func.blocks():
            for f in path:
                if not _is_known(f.var.extent):
                    reason = (
                        f"loop {f.var.name!r} runs {f.var.extent!r} times: "
                        "apply the trace with a value for each knob"
                    )
                    raise LoweringError("check_concrete", reason, func, f)
                if f.var.extent.const is None and f.kind in _CONSTANT:
                    reason = (
                        f"loop {f.var.name!r} is {f.kind} and runs {f.var.extent!r} times, "
                        "which only a call tells; split it first"
                    )
                    raise LoweringError("check_concrete", reason, func, f)
        return func


def _is_known(p: Poly) -> bool:
    return not p.knobs() and not p.vars()
