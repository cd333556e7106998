"""A sketch's constraints and features over whole populations of configs."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from ..arith import Knob, product
from ..ir import PrimFunc
from .compile import ColumnCompiler
from .features import FEATURE_NAMES, feature_columns

if TYPE_CHECKING:
    from .sketch import Constraint

#: int64, shape (configs, knobs); the columns are in the order of the sketch's knobs.
Population = NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class ColumnRule:
    """A condition on configs that is no polynomial: `allowed` answers, for a population, which satisfy it."""

    label: str
    allowed: Callable[[Population], NDArray[np.bool_]]


@dataclass(frozen=True, slots=True)
class Part:
    """Knobs, by their numbers, that no constraint ties to others, with the numbers of their constraints."""

    knobs: tuple[int, ...]
    constraints: tuple[int, ...]


def parts_of(knobs: Sequence[Knob], constraints: Sequence[Constraint]) -> list[Part]:
    """The parts of what constraints tie together; a constraint without knobs belongs to each. Knobs that are
    free of constraints are in none."""
    tied: list[set[Knob]] = []
    for c in constraints:
        found = set(c.value.knobs())
        if found:
            apart = [t for t in tied if not t & found]
            tied = [*apart, found.union(*(t for t in tied if t & found))]
    return [
        Part(
            tuple(n for n, k in enumerate(knobs) if k in t),
            tuple(n for n, c in enumerate(constraints) if c.value.knobs() <= t),
        )
        for t in tied
    ]


_CHUNK = 2048
_ROUNDS = 200


class SketchColumns:
    """Compiled once for each sketch; works on populations of shape (n, knobs)."""

    def __init__(
        self,
        func: PrimFunc,
        main: str,
        index: int,
        knobs: Sequence[Knob],
        constraints: Sequence[Constraint],
        rules: Sequence[ColumnRule] = (),
    ) -> None:
        self.knobs = tuple(knobs)
        self._rules = tuple(rules)
        self.domains = [np.array(k.domain, np.int64) for k in knobs]
        self._labels = [c.label for c in constraints]
        compiler = ColumnCompiler(knobs)
        self._values = compiler.compile([compiler.emit(c.value) for c in constraints])
        self._limits = np.array([c.at_most for c in constraints], np.float32)[:, None]
        self._parts = [] if rules else parts_of(knobs, constraints)
        compiler = ColumnCompiler(knobs)
        self._features = compiler.compile(feature_columns(func, main, index, compiler))

    @property
    def size(self) -> int:
        """The number of configs, legal or not."""
        return product(len(k.domain) for k in self.knobs).const or 1

    def _broken(self, population: Population) -> NDArray[np.bool_]:
        """shape (constraints, n): where a constraint does not hold."""
        columns = population.T.astype(np.float32)
        out = np.empty((len(self._labels), columns.shape[1]), np.float32)
        broken = np.empty(out.shape, np.bool_)
        np.greater(self._values(columns, out), self._limits, out=broken)
        return broken

    def _holds(self, population: Population, chosen: tuple[int, ...]) -> NDArray[np.bool_]:
        """Which configs satisfy the constraints with these numbers; shape (n,)."""
        out = np.empty((len(chosen), len(population)), np.float32)
        values = self._values(population.T.astype(np.float32), out, chosen)
        holds: NDArray[np.bool_] = np.logical_and.reduce(values <= self._limits[list(chosen)], axis=0)
        return holds

    def valid(self, population: Population) -> NDArray[np.bool_]:
        """Which configs satisfy every constraint; shape (n,)."""
        valid: NDArray[np.bool_] = np.logical_and.reduce(~self._broken(population), axis=0)
        for rule in self._rules:
            valid &= rule.allowed(population)
        return valid

    def violations(self, population: Population) -> dict[str, int]:
        """For each constraint, by its label, how many configs break it."""
        counts = self._broken(population).sum(1)
        found = {label: int(n) for label, n in zip(self._labels, counts, strict=True)}
        found |= {r.label: int(np.count_nonzero(~r.allowed(population))) for r in self._rules}
        return {label: n for label, n in found.items() if n}

    def sample(self, n: int, rng: np.random.Generator) -> Population:
        """n configs drawn independently, legal or not."""
        if not self.knobs:
            return np.empty((n, 0), np.int64)
        return np.stack([d[rng.integers(0, len(d), n)] for d in self.domains], axis=1)

    def random(self, n: int, rng: np.random.Generator) -> Population:
        """Up to n legal configs, by rejection; fewer, down to none, when a bounded number of draws finds no
        more."""
        if self.size <= _CHUNK:
            # The whole space, in random order, then again: small spaces are not sampled by luck.
            every = self.enumerate()
            return (
                every[rng.permutation(len(every))][:n]
                if len(every) >= n
                else every[rng.integers(0, max(1, len(every)), n * bool(len(every)))]
            )
        if len(self._parts) > 1:
            return self._random_by_parts(n, rng)
        found: list[Population] = []
        have = 0
        for _ in range(_ROUNDS):
            drawn = self.sample(max(4 * n, _CHUNK), rng)
            drawn = drawn[self.valid(drawn)]
            found.append(drawn)
            have += len(drawn)
            if have >= n:
                break
        return np.concatenate(found)[:n]

    def _random_by_parts(self, n: int, rng: np.random.Generator) -> Population:
        """Likewise, part by part: where each of several groups of blocks allows few configs, hardly one that
        is drawn as a whole is legal in all of them."""
        out = self.sample(n, rng)
        for part in self._parts:
            found = self._legal_part(part, n, rng)
            if not len(found):
                return out[:0]
            columns = list(part.knobs)
            out[:, columns] = found[rng.integers(0, len(found), n)][:, columns]
        return out

    def _legal_part(self, part: Part, n: int, rng: np.random.Generator) -> Population:
        """Configs that are legal in a part: n where a bounded number of draws finds as many, all where there
        are few."""
        found: list[Population] = []
        have = 0
        for _ in range(_ROUNDS):
            drawn = self._sample_part(part, max(4 * n, _CHUNK), rng)
            few = len(drawn) < _CHUNK
            drawn = drawn[self._holds(drawn, part.constraints)]
            found.append(drawn)
            have += len(drawn)
            if have >= n or few:
                break
        return np.concatenate(found)

    def _sample_part(self, part: Part, n: int, rng: np.random.Generator) -> Population:
        """Configs of a part, drawn independently, or all where they are few; the other knobs stay as they
        are."""
        domains = [self.domains[k] for k in part.knobs]
        few = product(map(len, domains)).const or 0
        if few <= n:
            columns = [g.ravel() for g in np.meshgrid(*domains, indexing="ij")]
        else:
            columns = [d[rng.integers(0, len(d), n)] for d in domains]
        out = np.tile(np.array([d[0] for d in self.domains], np.int64), (len(columns[0]), 1))
        out[:, list(part.knobs)] = np.stack(columns, axis=1)
        return out

    def enumerate(self) -> Population:
        """Every legal config, for spaces of moderate size."""
        if not self.knobs:
            every = np.empty((1, 0), np.int64)
        else:
            every = np.stack([g.ravel() for g in np.meshgrid(*self.domains, indexing="ij")], axis=1)
        return every[self.valid(every)]

    def mutate(self, population: Population, n: int, rng: np.random.Generator) -> Population:
        """Up to n legal children: a quarter of the knobs from a second parent, and about one and a half drawn
        anew."""
        if not len(population) or not self.knobs:
            return population[:0]
        first = population[rng.integers(0, len(population), n)]
        second = population[rng.integers(0, len(population), n)]
        child = np.where(rng.random(first.shape) < 0.25, second, first)
        for k, d in enumerate(self.domains):
            fresh = rng.random(n) < 1.5 / len(self.domains)
            child[fresh, k] = d[rng.integers(0, len(d), int(fresh.sum()))]
        return child[self.valid(child)]

    def features(self, population: Population, chosen: tuple[int, ...] | None = None) -> NDArray[np.float32]:
        """shape (n, len(FEATURE_NAMES)), or (n, len(chosen)) of those with these numbers."""
        n, count = len(population), len(FEATURE_NAMES if chosen is None else chosen)
        columns = population.T.astype(np.float32)
        out = np.empty((n, count), np.float32)
        buffer = np.empty((count, min(n, _CHUNK)), np.float32)
        for start in range(0, n, _CHUNK):
            part = columns[:, start : start + _CHUNK]
            rows = buffer[:, : part.shape[1]]
            out[start : start + _CHUNK] = self._features(part, rows, chosen).T
        return out
