"""What a worker and the service say to each other about golden kernels."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Literal

from .wire import Bound, Message, Size

__all__ = [
    "MAX_REASON",
    "SICK",
    "GoldenPart",
    "GradeName",
    "HealthPlan",
    "HealthReport",
    "HealthUpdate",
    "Occasion",
    "PartName",
    "Verdict",
]

MAX_REASON = 2_000
"""The most characters of what a failed golden kernel says."""

PartName = Literal["compute", "memory"]
GradeName = Literal["steady", "ordinary", "noisy"]
Occasion = Literal["attach", "periodic", "after_error", "quarantined"]
Verdict = Literal["healthy", "suspect", "failed", "drifted", "dispersed"]
SICK: tuple[Verdict, ...] = ("failed", "drifted", "dispersed")
"""What quarantines a worker. One that is `suspect` was out of bounds once."""

Seconds = Annotated[float, Bound(0, 1e9, above=True)]
Ratio = Annotated[float, Bound(0, 1e9)]


@dataclass(frozen=True, slots=True)
class HealthPlan(Message):
    """How often a worker checks itself. `processes`: fresh ones at attach, and to settle a suspicion; 0 for
    no checks at all. `every`: items between two checks, 0 for none after attach. `drift`: the least ratio by
    which a time may move. `interval_seconds`: between two checks of a worker in quarantine."""

    every: Annotated[int, Bound(0, 1_000_000)] = 64
    processes: Annotated[int, Bound(0, 50)] = 5
    drift: Ratio = 0.03
    interval_seconds: Annotated[float, Bound(0, 86_400, above=True)] = 60.0


@dataclass(frozen=True, slots=True)
class GoldenPart(Message):
    """One part of a check: `seconds` is the least of the fresh processes, `spread` how much longer the
    greatest took, as a ratio; `norm` the seconds at attach, and `limit` the ratio by which they may move."""

    part: PartName
    seconds: Seconds
    spread: Ratio
    norm: Seconds
    limit: Ratio


@dataclass(frozen=True, slots=True)
class HealthReport(Message):
    """What a check came to. `grade` is how steady the device was at attach; `message` what a failure says."""

    occasion: Occasion
    verdict: Verdict
    grade: GradeName
    parts: Annotated[tuple[GoldenPart, ...], Size(2)] = ()
    message: Annotated[str, Size(MAX_REASON)] = ""

    def refusal(self) -> str | None:
        if len({part.part for part in self.parts}) != len(self.parts):
            return "a part that is there twice"
        if self.verdict == "failed" and not self.message:
            return "a failure without a message"
        if self.verdict != "failed" and not self.parts:
            return "a verdict without the parts that it is about"
        return None


@dataclass(frozen=True, slots=True)
class HealthUpdate(Message):
    """The reply to a report: the state that the service has the worker in, and why."""

    state: Annotated[str, Size(64, least=1)]
    reason: Annotated[str, Size(1 << 20)] = ""
