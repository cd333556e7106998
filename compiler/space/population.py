"""A sketch's constraints and features over whole populations of configs."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from ..arith import Knob, product
from ..ir import PrimFunc
from .accesses import LINE
from .compile import ColumnCompiler
from .enumeration import Enumerator
from .feature_names import FEATURE_NAMES
from .features import feature_columns
from .steps import Steps, products_of

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
#: Configs whose features are evaluated at once: a column is then computed in about as long as calling NumPy
#: for it takes, and all columns still stay in the outer caches.
_EVALUATED = 4096
_ROUNDS = 200
#: How often children are made for those that were not legal.
_TRIES = 8
#: Share of the children that is legal, before it is known.
_LEGAL = 0.6
#: Children beyond those that are missing, so that the last ones do not take many tries.
_SPARE = 32
#: Draws after which a part that has more configs is gone through knob by knob, to find all that are legal.
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
        values = [c.value for c in constraints]
        compiler = ColumnCompiler(knobs)
        self._values = compiler.compile([compiler.emit(v) for v in values])
        self._limits = np.array([c.at_most for c in constraints], np.float64).reshape(-1, 1)
        self._enumerator = Enumerator(knobs, self.domains, values, self._limits, self._values)
        self._whole = Part(tuple(range(len(knobs))), tuple(range(len(constraints))))
        #: What can be drawn apart; rules see whole configs.
        self._parts = [] if rules else parts_of(knobs, constraints)
        self._known: tuple[Population | None, ...] = ()
        self._steps = Steps(self.domains, products_of(knobs, values))
        compiler = ColumnCompiler(knobs)
        self._features = compiler.compile(feature_columns(func, main, index, compiler))

    @property
    def size(self) -> int:
        """The number of configs, legal or not."""
        return product(len(k.domain) for k in self.knobs).const or 1

    def _broken(self, population: Population) -> NDArray[np.bool_]:
        """shape (constraints, n): where a constraint does not hold. Float64 is exact for the sizes of loops
        and buffers."""
        columns = population.T.astype(np.float64)
        out = np.empty((len(self._labels), columns.shape[1]))
        broken = np.empty(out.shape, np.bool_)
        np.greater(self._values(columns, out), self._limits, out=broken)
        return broken

    def _holds(self, population: Population, part: Part) -> NDArray[np.bool_]:
        """Which configs satisfy the constraints of a part; shape (n,)."""
        if part is self._whole:
            return self.valid(population)
        chosen = part.constraints
        out = np.empty((len(chosen), len(population)))
        values = self._values(population.T.astype(np.float64), out, chosen)
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
            if size <= max(_CHUNK, min(drawn, _MOST)) or drawn >= _MOST:
                every = self._every(part, rng)
                assert every is not None
                return _picked(every, n, rng)
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

    def _every(self, part: Part, rng: np.random.Generator | None = None) -> Population | None:
        """Every legal config of a part, in the order of its domains; None where they are too many to look at,
        or with `rng` some of them."""
        found = self._enumerator.legal(part.knobs, rng)
        if found is None or part is not self._whole or not self._rules:
            return found
        if len(found) > _MOST:
            if rng is None:
                return None
            found = found[np.sort(rng.permutation(len(found))[:_MOST])]
        for rule in self._rules:
            found = found[rule.allowed(found)]
        return found

    def _filled(self, part: Part, columns: Sequence[NDArray[np.int64]], n: int) -> Population:
        """n configs with these columns for the part, and the same number everywhere for other knobs."""
        out = np.empty((n, len(self.knobs)), np.int64)
        out[:] = [d[0] for d in self.domains]
        for k, column in zip(part.knobs, columns, strict=True):
            out[:, k] = column
        return out

    def every(self, most: int) -> Population | None:
        """Every legal config, in the order of the domains, not to be written to; None where they are more
        than `most`, or too many would have to be looked at."""
        if not self._known:
            found = self._every(self._whole)
            if found is not None:
                found.flags.writeable = False
            # Those of a huge space are not kept: nobody lists them.
            self._known = (found if found is not None and len(found) <= _MOST else None,)
        (found,) = self._known
        return found if found is not None and len(found) <= most else None

    def conflict(self) -> tuple[str, ...]:
        """Where no config is legal: the labels of as few constraints as no config satisfies together."""
        rest = self._enumerator.legal(range(len(self.knobs)))
        if rest is None or len(rest):
            return tuple(r.label for r in self._rules)
        return tuple(self._labels[c] for c in self._enumerator.conflict())

    def mutate(self, population: Population, n: int, rng: np.random.Generator) -> Population:
        """n legal children, fewer where they are hard to find: a quarter of the knobs from a second parent,
        and one or two changed: by a step in the domain, by a factor that moves to another knob or comes from
        it, or drawn anew."""
        if not len(population) or not self.knobs:
            return population[:0]
        found = [population[:0]]
        missing, share = n, _LEGAL
        for _ in range(_TRIES):
            children = self._steps.children(population, int(missing / share) + _SPARE, rng)
            legal = children[self.valid(children)]
            share = max(_LEGAL / 8, len(legal) / len(children))
            found.append(legal[:missing])
            missing -= len(found[-1])
            if not missing:
                break
        return np.concatenate(found)

    def neighbours(self, population: Population) -> Population:
        """Every legal config that differs from one of the population in a single knob, or in two of a product
        that a constraint bounds, whose product stays as it is: a factor moves from one to the other. None of
        the population itself; each once, the nearest in the order of the domains first."""
        return self._steps.beside(population, self.valid)

    def features(self, population: Population, chosen: tuple[int, ...] | None = None) -> NDArray[np.float32]:
        """shape (n, len(FEATURE_NAMES)), or (n, len(chosen)) of those with these numbers."""
        n, count = len(population), len(FEATURE_NAMES if chosen is None else chosen)
        columns = population.T.astype(np.float32)
        out = np.empty((n, count), np.float32)
        # Rows a power of two apart would share a few sets of the first-level cache while they are turned.
        buffer = np.empty((count, min(n, _EVALUATED) + LINE // out.itemsize), np.float32)
        for start in range(0, n, _EVALUATED):
            part = columns[:, start : start + _EVALUATED]
            rows = buffer[:, : part.shape[1]]
            out[start : start + _EVALUATED] = self._features(part, rows, chosen).T
        return out
