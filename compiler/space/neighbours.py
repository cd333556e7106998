"""Steps from one config to those beside it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from itertools import combinations

import numpy as np
from numpy.typing import NDArray

from ..arith import Fn, Knob, Poly

_Rows = NDArray[np.int64]


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


class Moves:
    """What lies one step away from a config of these domains; legal or not, which the caller answers."""

    def __init__(self, domains: Sequence[_Rows], pairs: Sequence[tuple[int, int]]) -> None:
        self._domains = domains
        self._pairs = pairs

    def neighbours(self, rows: _Rows, valid: Callable[[_Rows], NDArray[np.bool_]]) -> _Rows:
        """Each legal one once, none of `rows`, the nearest first."""
        steps = [self._one(rows, k) for k in range(len(self._domains))]
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
