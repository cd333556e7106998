"""The fastest trials, which a search goes on from."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import takewhile

import numpy as np

from ..outcome import Trial
from ..pool import Pool
from ..space import Population
from .base import Point, View

__all__ = ["around", "elites", "fastest", "since_best"]


def fastest(view: View, count: int) -> list[Point]:
    """The `count` fastest points that have a time of their own, fastest first."""
    index = {pool.sketch.name: pool.index for pool in view.pools}
    return [
        Point(index[trial.candidate.sketch], np.array(trial.candidate.row, dtype=np.int64))
        for trial in _ranked(view.history)[:count]
        if trial.candidate.sketch in index
    ]


def since_best(view: View) -> int:
    """How many of the trials that were told came after the fastest one."""
    best = next(iter(_ranked(view.history)), None)
    later = takewhile(lambda trial: trial is not best, reversed(view.history))
    return 0 if best is None else sum(1 for _ in later)


def elites(pool: Pool, history: Sequence[Trial], count: int) -> Population:
    """The rows of the `count` fastest trials of this pool's sketch, fastest first."""
    name = pool.sketch.name
    rows = [trial.candidate.row for trial in _ranked(history) if trial.candidate.sketch == name][:count]
    return np.array(rows, dtype=np.int64).reshape(len(rows), len(pool.columns.knobs))


def around(view: View, count: int) -> Iterator[Point]:
    """What lies one step from the `count` fastest points and is not taken: first all around the fastest, the
    nearest first, then around the second, and so on."""
    for point in fastest(view, count):
        pool = view.pools[point.pool]
        for row in pool.fresh(pool.columns.neighbours(point.row[None, :])):
            yield Point(pool.index, row, origin="local")


def _ranked(history: Sequence[Trial]) -> list[Trial]:
    timed = [
        (trial.outcome.seconds, trial.candidate.number, trial)
        for trial in history
        if trial.candidate.row is not None and trial.outcome.exact and trial.outcome.seconds is not None
    ]
    return [trial for _, _, trial in sorted(timed, key=lambda each: each[:2])]
