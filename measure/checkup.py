"""A worker checks itself: it measures golden kernels as it measures candidates, in fresh processes."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field

from ..compiler.target import TargetError
from .health import Norm, Readings, attached, judge
from .health_messages import MAX_REASON, HealthPlan, HealthReport, Occasion, PartName
from .messages import Failure, FailureKind, MeasureInput, MeasureResult
from .words import clip

__all__ = ["Checkup"]

PROCESSES = 3
"""Fresh processes of a check between two leases' items; a suspicion is settled with as many as at attach."""

ALARMING: tuple[FailureKind, ...] = (
    "run_error",
    "run_timeout",
    "build_timeout",
    "worker_lost",
    "wrong_output",
)
"""Failures of a candidate after which the device is looked at: it may be the device's."""

_ACCIDENTS: tuple[FailureKind, ...] = ("worker_lost", "build_timeout", "run_timeout")
"""Failures of a golden kernel that may be an accident, the first time."""


@dataclass(slots=True)
class Checkup:
    """When to check, and what it comes to. `items` gives the golden kernels by part, made when they are first
    needed; `measure` is the runner's.

    It knows no service: it is told the plan, and its reports are for the worker to hand in.
    """

    items: Callable[[], dict[PartName, MeasureInput]]
    measure: Callable[[MeasureInput], MeasureResult]
    clock: Callable[[], float]
    plan: HealthPlan | None = None
    last: HealthReport | None = None
    is_quarantined: bool = False
    _norm: Norm | None = None
    _since: int = 0
    _is_alarmed: bool = False
    _was_suspect: bool = False
    _next: float = math.inf
    _golden: dict[PartName, MeasureInput] = field(default_factory=dict)

    @property
    def is_wanted(self) -> bool:
        """Whether golden kernels are measured at all."""
        return self.plan is not None and self.plan.processes > 0

    @property
    def has_norm(self) -> bool:
        return self._norm is not None

    def due(self) -> Occasion | None:
        """Why a check is due between two items; None where none is."""
        if not self.is_wanted or self.plan is None or self.plan.every == 0 or self._norm is None:
            return None
        if self._is_alarmed:
            return "after_error"
        return "periodic" if self._was_suspect or self._since >= self.plan.every else None

    def is_overdue(self) -> bool:
        """Whether a worker in quarantine is to look at itself again."""
        return self.is_quarantined and self.is_wanted and self.clock() >= self._next

    def note(self, result: MeasureResult) -> None:
        """An item has been measured."""
        self._since += 1
        if result.failure is not None and result.failure.kind in ALARMING:
            self._is_alarmed = True

    def heard(self, state: str) -> None:
        """The service says what state this worker is in."""
        self.is_quarantined = state == "quarantined"
        if self.is_quarantined and self.plan is not None:
            self._next = self.clock() + self.plan.interval_seconds

    def attach(self) -> HealthReport | None:
        """Sets the norm. None where the check was cut short."""
        assert self.plan is not None
        self._norm, self._was_suspect = None, False
        readings = self._readings(self.plan.processes, "attach")
        if readings is None or isinstance(readings, HealthReport):
            return self._done(readings)
        self._norm, report = attached(readings, self.plan)
        return self._done(report)

    def check(self, occasion: Occasion) -> HealthReport | None:
        """Looks at the device as it is. None where the check was cut short."""
        assert self.plan is not None
        if self._norm is None:  # what failed at attach has no norm to be held to
            return self.attach()
        in_doubt = self._was_suspect or self.is_quarantined
        readings = self._readings(self.plan.processes if in_doubt else PROCESSES, occasion)
        if readings is None or isinstance(readings, HealthReport):
            return self._done(readings)
        return self._done(judge(self._norm, readings, occasion, was_suspect=in_doubt))

    def _done(self, report: HealthReport | None) -> HealthReport | None:
        if report is not None:
            self.last = report
            self._since, self._is_alarmed = 0, False
            self._was_suspect = report.verdict != "healthy"
        return report

    def _readings(self, processes: int, occasion: Occasion) -> Readings | HealthReport | None:
        """Seconds by part, or the report of a failure; None where it was cut short."""
        try:
            self._golden = self._golden or self.items()
        except TargetError as error:
            return self._report(f"no golden kernel can be made for this machine: {error}", occasion)
        readings: dict[PartName, list[float]] = {part: [] for part in self._golden}
        for _ in range(processes):
            for part, item in self._golden.items():
                result = self._measured(item)
                if result.failure is not None:
                    return self._failed(part, result.failure, occasion)
                assert result.seconds is not None, "a result without failure has seconds"
                readings[part].append(result.seconds)
        return readings

    def _measured(self, item: MeasureInput) -> MeasureResult:
        result = self.measure(item)
        if result.failure is not None and result.failure.kind in _ACCIDENTS:
            return self.measure(item)
        return result

    def _failed(self, part: PartName, failure: Failure, occasion: Occasion) -> HealthReport | None:
        if failure.kind == "cancelled":
            return None
        return self._report(f"{part} failed: {failure.kind}: {failure.message}", occasion)

    def _report(self, failure: str, occasion: Occasion) -> HealthReport:
        grade = "noisy" if self._norm is None else self._norm.grade.name
        return HealthReport(occasion, "failed", grade, (), clip(failure)[:MAX_REASON])
