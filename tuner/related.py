"""What was fast for related workloads, as first candidates of another."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import chain, zip_longest

import numpy as np

from .past import Read
from .placing import Placed, decided, nearest_legal
from .space import SpaceSketch, TuningSpace

__all__ = ["TRANSFERRED", "Related", "distance", "transferred"]

TRANSFERRED = 6
"""So many points are taken over from other workloads at most."""

STRANGERS = 2
"""At most so many of them from workloads of another structure, which happen to have the same sketch."""

FROM_EACH = 3
"""So many of the fastest trials of each search."""


@dataclass(frozen=True, slots=True, eq=False)
class Related:
    """The trials of another search, the fastest first, and the extents of its program: those of programs of
    the same structure stand for each other one by one. `alike`: it has this structure. `near`: what sorts
    the nearest first."""

    trials: Sequence[Read]
    extents: tuple[int, ...]
    alike: bool
    near: tuple[float, ...]


def distance(a: Sequence[int], b: Sequence[int]) -> float:
    """How far two programs of one structure are apart: the sum over extents of |log2(ratio)|."""
    return sum(abs(math.log2(max(x, 1) / max(y, 1))) for x, y in zip(a, b, strict=False))


def transferred(space: TuningSpace, extents: tuple[int, ...], related: Sequence[Related]) -> list[Placed]:
    """Different legal points of the space that are nearest to what was fast in related searches: the fastest
    of each search, from the nearest on, then their second fastest, and so on.

    Tile factors keep their size. Where one was a whole extent, another point has the whole of the extent that
    stands in its place.
    """
    sketches = {sketch.name: sketch for sketch in space.sketches}
    rng = np.random.default_rng(0)
    ranked = sorted(related, key=lambda one: one.near)
    found: dict[tuple[str, tuple[int, ...]], Placed] = {}
    strangers = 0
    for one, trial in _in_turn(ranked):
        sketch = sketches.get(trial.stored.sketch)
        if len(found) == TRANSFERRED or sketch is None or (not one.alike and strangers == STRANGERS):
            continue
        for point in _points(sketch, trial, one, extents, rng):
            if len(found) < TRANSFERRED and (point.sketch, point.row) not in found:
                found[point.sketch, point.row] = point
                strangers += not one.alike
    return list(found.values())


def _in_turn(ranked: Sequence[Related]) -> Iterator[tuple[Related, Read]]:
    for alike in (True, False):
        columns = [[(one, trial) for trial in one.trials[:FROM_EACH]] for one in ranked if one.alike is alike]
        yield from (pair for pair in chain.from_iterable(zip_longest(*columns)) if pair is not None)


def _points(
    sketch: SpaceSketch, trial: Read, one: Related, extents: tuple[int, ...], rng: np.random.Generator
) -> Iterator[Placed]:
    decision = decided(sketch, trial.trace)
    if decision is None:
        return
    values = [decision[0][knob.name] for knob in sketch.columns.knobs]
    wholes = dict(zip(one.extents, extents, strict=True)) if one.alike else {}
    whole = [wholes.get(value, value) if value > 1 else value for value in values]
    for wanted in (values, whole) if whole != values else (values,):
        row = nearest_legal(sketch.columns, wanted, rng)
        if row is not None:
            yield Placed(sketch.name, tuple(int(value) for value in row))
