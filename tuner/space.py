"""What a search needs of a search space. The compiler's spaces fit; so does any other with these members."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Protocol, runtime_checkable

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from .candidate import Features

__all__ = [
    "Columns",
    "Decisions",
    "Population",
    "ReadsTraces",
    "Row",
    "SpaceKnob",
    "SpaceSketch",
    "SpaceTrace",
    "TuningSpace",
]

Population = NDArray[np.int64]
"""Configurations of one sketch: shape (n, knobs), knob values in the order of the sketch's knobs."""

Row = NDArray[np.int64]
"""One configuration: shape (knobs,)."""


class SpaceKnob(Protocol):
    """A name and the ascending values it may take."""

    @property
    def name(self) -> str: ...

    @property
    def domain(self) -> tuple[int, ...]: ...


class Columns(Protocol):
    """A sketch's constraints and features over whole populations."""

    @property
    def knobs(self) -> Sequence[SpaceKnob]: ...

    def valid(self, pop: Population, /) -> NDArray[np.bool_]:
        """Which rows satisfy every constraint: shape (n,)."""

    def features(self, pop: Population, /) -> Features:
        """The feature rows: shape (n, features), the same layout for every sketch."""

    def every(self, most: int, /) -> Population | None:
        """Every valid row, each once and in a fixed order; None where they are more than `most`, or not to be
        found in a second or so."""

    def random(self, n: int, rng: Generator, /) -> Population:
        """Up to n valid rows, fewer (or none) where they are hard to find; rows may repeat."""

    def mutate(self, pop: Population, n: int, rng: Generator, /) -> Population:
        """Up to n valid rows near those of `pop`."""

    def neighbours(self, pop: Population, /) -> Population:
        """Every valid row beside those of `pop`: that differs from one of them in a single knob, or in two
        between which a factor moves. None of `pop` itself, each once, the nearest first."""

    def violations(self, pop: Population, /) -> dict[str, int]:
        """How many rows break each constraint, by its label."""


class SpaceTrace(Protocol):
    """A trace whose knobs are integers."""

    def to_json(self) -> dict[str, Any]:
        """What is stored and sent."""

    def canonical_json(self) -> str:
        """What identifies it: equal for traces that do the same."""


class SpaceSketch(Protocol):
    """A structure of schedule with open knobs."""

    @property
    def name(self) -> str: ...

    @property
    def columns(self) -> Columns: ...

    def resolve(self, row: Row, /) -> SpaceTrace:
        """The trace of one configuration."""


class Decisions(Protocol):
    """What the knobs of a structure were in a trace. `exact`: with them the structure's trace is that one."""

    @property
    def knobs(self) -> Mapping[str, int]: ...

    @property
    def exact(self) -> bool: ...


@runtime_checkable
class ReadsTraces(Protocol):
    """A sketch that also knows its knobs in a trace; of others nothing is taken over into it."""

    def decisions(self, trace: Mapping[str, Any], /) -> Decisions | None:
        """The knobs with which this structure makes a resolved trace (JSON), whatever their domains; None
        where its steps are others."""


class TuningSpace(Protocol):
    """The sketches of one workload."""

    @property
    def sketches(self) -> Sequence[SpaceSketch]: ...

    @property
    def workload_key(self) -> str: ...

    @property
    def refused(self) -> Mapping[str, str]:
        """For each structure of schedule that does not apply here, the reason."""
