"""The legal configuration that is nearest to given values of the knobs."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations
from typing import Any, Protocol

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

__all__ = ["Columns", "Knob", "nearest_legal"]

Population = NDArray[np.int64]
"""Configurations of one sketch: shape (n, knobs), knob values in the order of the sketch's knobs."""

Row = NDArray[np.int64]
"""One configuration: shape (knobs,)."""

PAIRS = 1 << 14
"""How many rows with two other knobs are looked at for a legal one."""

DRAWN = 512
"""How many random legal rows are looked at where none is near."""


class Knob(Protocol):
    """A name and the ascending values it may take."""

    @property
    def name(self) -> str: ...

    @property
    def domain(self) -> tuple[int, ...]: ...


class Columns(Protocol):
    """A sketch's constraints over whole populations."""

    @property
    def knobs(self) -> Sequence[Knob]: ...

    def valid(self, pop: Population, /) -> NDArray[np.bool_]:
        """Which rows satisfy every constraint: shape (n,)."""

    def random(self, n: int, rng: Generator, /) -> Population:
        """Up to n valid rows."""


def nearest_legal(columns: Columns, values: Sequence[int], rng: Generator) -> Row | None:
    """The legal row nearest to these values, by the sum over knobs of |log2(value / wanted)|: with every knob
    at its nearest value, else with one or two knobs moved from there, else of some hundred random rows. None
    where no legal row is found."""
    domains = [np.unique(np.asarray(knob.domain, dtype=np.int64)) for knob in columns.knobs]
    wanted = _log(np.asarray(values, dtype=np.int64))
    start = np.array(
        [
            domain[np.argmin(np.abs(_log(domain) - want))]
            for domain, want in zip(domains, wanted, strict=True)
        ],
        dtype=np.int64,
    )
    for rows in (start[None, :], _moved(start, domains, 1), _moved(start, domains, 2)):
        if (best := _nearest(rows[columns.valid(rows)], wanted)) is not None:
            return best
    return _nearest(columns.random(DRAWN, rng), wanted)


def _nearest(rows: Population, wanted: NDArray[np.float64]) -> Row | None:
    if not len(rows):
        return None
    nearest: Row = rows[np.argmin(np.abs(_log(rows) - wanted).sum(axis=1))]
    return nearest


def _moved(start: Row, domains: Sequence[NDArray[np.int64]], count: int) -> Population:
    """Rows that differ from `start` in `count` knobs; of very many, those whose values are nearest."""
    share = (
        max(4, int(np.sqrt(PAIRS / max(1, len(domains) ** 2))))
        if count == 2
        else max(map(len, domains), default=0)
    )
    near = [_near(domain, value, share) for domain, value in zip(domains, start, strict=True)]
    parts = []
    for chosen in combinations(range(len(domains)), count):
        grid = np.meshgrid(*(near[knob] for knob in chosen), indexing="ij")
        rows = np.repeat(start[None, :], grid[0].size, axis=0)
        for knob, column in zip(chosen, grid, strict=True):
            rows[:, knob] = column.ravel()
        parts.append(rows)
    return np.concatenate(parts)[:PAIRS] if parts else start[None, :][:0]


def _near(domain: NDArray[np.int64], value: int, count: int) -> NDArray[np.int64]:
    order = np.argsort(np.abs(_log(domain) - _log(np.int64(value))), kind="stable")
    return domain[order[:count]]


def _log(values: Any) -> NDArray[np.float64]:
    """log2 of what is at least one half: knobs are positive, or choices that may be 0."""
    return np.asarray(np.log2(np.maximum(np.asarray(values, dtype=np.float64), 0.5)))
