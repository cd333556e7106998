"""Descent along the knobs."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from numpy.random import Generator

from .base import Point, View, spread
from .incumbents import around

__all__ = ["Local"]


@dataclass(frozen=True)
class Local:
    """Coordinate descent: what lies one step from the fastest point so far, the nearest first, and then
    around the next fastest. It begins with the defaults and `start` random points; a share of `epsilon` of
    the proposals stays random, so that it leaves a valley that has no better neighbour."""

    start: int = 8
    epsilon: float = 0.1

    def describe(self) -> str:
        return "local"

    def propose(self, view: View, count: int, rng: Generator) -> Iterator[Point]:
        wild = spread(view, count, rng)
        if view.batch == 0:
            yield from view.defaults[: (count + 1) // 2]
        if len(view.history) < self.start:
            yield from wild
            return
        random = rng.random(count) < self.epsilon
        for number, point in enumerate(around(view, len(view.history))):
            if number < count and random[number]:
                yield from (each for each in [next(wild, None)] if each is not None)
            yield point
        yield from wild
