"""Register buffers are indexed by constants."""

from __future__ import annotations

from dataclasses import dataclass

from ..codegen.errors import LoweringError
from ..ir import Block, Buffer, LoopKind, PrimFunc, loads
from ..ir.visit import Path

_CONSTANT = (LoopKind.UNROLLED, LoopKind.VECTORIZED)


@dataclass(frozen=True, slots=True)
class CheckRegisters:
    """Refuses a register buffer whose index still varies when its loops are unrolled.

    And one larger than `most` elements. Changes nothing. Runs on compacted programs.
    """

    most: int = 65_536

    def run(self, func: PrimFunc) -> PrimFunc:
        for b in func.params:
            if b.scope == "register":
                raise LoweringError("check_registers", f"parameter {b.name} cannot be in registers", func)
        registers = [b for b in func.allocs if b.scope == "register"]
        for b in registers:
            size = 1
            for extent in b.shape:
                if extent.const is None:
                    reason = (
                        f"register buffer {b.name} has the extent {extent!r} where it is used, which only a "
                        "call tells; split that loop, and move all that uses the buffer inside of it"
                    )
                    raise LoweringError("check_registers", reason, func)
                size *= extent.const
            if size > self.most:
                reason = (
                    f"register buffer {b.name} holds {size} elements where it is used; "
                    f"at most {self.most} are allowed"
                )
                raise LoweringError("check_registers", reason, func)
        if registers:
            for path, block in func.blocks():
                _check(func, path, block)
        return func


def _check(func: PrimFunc, path: Path, block: Block) -> None:
    for buffer, indices in (
        (block.buffer, block.indices),
        *((x.buffer, x.indices) for x in loads(block.value)),
    ):
        if buffer.scope != "register":
            continue
        used = frozenset(v for i in indices for v in i.vars())
        for f in path:
            if f.var in used and f.kind not in _CONSTANT:
                raise LoweringError("check_registers", _reason(buffer, f.var.name, block), func, f)


def _reason(buffer: Buffer, loop: str, block: Block) -> str:
    return (
        f"register buffer {buffer.name} is indexed by loop {loop!r} in {block.name!r}; "
        "unroll that loop, or move all that uses the buffer inside of it"
    )
