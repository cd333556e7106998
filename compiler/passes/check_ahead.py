"""What is made before the calls is made of constants."""

from __future__ import annotations

from dataclasses import dataclass

from ..codegen.errors import LoweringError
from ..ir import PrimFunc, loads
from ..ir.annotations import made_ahead


@dataclass(frozen=True, slots=True)
class CheckAhead:
    """Refuses a buffer that is to be made before the calls, and cannot be: an output, one in registers, or
    one that needs more than constants. Changes nothing.

    `compute_ahead` checks the same; a later step may have changed it, and programs come with any annotation.
    """

    def run(self, func: PrimFunc) -> PrimFunc:
        ahead = made_ahead(func)
        if not ahead:
            return func
        for _, b in func.blocks():
            if b.buffer not in ahead:
                continue
            if b.buffer in func.params or b.buffer.scope == "register":
                what = "an output" if b.buffer in func.params else "in registers"
                reason = f"{b.buffer.name} is {what}, which cannot be made ahead of the calls"
                raise LoweringError("check_ahead", reason, func, b)
            for x in loads(b.value):
                if not (x.buffer.constant or x.buffer in ahead):
                    reason = f"{b.buffer.name} is made ahead of the calls, which tell {x.buffer.name}"
                    raise LoweringError("check_ahead", reason, func, b)
        return func
