"""What a search strategy is given and what it gives back."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from numpy.random import Generator

from ..estimate import Estimate
from ..outcome import Trial
from ..pool import Pool
from ..prior import Prior
from ..space import Row
from ..time_split import Stopwatch

__all__ = ["Point", "SearchStrategy", "View", "spread"]


@dataclass(frozen=True, slots=True, eq=False)
class Point:
    """One configuration: a row of the pool with that index.

    `predicted`: the score that a cost model gave it. `origin`: what proposed it, in a word: `default`,
    `suggested`, `transferred`, `random`, or the strategy's own part (`model`, `local`, …).
    """

    pool: int
    row: Row
    predicted: float | None = None
    origin: str = ""


@dataclass(frozen=True, slots=True, eq=False)
class View:
    """All that batch `batch` may depend on: the pools, the points that rules would choose without a search
    (the most promising first), and in trial order the results up to batch - 2.

    `prior`: what other searches measured, for the cost model, and `estimate`: what rules say. `watch` is
    where the strategy notes what its time goes to (`train`; whatever it does not note is `propose`).
    """

    batch: int
    pools: Sequence[Pool]
    defaults: Sequence[Point]
    history: Sequence[Trial]
    prior: Prior | None = None
    watch: Stopwatch = field(default_factory=Stopwatch)
    estimate: Estimate | None = None


class SearchStrategy(Protocol):
    """Proposes what to measure next."""

    def describe(self) -> str:
        """The name and what a user should know of it (which cost model it found)."""

    def propose(self, view: View, count: int, rng: Generator) -> Iterator[Point]:
        """Points in the order in which they should be measured, preferred ones first.

        The session takes points as they come until it has `count` new ones, and marks each in its pool before
        it asks for the next; a point it knows already is passed over. The iterator ends only when nothing new
        is to be found in any pool: that ends the search as `exhausted`. It is a function of its arguments
        alone, so that a search can be repeated and resumed.
        """


def spread(view: View, count: int, rng: Generator) -> Iterator[Point]:
    """Random points, from the sketches in turn, until there are no more."""
    start = int(rng.integers(len(view.pools))) if view.pools else 0
    waiting = [(pool, list[Row]()) for pool in (*view.pools[start:], *view.pools[:start])]
    while waiting:
        left = []
        for pool, rows in waiting:
            if not rows:
                rows.extend(pool.draw(count, rng)[::-1])
            if rows:
                left.append((pool, rows))
                yield Point(pool.index, rows.pop(), origin="random")
        waiting = left
