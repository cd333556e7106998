"""Sketches: schedules whose tile factors are open knobs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..arith import Knob, Poly
from ..ir import Block, PrimFunc
from ..schedule import Trace
from .express import Decisions, decisions
from .population import ColumnRule, SketchColumns

#: Stands for the position of a schedule that no sketch made.
NO_SKETCH = 99


@dataclass(frozen=True, slots=True)
class Constraint:
    """`value`, a polynomial over knobs, must be at most `at_most`. The label is for people."""

    label: str
    value: Poly
    at_most: int


@dataclass(frozen=True, eq=False)
class Sketch:
    """One structure of a schedule, traced once with symbolic knobs.

    name: what distinguishes it from its siblings, for people. func: the scheduled program over knobs. trace:
    with the knobs open. main: the block that does most of the work, whose surroundings the features describe.
    index: its position in the space. mains: the tiled block of every group, in program order.
    """

    name: str
    func: PrimFunc
    trace: Trace
    knobs: tuple[Knob, ...]
    constraints: tuple[Constraint, ...]
    main: str
    index: int
    mains: tuple[str, ...] = ()
    rules: tuple[ColumnRule, ...] = ()

    @cached_property
    def columns(self) -> SketchColumns:
        """Constraints and features as NumPy columns over a population; compiled on first use."""
        return SketchColumns(self.func, self.main, self.index, self.knobs, self.constraints, self.rules)

    def config(self, row: Sequence[int] | np.ndarray) -> dict[str, int]:
        """One row of a population as knob name -> value."""
        return {k.name: int(v) for k, v in zip(self.knobs, row, strict=True)}

    def resolve(self, row: Sequence[int] | np.ndarray) -> Trace:
        """The trace with the integers of one row."""
        return self.trace.resolve(self.config(row))

    def decisions(self, trace: Mapping[str, Any]) -> Decisions | None:
        """The knobs with which this sketch makes a resolved trace (its JSON form): see `decisions`."""
        return decisions(self.trace, trace)


def features_of_schedule(func: PrimFunc) -> NDArray[np.float32]:
    """The feature row of a scheduled program that no sketch made; shape (len(FEATURE_NAMES),). Its heaviest
    block stands for it, and the number of its sketch is one that no sketch has."""
    main = max((b for _, b in func.blocks()), key=points).name
    columns = SketchColumns(func, main, NO_SKETCH, (), ())
    row: NDArray[np.float32] = columns.features(np.empty((1, 0), np.int64))[0]
    return row


def points(b: Block) -> int:
    """The points of a block's domain, twice for a reduction."""
    total = 2 if b.is_reduction else 1
    for it in b.iters:
        total *= it.extent.const or 1
    return total


@dataclass(frozen=True, eq=False)
class SearchSpace:
    """Every sketch of one workload on one target. refused: for each structure that could not be made, its
    name and the reason. errors: for each rule that failed, its name and what it raised, which is a fault of
    the rule and not of the workload."""

    func: PrimFunc
    workload_key: str
    sketches: tuple[Sketch, ...]
    refused: Mapping[str, str]
    errors: Mapping[str, str] = field(default_factory=dict)
