"""What was measured before, as points of a search space."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .space import Columns, Population, ReadsTraces, Row, SpaceSketch, TuningSpace

__all__ = ["Misplaced", "Placed", "decided", "nearest_legal", "place", "why_not"]

PAIRS = 1 << 14
"""How many rows with two other knobs are looked at for a legal one."""

DRAWN = 512
"""How many random legal rows are looked at where none is near."""


@dataclass(frozen=True, slots=True, eq=False)
class Placed:
    """A point of the space: the sketch's name and the values of its knobs, in their order."""

    sketch: str
    row: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Misplaced:
    """Why a trace is no point of the space; `reason` says it without its numbers, to be counted."""

    reason: str
    detail: str = ""

    def __str__(self) -> str:
        return self.detail or self.reason


def place(trace: Mapping[str, Any], space: TuningSpace, named: str = "") -> Placed | Misplaced:
    """The point of `space` whose trace is `trace` (JSON), looked for in the sketch of that name first, or why
    there is none: the reason of the sketch that comes nearest."""
    reasons: list[tuple[int, Misplaced]] = []
    for sketch in sorted(space.sketches, key=lambda sketch: sketch.name != named):
        found = decided(sketch, trace)
        if found is None:
            continue
        knobs, exact = found
        if not exact:
            reasons.append(
                (0, Misplaced("its steps have other numbers", f"{sketch.name!r} has other numbers"))
            )
            continue
        row = np.array([knobs[knob.name] for knob in sketch.columns.knobs], dtype=np.int64)
        wrong = why_not(sketch, row)
        if wrong is None:
            return Placed(sketch.name, tuple(int(value) for value in row))
        reasons.append((1, wrong))
    if reasons:
        return max(reasons, key=lambda ranked: ranked[0])[1]
    return Misplaced("no sketch has its steps")


def decided(sketch: SpaceSketch, trace: Mapping[str, Any]) -> tuple[dict[str, int], bool] | None:
    """The value of every knob of the sketch in that trace, and whether nothing else differs; None where its
    steps are others. A knob that no step uses has its first value."""
    if not isinstance(sketch, ReadsTraces):
        return None
    found = sketch.decisions(trace)
    if found is None:
        return None
    firsts = {knob.name: int(min(knob.domain)) for knob in sketch.columns.knobs}
    return firsts | {name: value for name, value in found.knobs.items() if name in firsts}, found.exact


def why_not(sketch: SpaceSketch, row: Row) -> Misplaced | None:
    """What is wrong with a row: a knob's value, or a constraint; None for a legal one."""
    for knob, value in zip(sketch.columns.knobs, row, strict=True):
        if int(value) not in knob.domain:
            allowed = ", ".join(map(str, knob.domain))
            return Misplaced(
                f"knob {knob.name!r} takes other values",
                f"knob {knob.name!r} of sketch {sketch.name!r} takes one of {allowed}, not {value}",
            )
    if bool(sketch.columns.valid(row[None, :])[0]):
        return None
    broken = [label for label, count in sketch.columns.violations(row[None, :]).items() if count]
    labels = ", ".join(dict.fromkeys(broken)) or "a constraint"
    return Misplaced(f"breaks {labels}", f"breaks the constraint {labels!r} of sketch {sketch.name!r}")


def nearest_legal(columns: Columns, values: Sequence[int], rng: np.random.Generator) -> Row | None:
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
