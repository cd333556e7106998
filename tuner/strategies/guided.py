"""The default: a cost model chooses, and keeps looking elsewhere."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from ..cost_model import CostModel, Learner, XGBoost, available_model
from ..model_quality import trusted
from .base import Point, View, spread
from .design import filling
from .field import Field, survey, whole
from .incumbents import around, fastest, since_best
from .promise import Promise

__all__ = ["Guided", "ensemble"]

TRIES = 8
"""How often another knob and value are drawn where no point has them."""

TWICE = 0.5
"""How often two knobs are asked to differ instead of one: a better corner may be two changes away, each of
which alone is for the worse."""

INCUMBENTS = 4
"""The fastest trials around which `local` looks."""

MEMBERS = 1
"""Of the model."""


def ensemble() -> CostModel:
    """XGBoost with a few members where it is installed, so that it knows what it does not know."""
    model = available_model()
    return XGBoost(members=MEMBERS) if isinstance(model, XGBoost) else model


@dataclass(frozen=True)
class Guided:
    """The defaults, and points spread over the space until `initial` are out. From then on a cost model
    scores every open point (of large spaces: what an evolving population comes to), and the places of a batch
    go in turn to

    - `model`: the best predicted;
    - `elsewhere`: the best predicted of those with another value of one knob (or two) than the fastest trial
      has, knob and value drawn at random (one knob more is the sketch): so a model's belief in one corner of
      the space is tested in every direction, at the most promising place;
    - `local`: the best predicted of those one step from the fastest trials.

    `shares` are their parts of the places, by name. Where every open point is looked at, a part `promising`
    of all places goes to what a Gaussian process and the cost model together promise the most of (Promise),
    and `early` of the first `initial`: a search that begins with the trials of others has a model by then
    instead of points that are spread, and what is unknown promises something, too. There, too, once
    `patience` trials have brought nothing faster, all that lies one step from the fastest is measured, the
    nearest first, before the places go on: among points as fast as the best to a hundredth or two no model
    knows which is faster.

    A share of `epsilon` is random. `bonus` is what a standard deviation of the model's members is worth to an
    unmeasured point.
    """

    cost_model: Callable[[], CostModel] = ensemble
    population: int = 2048
    generations: int = 3
    initial: int = 16
    shares: tuple[tuple[str, float], ...] = (("model", 0.3), ("elsewhere", 0.6), ("local", 0.1))
    promising: float = 0.25
    early: float = 0.5
    patience: int = 8
    epsilon: float = 0.0
    bonus: float = 0.0
    _learner: list[Learner] = field(default_factory=list, repr=False, compare=False)

    def describe(self) -> str:
        return f"guided (cost model: {self.cost_model().name})"

    def propose(self, view: View, count: int, rng: Generator) -> Iterator[Point]:
        if view.batch == 0:
            yield from view.defaults[: (count + 1) // 2]
        model = self._taught(view)
        if model is None:
            yield from filling(view, rng)
            return
        begun = sum(len(pool.taken_rows()) for pool in view.pools)
        if begun < self.initial and view.prior is None:
            yield from _foretold(filling(view, rng), view, model)
            return
        wild = _foretold(spread(view, count, rng), view, model)
        # What a model worse than chance ranks first is worse than what chance finds; it goes on predicting,
        # which shows whether it has learned.
        if since_best(view) >= self.patience and whole(view):
            yield from _foretold(around(view, 1), view, model)
        if trusted(view.history):
            yield from self._chosen(view, model, begun, count, rng, wild)
        yield from wild

    def _taught(self, view: View) -> CostModel | None:
        if not self._learner:
            self._learner.append(Learner(self.cost_model))
        return self._learner[0].taught(view.history, view.prior, view.watch, view.estimate)

    def _chosen(
        self, view: View, model: CostModel, begun: int, count: int, rng: Generator, wild: Iterator[Point]
    ) -> Iterator[Point]:
        seen = survey(view, model, self.population, self.generations, rng)
        if not len(seen):
            return
        with view.watch.part("train"):
            promise = Promise.of(view, seen) if self.promising else None
        places = _Places(view, seen, seen.scores + self.bonus * seen.deviations, promise, rng)
        shares = self._shares(promise, begun)
        turns = dict.fromkeys(shares, 0.0)
        for number in range(len(seen)):
            if rng.random() < self.epsilon and number < count:
                point = next(wild, None)
                if point is not None:
                    yield point
                continue
            for name, share in shares.items():
                turns[name] += share
            # Whose turn is overdue the most; each ask goes on where the last one was: shares that are no
            # multiple of a place come round over several batches.
            name = max(turns, key=lambda each: turns[each] + (begun * shares[each]) % 1.0)
            turns[name] -= 1.0
            chosen = getattr(places, name)() if number < count else places.model()
            yield seen.point(chosen, name)

    def _shares(self, promise: Promise | None, begun: int) -> dict[str, float]:
        if promise is None:
            return dict(self.shares)
        promising = self.early if begun < self.initial else self.promising
        rest = {name: share * (1 - promising) for name, share in self.shares}
        return {"promising": promising, **rest}


class _Places:
    """Chooses points of a field, each once. As long as nothing is measured, what rules choose stands for the
    fastest trial."""

    def __init__(
        self, view: View, seen: Field, worth: NDArray[np.float32], promise: Promise | None, rng: Generator
    ) -> None:
        self._view = view
        self._promise = promise
        self._seen = seen
        self._rng = rng
        # Among equals (many rows share the leaves of all trees) chance decides, not the order of a table.
        self._worth = worth + rng.random(len(worth), dtype=np.float32) * np.float32(1e-6)
        self._order = np.argsort(-self._worth, kind="stable")
        self._next = 0
        self._incumbents = fastest(view, INCUMBENTS) or list(view.defaults[:1])
        self._best = next(iter(self._incumbents), None)
        self._beside: NDArray[np.int64] | None = None

    def model(self) -> int:
        while np.isneginf(self._worth[self._order[self._next]]):
            self._next += 1
        return self._take(int(self._order[self._next]))

    def promising(self) -> int:
        if self._promise is None:
            return self.model()
        promised = np.where(np.isneginf(self._worth), -np.inf, self._promise.improvement())
        chosen = int(np.argmax(promised))
        return self._take(chosen) if promised[chosen] > 0 else self.model()

    def elsewhere(self) -> int:
        for _ in range(TRIES):
            if self._best is None:
                break
            numbers = self._other(self._best)
            if self._rng.random() < TWICE:
                both = np.intersect1d(numbers, self._other(self._best), assume_unique=True)
                numbers = both if len(both) else numbers
            if (found := self._open(numbers)) is not None:
                return self._take(found)
        return self.model()

    def local(self) -> int:
        if self._beside is None:
            near = [
                self._seen.among(pool, pool.columns.neighbours(point.row[None, :]))
                for point in self._incumbents
                for pool in (self._view.pools[point.pool],)
            ]
            self._beside = np.unique(np.concatenate(near)) if near else np.empty(0, dtype=np.int64)
        found = self._open(self._beside)
        return self.model() if found is None else self._take(found)

    def _other(self, best: Point) -> NDArray[np.int64]:
        """The numbers of the points with another value of a knob than that point, or of another sketch."""
        pools = self._view.pools
        knobs = pools[best.pool].columns.knobs
        choices = [n for n, knob in enumerate(knobs) if len(knob.domain) > 1]
        drawn = int(self._rng.integers(max(1, len(choices) + (len(pools) > 1))))
        if drawn < len(choices):
            knob = choices[drawn]
            values = [value for value in knobs[knob].domain if value != best.row[knob]]
            return self._seen.having(best.pool, knob, values[int(self._rng.integers(len(values)))])
        others = [pool.index for pool in pools if pool.index != best.pool]
        return self._seen.of(others[int(self._rng.integers(len(others)))]) if others else self._seen.of(0)[:0]

    def _open(self, numbers: NDArray[np.int64]) -> int | None:
        """The best of these that was not chosen yet."""
        if not len(numbers):
            return None
        best = int(numbers[int(np.argmax(self._worth[numbers]))])
        return None if np.isneginf(self._worth[best]) else best

    def _take(self, number: int) -> int:
        self._worth[number] = -np.inf
        if self._promise is not None:
            self._promise.measuring(number)
        return number


def _foretold(points: Iterator[Point], view: View, model: CostModel) -> Iterator[Point]:
    """The points with their predicted scores."""
    for point in points:
        score = model.predict(view.pools[point.pool].features(point.row[None, :]))[0]
        yield replace(point, predicted=float(score))
