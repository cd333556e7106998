"""What smoothness along the knobs promises of points that are not measured."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Self

import numpy as np
from numpy.typing import NDArray

from ..cost_model import GaussianProcess, Posterior, available_process
from ..outcome import Trial
from ..pool import Pool
from ..space import Population
from .base import View
from .field import Field, whole

__all__ = ["Promise"]

LEAST = 4
"""Trials of a sketch from which on its process has something to say."""

ROWS = 192
"""The most trials of a sketch that its process is taught, the fastest: it takes their number cubed."""

HARDLY = 0.02
"""What the cost model predicts for failures may be 0 or less: it counts as so much of the best speed."""


class Promise:
    """Of every point of a field by how many e-folds it is expected to be faster than the fastest trial.

    Each sketch has a Gaussian process of the logarithm of its times (a failure took as long as the slowest),
    over the logarithms of its knobs and of what is odd in them. Its mean is averaged with what the cost model
    says: trees see the steps of a space, the process its slopes, and each is wrong elsewhere.
    """

    def __init__(self, seen: Field, best: float) -> None:
        self._seen = seen
        self._best = best
        self._posteriors: dict[int, Posterior] = {}

    @classmethod
    def of(cls, view: View, seen: Field) -> Self | None:
        """None where there are points that the field does not hold (a process of every evolving population
        would cost more than it gains), where few trials are known, or without SciPy."""
        times = [t.outcome.seconds for t in view.history if t.outcome.seconds is not None]
        if not times or not available_process() or not whole(view):
            return None
        promise = cls(seen, math.log(min(times)))
        for pool in view.pools:
            promise._teach(pool, view.history)
        return promise if promise._posteriors else None

    def improvement(self) -> NDArray[np.float64]:
        """Shape (n,); 0 for the points of a sketch of which too little is known."""
        out = np.zeros(len(self._seen))
        for pool, posterior in self._posteriors.items():
            numbers = self._seen.of(pool)
            out[numbers] = posterior.improvement(self._best)[: len(numbers)]
        return out

    def measuring(self, number: int) -> None:
        """That point is proposed: what is near promises less from now on."""
        pool = int(np.searchsorted(self._seen.starts, number, side="right")) - 1
        if pool in self._posteriors:
            self._posteriors[pool].measuring(number - int(self._seen.starts[pool]))

    def _teach(self, pool: Pool, history: Sequence[Trial]) -> None:
        known = _of(pool, history)
        if len(known) < LEAST or not len(self._seen.of(pool.index)):
            return
        rows = np.array([trial.candidate.row for trial in known], dtype=np.int64)
        taken = pool.taken_rows()
        pending = taken[~np.isin(pool.codes(taken), pool.codes(rows))]
        here = self._seen.parts[pool.index]
        places = _places(pool, np.concatenate([rows, here, pending]))
        process = GaussianProcess.fitted(places[: len(rows)], _logs(known))
        posterior = Posterior(process, places[len(rows) :])
        said = np.maximum(self._seen.scores[self._seen.of(pool.index)], HARDLY)
        posterior.mean[: len(here)] += self._best - np.log(said)
        posterior.mean[: len(here)] /= 2
        for number in range(len(here), len(here) + len(pending)):
            posterior.measuring(number)
        self._posteriors[pool.index] = posterior


def _of(pool: Pool, history: Sequence[Trial]) -> list[Trial]:
    """The fastest trials of a sketch, failures last; none if all of them failed."""
    name = pool.sketch.name
    mine = [t for t in history if t.candidate.sketch == name and t.candidate.row is not None]
    mine = [t for t in mine if t.outcome.failure not in ("cancelled", "worker_lost")]
    if all(t.outcome.seconds is None for t in mine):
        return []
    slow = [math.inf if t.outcome.seconds is None else t.outcome.seconds for t in mine]
    return [mine[n] for n in np.argsort(slow, kind="stable")[:ROWS]]


def _logs(known: Sequence[Trial]) -> NDArray[np.float64]:
    seconds = np.array([np.nan if t.outcome.seconds is None else t.outcome.seconds for t in known])
    return np.asarray(np.log(np.where(np.isnan(seconds), np.nanmax(seconds), seconds)), dtype=np.float64)


def _places(pool: Pool, rows: Population) -> NDArray[np.float64]:
    """The logarithms of the knobs, and of their odd parts (what is left of a number that is halved as long as
    it is even: what does not divide evenly costs a remainder), each from 0 to 1; shape (n, d)."""
    least = np.array([min(1, *knob.domain) for knob in pool.columns.knobs], dtype=np.int64)
    values = np.asarray(rows - least + 1, dtype=np.int64)
    odd = rows // np.maximum(rows & -rows, 1)
    logs = np.log2(np.concatenate([values, np.maximum(np.abs(odd), 1)], axis=1))
    low, high = logs.min(axis=0), logs.max(axis=0)
    logs = logs[:, high > low]
    return np.asarray((logs - low[high > low]) / (high - low)[high > low], dtype=np.float64)
