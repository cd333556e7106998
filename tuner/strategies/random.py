"""Random search: the baseline that a strategy has to beat."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from numpy.random import Generator

from .base import Point, View, spread

__all__ = ["Random"]


@dataclass(frozen=True)
class Random:
    """Legal points at random, from the sketches in turn."""

    def describe(self) -> str:
        return "random"

    def propose(self, view: View, count: int, rng: Generator) -> Iterator[Point]:
        return spread(view, count, rng)
