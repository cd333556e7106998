"""What every rule does that tiles a block: knobs, and constraints on them."""

from __future__ import annotations

from ..arith import Knob, Poly
from ..ir.func import fresh
from ..schedule import Schedule
from ..target import Target
from .accesses import operations
from .factors import MAX_CODE
from .groups import Group
from .sketch import Constraint

#: Operations from which on an epilogue has functions in it.
COSTLY = 16


class Tiling:
    """Applies one structure to a schedule; `constraints` are what its knobs, whose names begin with `tag`,
    must satisfy."""

    def __init__(self, sch: Schedule, group: Group, target: Target, tag: str) -> None:
        self.sch, self.group, self.target, self.tag = sch, group, target, tag
        self.block = sch.get_block(group.main)
        self.constraints: list[Constraint] = []

    def knob(self, name: str, domain: tuple[int, ...]) -> Knob:
        """A knob of its own: two iteration variables may share a name."""
        return self.sch.sample_categorical(domain, name=fresh(f"{self.tag}{name}", set(self.sch.knobs)))

    def limit(self, label: str, value: Poly, at_most: int) -> None:
        """A constraint."""
        self.constraints.append(Constraint(f"{self.tag}{label}", value, at_most))

    def limit_epilogue(self, name: str, copies: Poly) -> None:
        """The block that takes the register tile is unrolled over it: with functions in it, that is more code
        than the tile's own."""
        work = operations(self.sch.func.block(name)[1])
        if work >= COSTLY:
            self.limit("unrolled epilogue", copies * work, MAX_CODE)

    def result_in_registers(self) -> str:
        """Puts the result into registers; the block that takes it from there."""
        if self.group.epilogue is not None:
            self.sch.set_scope(self.block, 0, "register")
            return self.group.epilogue
        return self.sch.cache_write(self.block, 0, "register").name
