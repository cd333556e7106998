"""Simulated annealing."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.random import Generator

from ..outcome import Trial
from .base import Point, View, spread

__all__ = ["Annealing"]

STREAM = 0x414E4E45
"""Keeps the numbers that decide on a trial apart from those that proposed it."""


@dataclass(frozen=True)
class Annealing:
    """A walk that goes to each measured point that is faster, and to a slower one with the probability
    exp(-d / T) for times d (a share) apart (Kirkpatrick, Gelatt and Vecchi, Science 220, 1983); the
    temperature T falls from `hot` by `cooling` a trial, down to `cold`. All of a batch are points one step
    from where the walk stands, near ones more often. A share of `leap` is drawn at random: other sketches
    have no neighbours here."""

    hot: float = 0.3
    cooling: float = 0.97
    cold: float = 0.005
    leap: float = 0.1

    def describe(self) -> str:
        return "annealing"

    def propose(self, view: View, count: int, rng: Generator) -> Iterator[Point]:
        wild = spread(view, count, rng)
        if view.batch == 0:
            yield from view.defaults[: (count + 1) // 2]
        visited = self._walk(view.history)
        leaps = iter(rng.random(count) < self.leap)
        index = {pool.sketch.name: pool for pool in view.pools}
        for trial in reversed(visited):
            # Where all around the walk is taken, it goes on from where it was before.
            pool = index[trial.candidate.sketch]
            rows = pool.fresh(pool.columns.neighbours(np.array([trial.candidate.row], dtype=np.int64)))
            # Nearest first: the n-th of them comes with a weight of 1 / n.
            keys = rng.exponential(1.0, len(rows)) * np.arange(1, len(rows) + 1)
            for row in rows[np.argsort(keys, kind="stable")]:
                while next(leaps, False):
                    yield from (point for point in [next(wild, None)] if point is not None)
                yield Point(pool.index, row, origin="annealing")
        yield from wild

    def _walk(self, history: Sequence[Trial]) -> list[Trial]:
        """The trials that the walk has gone to, in this order."""
        visited: list[Trial] = []
        for trial in history:
            seconds = trial.outcome.seconds
            if trial.candidate.row is None or not trial.outcome.exact or seconds is None:
                continue
            here = visited[-1].outcome.seconds if visited else None
            if here is None or self._goes(seconds / here - 1, trial.candidate.number):
                visited.append(trial)
        return visited

    def _goes(self, slower: float, number: int) -> bool:
        if slower <= 0:
            return True
        temperature = max(self.cold, self.hot * self.cooling**number)
        return bool(np.random.default_rng([STREAM, number]).random() < math.exp(-slower / temperature))
