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
from .neighbours import Moves, products_of

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
#: Configs of a part that are all looked at, where draws find few that are legal.
_MOST = 1 << 17


def _picked(every: Population, n: int, rng: np.random.Generator) -> Population:
    """n of all, in random order, then again: small spaces are not sampled by luck."""
    if len(every) >= n:
        return every[rng.permutation(len(every))][:n]
    return every[rng.integers(0, max(1, len(every)), n * bool(len(every)))]


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
        self._whole = Part(tuple(range(len(knobs))), tuple(range(len(constraints))))
        #: What can be drawn apart; rules see whole configs.
        self._parts = [] if rules else parts_of(knobs, constraints)
        self._moves = Moves(self.domains, products_of(knobs, [c.value for c in constraints]))
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

    def _holds(self, population: Population, part: Part) -> NDArray[np.bool_]:
        """Which configs satisfy the constraints of a part; shape (n,)."""
        if part is self._whole:
            return self.valid(population)
        chosen = part.constraints
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
        """Up to n legal configs; fewer, down to none, when a bounded number of draws finds no more."""
        if len(self._parts) < 2:
            return self._legal(self._whole, n, rng)
        # Where each of several groups of blocks allows few configs, hardly one that is drawn as a whole is
        # legal in all of them.
        out = self.sample(n, rng)
        for part in self._parts:
            found = self._legal(part, n, rng)
            if not len(found):
                return out[:0]
            columns = list(part.knobs)
            out[:, columns] = found[rng.integers(0, len(found), n)][:, columns]
        return out

    def _legal(self, part: Part, n: int, rng: np.random.Generator) -> Population:
        """Up to n configs that are legal in a part, by rejection; from all of them where these are few, or
        where as many draws found too few."""
        size = product(len(self.domains[k]) for k in part.knobs).const or 1
        found: list[Population] = []
        have = drawn = 0
        for _ in range(_ROUNDS):
            if size <= max(_CHUNK, min(drawn, _MOST)):
                return _picked(self._every(part), n, rng)
            new = self._drawn(part, max(4 * n, _CHUNK), rng)
            drawn += len(new)
            new = new[self._holds(new, part)]
            found.append(new)
            have += len(new)
            if have >= n:
                break
        return np.concatenate(found)[:n]

    def _drawn(self, part: Part, n: int, rng: np.random.Generator) -> Population:
        return self._filled(
            part, [d[rng.integers(0, len(d), n)] for d in (self.domains[k] for k in part.knobs)], n
        )

    def _every(self, part: Part) -> Population:
        """Every legal config of a part."""
        domains = [self.domains[k] for k in part.knobs]
        columns = [g.ravel() for g in np.meshgrid(*domains, indexing="ij")]
        every = self._filled(part, columns, len(columns[0]) if columns else 1)
        return every[self._holds(every, part)]

    def _filled(self, part: Part, columns: Sequence[NDArray[np.int64]], n: int) -> Population:
        """n configs with these columns for the part, and the same number everywhere for other knobs."""
        out = np.empty((n, len(self.knobs)), np.int64)
        out[:] = [d[0] for d in self.domains]
        for k, column in zip(part.knobs, columns, strict=True):
            out[:, k] = column
        return out

    def enumerate(self) -> Population:
        """Every legal config, for spaces of moderate size."""
        return self._every(self._whole)

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

    def neighbours(self, population: Population) -> Population:
        """Every legal config that differs from one of the population in a single knob, or in two of a product
        that a constraint bounds, whose product stays as it is: a factor moves from one to the other. None of
        the population itself; each once, the nearest in the order of the domains first."""
        return self._moves.neighbours(population, self.valid)

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
