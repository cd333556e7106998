"""The first points of a search, before there is anything to learn from."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from ..pool import Pool
from ..space import Population
from .base import Point, View, spread

__all__ = ["filling"]

LOOKED_AT = 256
"""Legal rows of which the one farthest from all others is taken."""


def filling(view: View, rng: Generator) -> Iterator[Point]:
    """Points that lie far from what is measured already, from the sketches in turn: each the one of a sample
    whose nearest point is farthest, by how many places of each knob's domain lie between (greedy maximin:
    Johnson, Moore and Ylvisaker, Journal of Statistical Planning and Inference 26, 1990). Random points once
    a sketch has no more; then none."""
    start = int(rng.integers(len(view.pools))) if view.pools else 0
    turns = [_apart(pool, rng) for pool in (*view.pools[start:], *view.pools[:start])]
    while turns:
        left = []
        for turn in turns:
            point = next(turn, None)
            if point is not None:
                left.append(turn)
                yield point
        turns = left
    yield from spread(view, LOOKED_AT, rng)


def _apart(pool: Pool, rng: Generator) -> Iterator[Point]:
    rows = pool.draw(LOOKED_AT, rng)
    if not len(rows):
        return
    places = _places(pool, rows)
    nearest = np.full(len(rows), np.inf)
    for taken in _places(pool, pool.taken_rows()):
        nearest = np.minimum(nearest, np.abs(places - taken).sum(axis=1))
    for _ in range(len(rows)):
        chosen = int(np.argmax(nearest))
        yield Point(pool.index, rows[chosen], origin="spread")
        nearest = np.minimum(nearest, np.abs(places - places[chosen]).sum(axis=1))
        nearest[chosen] = -1.0


def _places(pool: Pool, rows: Population) -> NDArray[np.float64]:
    """Where in its domain each knob stands, from 0 to 1."""
    out = np.zeros(rows.shape, dtype=np.float64)
    for column, knob in enumerate(pool.columns.knobs):
        domain = np.unique(np.asarray(knob.domain, dtype=np.int64))
        out[:, column] = np.searchsorted(domain, rows[:, column]) / max(1, len(domain) - 1)
    return out
