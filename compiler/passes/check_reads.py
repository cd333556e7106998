"""Intermediates are written before they are read."""

from __future__ import annotations

from dataclasses import dataclass

from ..codegen.errors import LoweringError
from ..ir import Buffer, PrimFunc, loads


@dataclass(frozen=True, slots=True)
class CheckReads:
    """Refuses a block that reads an allocated buffer which no block before it, in program order, has written.

    Whether every element was written is not proved. Changes nothing. Runs once inits are blocks.
    """

    def run(self, func: PrimFunc) -> PrimFunc:
        unwritten: set[Buffer] = set(func.allocs)
        for _, b in func.blocks():
            if unwritten:
                for x in loads(b.value):
                    if x.buffer in unwritten:
                        reason = f"{b.name!r} reads {x.buffer.name}, which nothing has written yet"
                        raise LoweringError("check_reads", reason, func, b)
                unwritten.discard(b.buffer)
        return func
