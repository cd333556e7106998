"""Every legal config of some knobs, found knob by knob: what no value of the other knobs can save is left out
as soon as that is known, so that a sparse space costs about as much as what is legal in it."""

from __future__ import annotations

from collections.abc import Sequence
from collections.abc import Set as AbstractSet

import numpy as np
from numpy.typing import NDArray

from ..arith import Knob, Poly
from .compile import Evaluator

_Rows = NDArray[np.int64]

#: Configs, of some of the knobs, that are looked at in one step.
MOST = 1 << 20


class Enumerator:
    """The configs that satisfy constraints `values <= limits` (shape (constraints, 1)); `evaluate` makes the
    columns of the values."""

    def __init__(
        self,
        knobs: Sequence[Knob],
        domains: Sequence[_Rows],
        values: Sequence[Poly],
        limits: NDArray[np.float64],
        evaluate: Evaluator,
    ) -> None:
        self._domains = domains
        self._limits = limits
        self._evaluate = evaluate
        within = [sorted(n for n, k in enumerate(knobs) if k in v.knobs()) for v in values]
        grows = [_grows(v) for v in values]
        #: For each knob, the constraints that are looked at once it has a value: those that it is the last
        #: knob of, and those that other knobs at their smallest values can only satisfy better.
        self._at = [
            tuple(c for c, of in enumerate(within) if k in of and (k == of[-1] or grows[c]))
            for k in range(len(knobs))
        ]
        self._without = tuple(c for c, of in enumerate(within) if not of)

    def legal(
        self,
        knobs: Sequence[int],
        rng: np.random.Generator | None = None,
        but: AbstractSet[int] = frozenset(),
    ) -> _Rows | None:
        """Every config that satisfies the constraints among these knobs (numbers, ascending), in the order of
        the domains; the others have their smallest values. None where more than MOST have to be looked at;
        with `rng`, then some of them. `but`: constraints that need not be satisfied."""
        found = np.array([[d[0] for d in self._domains]], np.int64)
        found = found[self._holds(found, self._without, but)]
        for k in knobs:
            domain = self._domains[k]
            if len(found) * len(domain) > MOST:
                if rng is None:
                    return None
                keep = max(1, MOST // len(domain))
                found = found[np.sort(rng.permutation(len(found))[:keep])]
            values = np.tile(domain, len(found))
            found = np.repeat(found, len(domain), axis=0)
            found[:, k] = values
            found = found[self._holds(found, self._at[k], but)]
        return found

    def conflict(self) -> tuple[int, ...]:
        """Of constraints that no config satisfies, as few as no config satisfies together."""
        every = range(len(self._domains))
        spared: set[int] = set()
        for c in range(len(self._limits)):
            found = self.legal(every, but=spared | {c})
            # Where that is too much to look at, it is not known to be empty.
            if found is not None and not len(found):
                spared.add(c)
        return tuple(c for c in range(len(self._limits)) if c not in spared)

    def _holds(self, rows: _Rows, constraints: tuple[int, ...], but: AbstractSet[int]) -> NDArray[np.bool_]:
        constraints = tuple(c for c in constraints if c not in but)
        if not constraints:
            return np.ones(len(rows), np.bool_)
        out = np.empty((len(constraints), len(rows)))
        values = self._evaluate(rows.T.astype(np.float64), out, constraints)
        holds: NDArray[np.bool_] = np.logical_and.reduce(values <= self._limits[list(constraints)], axis=0)
        return holds


def _grows(value: Poly) -> bool:
    """Whether the value is sure to grow with each of its knobs, all of which are positive."""
    return all(c >= 0 or not m for m, c in value.terms.items()) and all(
        isinstance(a, Knob) for a in value.atoms()
    )
