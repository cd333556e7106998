"""Evolution guided by a cost model, over all sketches of a workload."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import islice

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from ..cost_model import CostModel, Scores, available_model, training_set
from ..model_quality import trusted
from ..outcome import Trial
from ..pool import Pool
from ..space import Population
from .base import Point, View, spread

__all__ = ["Evolutionary"]


@dataclass(frozen=True)
class Evolutionary:
    """The defaults and random points from every sketch until the first results are in; then a population of
    elites and fresh random rows evolves for some generations under the model, and the best predicted are
    proposed.

    `population` is shared by all sketches, so that a batch costs the same for one as for many. A share of
    `epsilon` of the proposals stays random, which keeps the model from believing only itself.
    """

    cost_model: Callable[[], CostModel] = available_model
    population: int = 2048
    generations: int = 4
    elites: int = 16
    epsilon: float = 0.1

    def describe(self) -> str:
        return f"evolutionary (cost model: {self.cost_model().name})"

    def propose(self, view: View, count: int, rng: Generator) -> Iterator[Point]:
        wild = spread(view, count, rng)
        if view.batch == 0:
            yield from view.defaults[: (count + 1) // 2]
        if not any(t.outcome.seconds is not None and t.candidate.features is not None for t in view.history):
            yield from wild
            return
        model = self._taught(view)
        wild = _foretold(wild, view, model)
        # What a model worse than chance ranks first is worse than what chance finds; it goes on predicting,
        # which shows whether it has learned.
        guided = self._guided(view, model, rng) if trusted(view.history) else wild
        for explore in rng.random(count) < self.epsilon:
            yield from islice(wild if explore else guided, 1)
        yield from guided
        yield from wild

    def _taught(self, view: View) -> CostModel:
        model = self.cost_model()
        with view.watch.part("train"):
            model.update(training_set(view.history, view.prior))
        return model

    def _guided(self, view: View, model: CostModel, rng: Generator) -> Iterator[Point]:
        """Points by predicted score, best first."""
        found = [(pool, self._evolved(pool, view, model, rng)) for pool in view.pools]
        ranked = [
            (float(score), Point(pool.index, row, float(score), "model"))
            for pool, scored in found
            for row, score in zip(scored.rows, scored.scores, strict=True)
        ]
        ranked.sort(key=lambda pair: -pair[0])
        yield from (point for _, point in ranked)

    def _evolved(self, pool: Pool, view: View, model: CostModel, rng: Generator) -> _Scored:
        """Rows of one sketch that are not taken, best predicted first."""
        size = max(64, self.population // len(view.pools))
        if pool.enumerable and len(pool.points()) <= size * self.generations:
            return _Scored.of(pool.fresh(pool.points()), pool, model)
        elites = _elites(pool, view.history, self.elites)
        kept = _Scored.of(pool.unique(np.concatenate([elites, pool.draw(size, rng)])), pool, model)
        for _ in range(self.generations):
            if not len(kept.rows):
                break
            children = pool.columns.mutate(kept.rows, size, rng)
            children = pool.unique(np.concatenate([kept.rows, children]))[len(kept.rows) :]
            kept = kept.merged(_Scored.of(children, pool, model), size // 2)
        return kept.only(pool.open(kept.rows))


@dataclass(frozen=True, slots=True, eq=False)
class _Scored:
    """Rows of one pool with their predicted scores, best first."""

    rows: Population
    scores: Scores

    @classmethod
    def of(cls, rows: Population, pool: Pool, model: CostModel) -> _Scored:
        if not len(rows):
            return cls(rows, np.empty(0, dtype=np.float32))
        return cls(rows, model.predict(pool.features(rows)))._sorted()

    def merged(self, other: _Scored, most: int) -> _Scored:
        both = _Scored(np.concatenate([self.rows, other.rows]), np.concatenate([self.scores, other.scores]))
        return both._sorted(most)

    def only(self, mask: NDArray[np.bool_]) -> _Scored:
        return _Scored(self.rows[mask], self.scores[mask])

    def _sorted(self, most: int | None = None) -> _Scored:
        # A stable sort: rows of equal score keep their order, so that a run repeats.
        order = np.argsort(-self.scores, kind="stable")[:most]
        return _Scored(self.rows[order], self.scores[order])


def _foretold(points: Iterator[Point], view: View, model: CostModel) -> Iterator[Point]:
    """The points with their predicted scores."""
    for point in points:
        score = model.predict(view.pools[point.pool].features(point.row[None, :]))[0]
        yield replace(point, predicted=float(score))


def _elites(pool: Pool, history: Sequence[Trial], count: int) -> Population:
    """The rows of the fastest trials of this pool's sketch."""
    timed = [
        (trial.outcome.seconds, trial.candidate.row)
        for trial in history
        if trial.candidate.sketch == pool.sketch.name
        and trial.candidate.row is not None
        and trial.outcome.exact
        and trial.outcome.seconds is not None
    ]
    timed.sort(key=lambda pair: pair[0])
    rows = [row for _, row in timed[:count]]
    return np.array(rows, dtype=np.int64).reshape(len(rows), len(pool.columns.knobs))
