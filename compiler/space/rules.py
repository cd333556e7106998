"""The rules of the default space: what each makes of a group of blocks."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Protocol

from ..ir import Block, IterKind, PrimFunc
from ..schedule import Schedule
from ..target import Target
from .ahead import constants_of
from .apart import apart
from .channels_last import channel_dot_products
from .containment import Broken, contained
from .contraction import contractions
from .converted import converted
from .convolution import convolutions
from .dot import dots
from .dot_products import dot_products, lane_steps
from .elementwise import elementwise
from .groups import Group
from .moves import moves
from .phases import put_together
from .rows import rows
from .sketch import Constraint

#: Rows for which packing what they meet costs more than sums in lanes that no instruction takes.
FEW_ROWS = 4
#: Such rows where no instruction takes their bytes: on AVX2, sums along 8 rows of 1024 took 0.64 of the time
#: of packed ones, along 2 rows 0.24, along 16 as long.
FEW_INTEGER_ROWS = 8
_REDUCE = IterKind.REDUCE


class Structure(Protocol):
    """One way to schedule a group. name: what distinguishes it from its siblings, for people. fallback: only
    worth a sketch where the group has no other."""

    @property
    def name(self) -> str: ...

    @property
    def fallback(self) -> bool: ...

    def apply(self, sch: Schedule, group: Group, target: Target, tag: str) -> list[Constraint]:
        """Applies the structure; answers what its knobs, whose names begin with `tag`, must satisfy. Raises
        ScheduleError where the structure cannot be made."""


@dataclass(frozen=True, slots=True)
class Fallback:
    """A structure that is worth a sketch only where the group has no other."""

    structure: Structure

    @property
    def name(self) -> str:
        return self.structure.name

    @property
    def fallback(self) -> bool:
        return True

    def apply(self, sch: Schedule, group: Group, target: Target, tag: str) -> list[Constraint]:
        """Applies the structure."""
        return self.structure.apply(sch, group, target, tag)


Rule = Callable[[PrimFunc, Group, Target], Iterator[Structure]]
"""The structures of a group, the most promising first; none where the rule has nothing to say of it."""

RULES: tuple[Rule, ...] = (rows, convolutions, dots, contractions, put_together, moves, elementwise)


def structures(func: PrimFunc, group: Group, target: Target) -> Iterator[Structure]:
    """Every structure of a group, first those that read an array at two places as two arrays."""
    yield from contained(_apart, func, group, target)
    yield from of_arrays(func, group, target)


def _apart(func: PrimFunc, group: Group, target: Target) -> Iterator[Structure]:
    return apart(func, group, target, of_arrays)


def of_arrays(func: PrimFunc, group: Group, target: Target) -> Iterator[Structure]:
    """Every structure that reads arrays as they are, rule by rule. Where conversions can leave the loops, the
    other ones are worth a sketch only if none of those can be made."""
    direct = any(not isinstance(s, Broken) for s in contained(_every_dot_product, func, group, target))
    # What is read only once is converted where it is read.
    found = [] if direct or group.rows else list(contained(_few_integers, func, group, target))
    if not (direct or group.rows or found):
        found = list(contained(_converted, func, group, target))
    yield from found
    made = any(not isinstance(s, Broken) for s in found)
    for structure in unconverted(func, group, target):
        yield Fallback(structure) if made and not isinstance(structure, Broken) else structure


def _few_integers(func: PrimFunc, group: Group, target: Target) -> Iterator[Structure]:
    """Sums of few integer rows along the reduction: converting and packing what they meet takes longer."""
    main = func.block(group.main)[1]
    if main.buffer.dtype.is_int and _rows_of(main) <= FEW_INTEGER_ROWS and not constants_of(func, main):
        yield from dots(func, group, target)


def _rows_of(main: Block) -> int:
    """The shortest of the loops over results that are longer than 1; 0 where there is none."""
    extents = [it.extent.const or 0 for it, k in zip(main.iters, main.kinds, strict=True) if k is not _REDUCE]
    return min((e for e in extents if e != 1), default=0)


def _converted(func: PrimFunc, group: Group, target: Target) -> Iterator[Structure]:
    return converted(func, group, target, unconverted)


def _every_dot_product(func: PrimFunc, group: Group, target: Target) -> Iterator[Structure]:
    yield from dot_products(func, group, target)
    yield from channel_dot_products(func, group, target)


def unconverted(func: PrimFunc, group: Group, target: Target) -> Iterator[Structure]:
    """The structures that leave elements as they are; likewise where the processor adds up products itself,
    which it also does along rows."""
    found: list[Structure] = list(contained(_every_dot_product, func, group, target))
    if found or group.rows:
        found += contained(lane_products, func, group, target)
    yield from found
    made = any(not isinstance(s, Broken) for s in found)
    for rule in RULES:
        for structure in contained(rule, func, group, target):
            if structure not in found:
                yield Fallback(structure) if made and not isinstance(structure, Broken) else structure


def lane_products(func: PrimFunc, group: Group, target: Target) -> Iterator[Structure]:
    """The structures of rows, and of rows with rows, whose lanes lie along the reduction, where the processor
    adds up several products in each lane; for few rows also where it would if the lanes divided the
    reduction. Rows that meet a constant are left to those that pack it ahead."""
    main = func.block(group.main)[1]
    widths = (target.lanes(32),)
    kinds = [*enumerate(main.kinds)]
    adds = any(lane_steps(main, n, target, widths) > 1 for n, k in kinds if k is IterKind.REDUCE)
    if adds:
        yield from rows(func, group, target)
    if (adds or _rows_of(main) <= FEW_ROWS) and not constants_of(func, main):
        yield from dots(func, group, target)
