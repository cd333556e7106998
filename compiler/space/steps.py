"""Steps from one config to those beside it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from itertools import combinations

import numpy as np
from numpy.typing import NDArray

from ..arith import Fn, Knob, Poly

_Rows = NDArray[np.int64]

#: Share of the knobs that a child has from its second parent.
CROSSED = 0.25
#: Knobs of a child that are changed, in the mean.
CHANGES = 1.2
#: Share of the children in which a factor moves from one knob to another.
MOVED = 0.25


def products_of(knobs: Sequence[Knob], values: Iterable[Poly]) -> list[tuple[int, int]]:
    """Pairs of knobs, by their numbers, that some polynomial multiplies: factors of one extent, one tile, one
    body. Every pair where there is no polynomial, since conditions that are none may multiply any."""
    numbers = {k: n for n, k in enumerate(knobs)}
    found: set[tuple[int, int]] = set()
    polys = list(values)
    if not polys:
        return list(combinations(range(len(knobs)), 2))
    while polys:
        for m in polys.pop().terms:
            together = sorted({numbers[a] for a in m if isinstance(a, Knob)})
            found.update(combinations(together, 2))
            polys += [x for a in m if isinstance(a, Fn) for x in (a.a, a.b)]
    return sorted(found)


class Steps:
    """What lies one step away from a config of these domains; legal or not, which the caller answers."""

    def __init__(self, domains: Sequence[_Rows], pairs: Sequence[tuple[int, int]]) -> None:
        self._domains = domains
        #: Knobs that have a choice, and pairs of them.
        self._open = [k for k, d in enumerate(domains) if len(d) > 1]
        self._pairs = [(a, b) for a, b in pairs if a in self._open and b in self._open]

    def beside(self, rows: _Rows, valid: Callable[[_Rows], NDArray[np.bool_]]) -> _Rows:
        """What lies one step away: each legal one once, none of `rows`, the nearest first."""
        steps = [self._one(rows, k) for k in self._open]
        steps += [self._exchanged(rows, a, b) for a, b in self._pairs]
        if not steps:
            return rows[:0]
        far = np.concatenate([d for _, d in steps])
        every = np.concatenate([r for r, _ in steps])[np.argsort(far, kind="stable")]
        every = every[valid(every)]
        _, first = np.unique(np.concatenate([rows, every]), axis=0, return_index=True)
        return every[np.sort(first[first >= len(rows)]) - len(rows)]

    def _one(self, rows: _Rows, k: int) -> tuple[_Rows, _Rows]:
        """Every other value of one knob, row by row, and how many values away each is."""
        domain = self._domains[k]
        out = np.repeat(rows, len(domain), axis=0)
        out[:, k] = np.tile(domain, len(rows))
        at = np.searchsorted(domain, rows[:, k])
        far = np.abs(at[:, None] - np.arange(len(domain))[None, :]).ravel()
        return out[far > 0], far[far > 0]

    def _exchanged(self, rows: _Rows, a: int, b: int) -> tuple[_Rows, _Rows]:
        """Every other pair of values of two knobs with the same product."""
        first, second = self._domains[a], self._domains[b]
        product = rows[:, a] * rows[:, b]
        rest, left = np.divmod(product[:, None], first[None, :])
        row, value = np.nonzero((left == 0) & np.isin(rest, second))
        out = rows[row]
        out[:, a], out[:, b] = first[value], rest[row, value]
        far = np.abs(np.searchsorted(first, rows[row, a]) - value)
        return out[far > 0], far[far > 0]

    def children(self, rows: _Rows, n: int, rng: np.random.Generator) -> _Rows:
        """n configs, legal or not: each has a quarter of its knobs from a second parent and CHANGES of them
        changed. A factor steps to a value beside it, moves to another factor or is drawn anew; a choice that
        is multiplied with nothing is drawn anew."""
        parents = rng.integers(0, len(rows), (2, n))
        out: _Rows = np.where(rng.random((n, rows.shape[1])) < CROSSED, rows[parents[1]], rows[parents[0]])
        if not self._open:
            return out
        factors = {k for pair in self._pairs for k in pair}
        changed = rng.random((len(self._open), n)) < CHANGES / len(self._open)
        for k, of in zip(self._open, changed, strict=True):
            at = np.flatnonzero(of)
            if k in factors:
                self._step(out, at[::2], k, rng)
                at = at[1::2]
            out[at, k] = self._domains[k][rng.integers(0, len(self._domains[k]), len(at))]
        if self._pairs:
            which = rng.integers(0, len(self._pairs), n)
            moved = rng.random(n) < MOVED
            for p, (a, b) in enumerate(self._pairs):
                self._move(out, np.flatnonzero(moved & (which == p)), a, b, rng)
        return out

    def _step(self, out: _Rows, at: NDArray[np.int64], k: int, rng: np.random.Generator) -> None:
        """To a value beside it in the domain."""
        domain = self._domains[k]
        now = np.searchsorted(domain, out[at, k])
        to = np.where(rng.random(len(at)) < 0.5, now - 1, now + 1)
        # From either end there is one way only.
        to = np.where(to < 0, 1, np.where(to == len(domain), len(domain) - 2, to))
        out[at, k] = domain[to]

    def _move(self, out: _Rows, at: NDArray[np.int64], a: int, b: int, rng: np.random.Generator) -> None:
        """A factor from one knob to the other, of those that the domains allow."""
        first, second = self._domains[a], self._domains[b]
        rest, left = np.divmod((out[at, a] * out[at, b])[:, None], first[None, :])
        fits = (left == 0) & np.isin(rest, second) & (first[None, :] != out[at, a][:, None])
        chosen = np.argmax(fits * rng.random(fits.shape), axis=1)
        row = np.flatnonzero(fits.any(axis=1))
        out[at[row], a], out[at[row], b] = first[chosen[row]], rest[row, chosen[row]]
