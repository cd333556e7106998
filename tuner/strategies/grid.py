"""Every point, in order."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from numpy.random import Generator

from .base import Point, View, spread

__all__ = ["Grid"]


@dataclass(frozen=True)
class Grid:
    """One sketch after the other, each from its first legal configuration to its last. What is too large to
    be enumerated comes after them, at random: nobody would see its end."""

    def describe(self) -> str:
        return "grid"

    def propose(self, view: View, count: int, rng: Generator) -> Iterator[Point]:
        for pool in view.pools:
            if pool.enumerable:
                for row in pool.left():
                    yield Point(pool.index, row, origin="grid")
        yield from spread(view, count, rng)
