"""A program whose sizes are numbers."""

from __future__ import annotations

from dataclasses import dataclass

from ..codegen.errors import LoweringError
from ..ir import PrimFunc


@dataclass(frozen=True, slots=True)
class CheckConcrete:
    """Refuses a program with open knobs: an extent or a shape that is no integer. Changes nothing."""

    def run(self, func: PrimFunc) -> PrimFunc:
        for b in func.params + func.allocs:
            for extent in b.shape:
                if extent.const is None:
                    raise LoweringError(
                        "check_concrete", f"the shape of {b.name} is open: {extent!r} is no integer", func
                    )
        for path, _ in func.blocks():
            for f in path:
                if f.var.extent.const is None:
                    reason = (
                        f"loop {f.var.name!r} runs {f.var.extent!r} times: "
                        "apply the trace with a value for each knob"
                    )
                    raise LoweringError("check_concrete", reason, func, f)
        return func
