"""The points of one sketch that a search may still propose."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from .candidate import Features
from .errors import NoLegalCandidate
from .space import Columns, Population, Row, SpaceSketch
from .time_split import Stopwatch

__all__ = ["ENUMERATED", "Pool", "nothing_legal"]

ENUMERATED = 1 << 16
"""A sketch with at most so many legal configurations is enumerated: its end is known exactly."""

ATTEMPTS = 4
"""How often a larger sketch is sampled in a row without anything new before it counts as used up."""

DRAW = 256
"""The least number of rows drawn at once: a sample costs about the same for one row as for some hundreds."""

SAMPLE = 4096
"""How many configurations are looked at to say which constraints leave nothing legal."""

Codes = NDArray[np.uint64]


class Pool:
    """Sketch number `index` of a space, and which of its configurations were taken.

    Rows are told apart by an integer code: mixed radix over the domains where that fits 64 bits, else a hash
    (a collision would at worst leave one point out of more than 2^64 unproposed).
    """

    def __init__(self, index: int, sketch: SpaceSketch, watch: Stopwatch | None = None) -> None:
        self.index = index
        self.sketch = sketch
        self._watch = watch or Stopwatch()
        self._domains = [np.unique(np.asarray(knob.domain, dtype=np.int64)) for knob in sketch.columns.knobs]
        self.size = math.prod(len(domain) for domain in self._domains)
        """Configurations, legal or not."""
        self._weights = _weights([len(domain) for domain in self._domains])
        self._taken: dict[int, Row] = {}
        self._points: Population | None = None
        self._looked = False
        self._left: Population | None = None
        self._point_features: Features | None = None

    @property
    def columns(self) -> Columns:
        return self.sketch.columns

    def features(self, pop: Population) -> Features:
        """The feature rows: shape (n, features)."""
        with self._watch.part("features"):
            return self.columns.features(pop)

    @property
    def enumerable(self) -> bool:
        """Whether every legal row is known."""
        if not self._looked:
            self._points, self._looked = self.columns.every(ENUMERATED), True
        return self._points is not None

    def codes(self, pop: Population) -> Codes:
        """One integer for each row, equal only for equal rows."""
        code = np.zeros(len(pop), dtype=np.uint64)
        for column, (domain, weight) in enumerate(zip(self._domains, self._weights, strict=True)):
            code += np.searchsorted(domain, pop[:, column]).astype(np.uint64) * weight
        return code

    def take(self, row: Row) -> None:
        """Never propose this row again."""
        self._taken[int(self.codes(row[None, :])[0])] = row
        self._left = None

    def taken(self, row: Row) -> bool:
        return int(self.codes(row[None, :])[0]) in self._taken

    def taken_rows(self) -> Population:
        """The rows that were taken, in this order."""
        return np.array(list(self._taken.values()), dtype=np.int64).reshape(-1, len(self._domains))

    def legal(self, row: Row) -> bool:
        """Whether it is a configuration of this sketch that satisfies every constraint."""
        if row.shape != (len(self._domains),) or not all(map(np.isin, row, self._domains)):
            return False
        return bool(self.columns.valid(row[None, :])[0])

    def unique(self, pop: Population) -> Population:
        """The rows, each once, in the order of their first appearance."""
        _, first = np.unique(self.codes(pop), return_index=True)
        first.sort()
        return pop[first]

    def fresh(self, pop: Population) -> Population:
        """The rows not taken, each once, in the order of their first appearance."""
        rows = self.unique(pop)
        return rows[self.open(rows)]

    def open(self, pop: Population) -> NDArray[np.bool_]:
        """Which rows are not taken."""
        taken = np.fromiter(self._taken, dtype=np.uint64, count=len(self._taken))
        return np.isin(self.codes(pop), taken, invert=True)

    def draw(self, n: int, rng: Generator) -> Population:
        """Up to n different rows that are legal and not taken, in random order; none when there are no more
        (exactly known where the sketch is enumerable, else after bounded attempts)."""
        if self.enumerable:
            left = self.left()
            return left[rng.permutation(len(left))[:n]]
        found = self._none()
        for _ in range(ATTEMPTS):
            drawn = self.columns.random(max(n, DRAW), rng)
            found = self.fresh(np.concatenate([found, drawn]))
            if len(found) >= n or not len(drawn):
                break
        return found[:n]

    def points(self) -> Population:
        """Every legal row of an enumerable sketch, taken or not."""
        if not self.enumerable or self._points is None:
            raise ValueError(f"sketch {self.sketch.name!r} has more than {ENUMERATED} legal rows")
        return self._points

    def left(self) -> Population:
        """Every legal row of an enumerable sketch that is not taken, in a fixed order."""
        if self._left is None:
            self._left = self.points()[self.open(self.points())]
        return self._left

    def left_features(self) -> Features:
        """The feature rows of `left`. Those of all points are computed once and kept."""
        if self._point_features is None:
            self._point_features = self.features(self.points())
        return self._point_features[self.open(self.points())]

    def sample(self, n: int, rng: Generator) -> Population:
        """Configurations whether legal or not, to see which constraints rule them out: all where there are
        at most n."""
        if self.size <= n:
            return self._rows(np.arange(self.size))
        return np.stack([domain[rng.integers(0, len(domain), n)] for domain in self._domains], axis=1)

    def _rows(self, ordinals: NDArray[np.int64]) -> Population:
        rows = np.empty((len(ordinals), len(self._domains)), dtype=np.int64)
        for column, domain in enumerate(self._domains):
            ordinals, digit = np.divmod(ordinals, len(domain))
            rows[:, column] = domain[digit]
        return rows

    def _none(self) -> Population:
        return np.empty((0, len(self._domains)), dtype=np.int64)


def nothing_legal(pools: Sequence[Pool], refused: Mapping[str, str], rng: Generator) -> NoLegalCandidate:
    """Which constraints leave no legal point, by how many of a sample of configurations break each."""
    tried, violations = 0, Counter[str]()
    for pool in pools:
        sample = pool.sample(SAMPLE, rng)
        tried += len(sample)
        violations.update(pool.columns.violations(sample))
    names = tuple(pool.sketch.name for pool in pools)
    counts = {label: count for label, count in violations.items() if count}
    return NoLegalCandidate(names, tried, counts, refused)


def _weights(sizes: Iterable[int]) -> list[np.uint64]:
    exact, weights, total = [], [], 1
    # Odd multipliers far apart (the golden ratio of 2^64), for products that leave 64 bits.
    mixed = 0x9E3779B97F4A7C15
    for size in sizes:
        exact.append(total)
        weights.append(np.uint64(mixed | 1))
        mixed = (mixed * 0xBF58476D1CE4E5B9 + 0x94D049BB133111EB) % (1 << 64)
        total *= size
    return [np.uint64(weight) for weight in exact] if total < 1 << 64 else weights
