"""What was measured before, as points of a search space."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..compiler.space.nearest import nearest_legal
from .space import ReadsTraces, Row, SpaceSketch, TuningSpace

__all__ = ["Misplaced", "Placed", "decided", "nearest_legal", "place", "why_not"]


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
