"""What the times of golden kernels say of a device. Pure: numbers in, a verdict out.

A reading is the least of several fresh processes, like every time here. A device is graded by the spread
between the processes at attach; it is out of bounds where a reading has moved from the one at attach by more
than the plan allows and by more than three times that spread, or where the processes differ by more than its
grade allows. Once may be an accident, so that only the second time in a row counts.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from .health_messages import (
    GoldenPart,
    GradeName,
    HealthPlan,
    HealthReport,
    Occasion,
    PartName,
    Verdict,
)
from .words import duration_of

__all__ = ["GRADES", "Grade", "Norm", "Readings", "attached", "explain", "judge", "reading_of"]

SPREADS = 3.0
"""Times the spread at attach that a reading may move."""

Readings = Mapping[PartName, Sequence[float]]
"""The seconds of each fresh process, by part."""


@dataclass(frozen=True, slots=True)
class Grade:
    """Devices whose fresh processes differ by at most `entry` at attach, and later by at most `limit`."""

    name: GradeName
    entry: float
    limit: float


GRADES = (Grade("steady", 0.02, 0.10), Grade("ordinary", 0.10, 0.30), Grade("noisy", math.inf, 1.0))


@dataclass(frozen=True, slots=True)
class Norm:
    """What a device showed at attach: each part, and the grade that all of them come to."""

    grade: Grade
    parts: tuple[GoldenPart, ...]


def reading_of(seconds: Sequence[float]) -> tuple[float, float]:
    """The least of the processes, and how much longer the greatest took, as a ratio."""
    least = min(seconds)
    return least, max(seconds) / least - 1.0


def attached(readings: Readings, plan: HealthPlan) -> tuple[Norm, HealthReport]:
    """The norm that a device sets at attach."""
    parts = []
    for part, seconds in readings.items():
        least, spread = reading_of(seconds)
        parts.append(GoldenPart(part, least, spread, least, max(plan.drift, SPREADS * spread)))
    widest = max(part.spread for part in parts)
    grade = next(grade for grade in GRADES if widest <= grade.entry)
    verdict: Verdict = "dispersed" if widest > grade.limit else "healthy"
    return Norm(grade, tuple(parts)), HealthReport("attach", verdict, grade.name, tuple(parts))


def judge(norm: Norm, readings: Readings, occasion: Occasion, *, was_suspect: bool) -> HealthReport:
    """A later check. `was_suspect`: the one before was out of bounds."""
    parts = []
    for before in norm.parts:
        least, spread = reading_of(readings[before.part])
        parts.append(GoldenPart(before.part, least, spread, before.norm, before.limit))
    worst: Verdict = "healthy"
    if any(part.spread > norm.grade.limit for part in parts):
        worst = "dispersed"
    if any(abs(_drift(part)) > part.limit for part in parts):
        worst = "drifted"
    verdict = "suspect" if worst != "healthy" and not was_suspect else worst
    return HealthReport(occasion, verdict, norm.grade.name, tuple(parts))


def explain(report: HealthReport) -> str:
    """The verdict with its numbers, in words; empty for a healthy device."""
    if report.verdict == "failed":
        return f"golden kernel: {report.message}"
    grade = next(grade for grade in GRADES if grade.name == report.grade)
    again = "" if report.verdict == "suspect" or report.occasion == "attach" else ", twice in a row"
    said = []
    for part in report.parts:
        drift = _drift(part)
        if abs(drift) > part.limit:
            said.append(
                f"{part.part} takes {duration_of(part.seconds)}, {abs(drift):.1%} "
                f"{'more' if drift > 0 else 'less'} than the {duration_of(part.norm)} at attach{again}; the "
                f"limit is {part.limit:.1%}"
            )
        elif part.spread > grade.limit:
            said.append(
                f"{part.part} differs by {part.spread:.0%} between fresh processes{again}; for a device "
                f"that was {grade.name} at attach the limit is {grade.limit:.0%}"
            )
    return f"golden kernel: {'; '.join(said)}" if said else ""


def _drift(part: GoldenPart) -> float:
    return part.seconds / part.norm - 1.0
