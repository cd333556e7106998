"""Evolution guided by a cost model, over all sketches of a workload."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from itertools import islice

import numpy as np
from numpy.random import Generator

from ..cost_model import CostModel, Learner, available_model
from ..model_quality import trusted
from .base import Point, View, spread
from .field import survey

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
    epsilon: float = 0.1
    _learner: list[Learner] = field(default_factory=list, repr=False, compare=False)

    def describe(self) -> str:
        return f"evolutionary (cost model: {self.cost_model().name})"

    def propose(self, view: View, count: int, rng: Generator) -> Iterator[Point]:
        wild = spread(view, count, rng)
        if view.batch == 0:
            yield from view.defaults[: (count + 1) // 2]
        model = self._taught(view)
        if model is None:
            yield from wild
            return
        wild = _foretold(wild, view, model)
        # What a model worse than chance ranks first is worse than what chance finds; it goes on predicting,
        # which shows whether it has learned.
        guided = self._guided(view, model, rng) if trusted(view.history) else wild
        for explore in rng.random(count) < self.epsilon:
            yield from islice(wild if explore else guided, 1)
        yield from guided
        yield from wild

    def _taught(self, view: View) -> CostModel | None:
        if not self._learner:
            self._learner.append(Learner(self.cost_model))
        return self._learner[0].taught(view.history, view.prior, view.watch, view.estimate)

    def _guided(self, view: View, model: CostModel, rng: Generator) -> Iterator[Point]:
        """Points by predicted score, best first."""
        seen = survey(view, model, self.population, self.generations, rng)
        for number in np.argsort(-seen.scores, kind="stable"):
            yield seen.point(int(number), "model")


def _foretold(points: Iterator[Point], view: View, model: CostModel) -> Iterator[Point]:
    """The points with their predicted scores."""
    for point in points:
        score = model.predict(view.pools[point.pool].features(point.row[None, :]))[0]
        yield replace(point, predicted=float(score))
