"""The rule for products of an array with itself, as of `A @ A.T`: what the lanes move is read as if it were
another array.

One copy of a tile cannot serve reads along the lanes and across them. So the former become reads of an array
of their own, other rules make what they make of two arrays, and where they pack the second one, that is
packed from the first.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from ..arith import Poly
from ..ir import Block, Buffer, IterKind, PrimFunc, buffers_read
from ..ir.annotations import is_ahead
from ..schedule import BlockRV, Schedule, ScheduleError
from ..schedule.find import readers
from ..schedule.primitives.cache import accesses_of
from ..target import Target
from .contraction import Contraction
from .converted import Converted, Rule
from .dot_products import DotProduct
from .groups import Group
from .sketch import Constraint
from .windows import Windows


@dataclass(frozen=True, slots=True)
class Apart:
    """The number-th structure of the rule for the program that reads two arrays."""

    rule: Rule
    number: int
    name: str
    fallback: bool = False

    def apply(self, sch: Schedule, group: Group, target: Target, tag: str) -> list[Constraint]:
        """Reads the array as two, applies the structure, and inlines the second one where it is packed."""
        copy = take_apart(sch, group)
        found = list(self.rule(sch.func, group, target))
        constraints = found[self.number].apply(sch, group, target, tag)
        block = sch.func.block(copy.name)[1]
        if is_ahead(block):
            return constraints
        users = readers(sch.func, block.buffer)
        if len(users) != 1 or users[0].is_reduction:
            reason = f"{block.buffer.name} would be no more than a copy of an array"
            raise ScheduleError("cache_read", reason, sch.func, block)
        sch.compute_inline(sch.get_block(copy.name))
        return constraints


def apart(func: PrimFunc, group: Group, target: Target, rule: Rule) -> Iterator[Apart]:
    """Every structure of the rule for the program that reads two arrays."""
    main = func.block(group.main)[1]
    found = read_twice(main)
    if group.rows or Windows.of(main) is not None or found is None:
        return
    trial = Schedule(func)
    made = take_apart(trial, group)
    copy = trial.func.block(made.name)[1].buffer
    for n, s in enumerate(rule(trial.func, group, target)):
        # What is not packed is read as well from where it was.
        packs = copy in s.packed if type(s) is Contraction else type(s) in (DotProduct, Converted)
        if packs and not s.fallback:
            yield Apart(rule, n, f"{s.name}, {found[0].name} as two arrays")


def read_twice(main: Block) -> tuple[Buffer, int] | None:
    """The one array that a reduction reads at two places, one of which moves along its results, and the
    number of that place."""
    along = next((it for it in main.iters if main.indices and main.indices[-1].atom == it), None)
    if not main.is_reduction or along is None:
        return None
    every: dict[Buffer, list[tuple[Poly, ...]]] = {
        b: accesses_of(main, b) for b in buffers_read(main) if b is not main.buffer
    }
    twice = [b for b, places in every.items() if len(places) > 1]
    if len(twice) != 1 or len(every[twice[0]]) != 2:
        return None
    moved = [n for n, place in enumerate(every[twice[0]]) if any(along in i.vars() for i in place)]
    reduced = {it for it, k in zip(main.iters, main.kinds, strict=True) if k is IterKind.REDUCE}
    both = all(reduced & {v for i in place for v in i.vars()} for place in every[twice[0]])
    return (twice[0], moved[0]) if len(moved) == 1 and both else None


def take_apart(sch: Schedule, group: Group) -> BlockRV:
    """Reads what moves along the results from a copy: the block that copies."""
    main = sch.func.block(group.main)[1]
    found = read_twice(main)
    assert found is not None
    buffer, place = found
    slot = buffers_read(main).index(buffer)
    copy = sch.cache_read(sch.get_block(group.main), slot, "local", accesses=[place])
    if buffer.constant:
        # The rules see that it is there before the calls.
        sch.compute_ahead(copy)
    return copy
