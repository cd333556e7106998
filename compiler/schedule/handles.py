"""What a schedule hands out: references to loops and blocks that later steps take."""

from __future__ import annotations

from dataclasses import dataclass

from ..arith import Var


@dataclass(frozen=True, slots=True, eq=False)
class LoopRV:
    """A loop of a schedule. Stays valid until a step consumes the loop (split, fuse, a move of its block)."""

    id: str
    var: Var

    def __repr__(self) -> str:
        return f"<loop {self.var.name}>"


@dataclass(frozen=True, slots=True, eq=False)
class BlockRV:
    """A block of a schedule. Stays valid until the block is inlined away."""

    id: str
    name: str

    def __repr__(self) -> str:
        return f"<block {self.name}>"
