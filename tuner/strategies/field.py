"""All the points that a guided search looks at in one round, with what a model says of them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from ..candidate import Features
from ..cost_model import CostModel
from ..pool import Pool
from ..space import Population
from .base import Point, View
from .incumbents import elites

__all__ = ["Field", "survey", "whole"]

WHOLE = 20_000
"""A round looks at every open point of sketches that have at most so many together."""

ELITES = 16
"""The fastest trials of a sketch that a population begins with, beside fresh random rows."""


@dataclass(frozen=True, slots=True, eq=False)
class Field:
    """Points that are not taken: of each pool some rows, which are numbered through.

    starts: the number of each pool's first row, and behind them the number of all. scores: float32, shape
    (n,). deviations: float32, shape (n,), the standard deviation over the model's members.
    """

    parts: Sequence[Population]
    starts: NDArray[np.int64]
    scores: NDArray[np.float32]
    deviations: NDArray[np.float32]

    def __len__(self) -> int:
        return len(self.scores)

    def point(self, number: int, origin: str) -> Point:
        pool = int(np.searchsorted(self.starts, number, side="right")) - 1
        row = self.parts[pool][number - self.starts[pool]]
        return Point(pool, row, float(self.scores[number]), origin)

    def of(self, pool: int) -> NDArray[np.int64]:
        """The numbers of a pool's points."""
        return np.arange(self.starts[pool], self.starts[pool + 1])

    def having(self, pool: int, knob: int, value: int) -> NDArray[np.int64]:
        """The numbers of a pool's points with that value of a knob."""
        chosen: NDArray[np.int64] = self.of(pool)[self.parts[pool][:, knob] == value]
        return chosen

    def among(self, pool: Pool, rows: Population) -> NDArray[np.int64]:
        """The numbers of a pool's points that are among these rows."""
        return self.of(pool.index)[np.isin(pool.codes(self.parts[pool.index]), pool.codes(rows))]


def whole(view: View) -> bool:
    """Whether a round looks at every open point of all sketches."""
    if not all(pool.enumerable for pool in view.pools):
        return False
    return sum(len(pool.points()) for pool in view.pools) <= WHOLE


def survey(view: View, model: CostModel, population: int, generations: int, rng: Generator) -> Field:
    """Every open point where they are few enough; else, of each sketch, what a population comes to that
    evolves for some generations under the model. `population` rows are shared by all sketches, so that a
    round costs the same for one as for many."""
    size = max(64, population // max(1, len(view.pools)))
    room = WHOLE
    parts, said = [], []
    for pool in view.pools:
        if pool.enumerable and len(pool.points()) <= max(room, size * generations):
            room -= len(pool.points())
            parts.append(pool.left())
            said.append(_said(model, pool.left_features()))
        else:
            rows, scores = _evolved(pool, _begun(view, pool), model, size, generations, rng)
            left = pool.open(rows)
            parts.append(rows[left])
            said.append(scores[:, left])
    said = [each for each in said if each.shape[1]]
    together = np.concatenate(said, axis=1) if said else np.empty((1, 0), dtype=np.float32)
    return Field(
        parts,
        np.cumsum([0, *map(len, parts)]),
        np.asarray(together.mean(axis=0), dtype=np.float32),
        np.asarray(together.std(axis=0), dtype=np.float32),
    )


def _begun(view: View, pool: Pool) -> Population:
    """What a population begins with: the fastest, or as long as there are none what rules would choose."""
    fastest = elites(pool, view.history, ELITES)
    chosen = [point.row for point in view.defaults if point.pool == pool.index]
    return fastest if len(fastest) or not chosen else np.stack(chosen)


def _evolved(
    pool: Pool, first: Population, model: CostModel, size: int, generations: int, rng: Generator
) -> tuple[Population, NDArray[np.float32]]:
    """All rows that a population came to, taken or not, each once, and what the model's members say of them.
    It begins with `first`, what lies one step from the fastest two of these, and random rows."""
    beside = pool.columns.neighbours(first[:2])[:size]
    rows = pool.unique(np.concatenate([first, beside, pool.draw(size, rng)]))
    said = _said(model, pool.features(rows))
    for _ in range(generations):
        if not len(rows):
            break
        # A stable sort: rows of equal score keep their order, so that a run repeats.
        parents = rows[np.argsort(-said.mean(axis=0), kind="stable")[: size // 2]]
        children = pool.columns.mutate(parents, size, rng)
        children = pool.unique(np.concatenate([rows, children]))[len(rows) :]
        if len(children):
            rows = np.concatenate([rows, children])
            said = np.concatenate([said, _said(model, pool.features(children))], axis=1)
    return rows, said


def _said(model: CostModel, features: Features) -> NDArray[np.float32]:
    """shape (members, n)."""
    return model.predict_each(features) if len(features) else np.empty((1, 0), dtype=np.float32)
