"""The rule for windows over channels that lie apart, where the processor adds up products of several
channels: a copy of the data holds each place's channels side by side, and the rule for dot products takes it
from there."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

from ..ir import Block, IterKind, Load, PrimFunc, buffers_read
from ..schedule import Schedule, ScheduleError
from ..target import Target
from .dot_products import dim_of, dot_products, factors_of
from .groups import Group
from .lanes import copy_in_lanes
from .moves import Moves
from .sketch import Constraint
from .windows import Windows


@dataclass(frozen=True, slots=True)
class ChannelsLast:
    """The number-th dot product of the program with channels last."""

    number: int
    name: str
    fallback: bool = False

    def apply(self, sch: Schedule, group: Group, target: Target, tag: str) -> list[Constraint]:
        """Copies, applies the structure, and turns the copy in registers."""
        inner, copy = channels_last(sch, group)
        constraints = [*dot_products(sch.func, inner, target)][self.number].apply(sch, inner, target, tag)
        for name in group.producers:
            copy_in_lanes(sch, name, target)
        trial = sch.copy()
        try:
            constraints += Moves().apply(trial, Group(copy), target, f"{tag}{copy}_")
        except ScheduleError:
            return constraints
        sch.adopt(trial)
        return constraints


def channel_dot_products(func: PrimFunc, group: Group, target: Target) -> Iterator[ChannelsLast]:
    """Every structure of a group whose channels do not lie side by side; none where the rule for dot products
    has some as it is."""
    main = func.block(group.main)[1]
    if _apart(main) is None or any(True for _ in dot_products(func, group, target)):
        return
    trial = Schedule(func)
    inner, _ = channels_last(trial, group)
    for n, s in enumerate(dot_products(trial.func, inner, target)):
        if (trial.func.block(group.main)[1].iters[s.step].extent.const or 0) % s.steps == 0:
            yield ChannelsLast(n, f"channels last, {s.name}")


def channels_last(sch: Schedule, group: Group) -> tuple[Group, str]:
    """Makes the copy; the group that is left, and the copying block."""
    main = sch.func.block(group.main)[1]
    found = _apart(main)
    assert found is not None
    data, dim = found
    order = (*(d for d in range(len(data.indices)) if d != dim), dim)
    slot = buffers_read(main).index(data.buffer)
    copy = sch.cache_read(sch.get_block(group.main), slot, "local", order)
    sch.transform_block_layout(copy, lambda *index: tuple(index[d] for d in order))
    return replace(group, producers=()), copy.name


def _apart(main: Block) -> tuple[Load, int] | None:
    """The data that windows move over, and the dimension of its channels, where that is not the last one."""
    pair, windows = factors_of(main), Windows.of(main)
    if pair is None or windows is None:
        return None
    moved = [x for x in pair if any(p in i.vars() for i in x.indices for p in windows.places)]
    if len(moved) != 1:
        return None
    (data,) = moved
    other = next(x for x in pair if x is not data)
    for it, kind in zip(main.iters, main.kinds, strict=True):
        dim = dim_of(data, it) if kind is IterKind.REDUCE else None
        if dim is not None and dim_of(other, it) is not None and it in windows.channels:
            return (data, dim) if dim < len(data.indices) - 1 else None
    return None
