"""What a search of several tasks has found, and how it divided its budget."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

from ..db.words import JobState
from .record import TuningRecord
from .task_scheduler import Turn

__all__ = ["TaskResult", "TaskState", "TasksRecord"]

TaskState = JobState | Literal["space_error"]


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskResult:
    """One task. `state` is that of its record; without one it is `space_error` where its search space could
    not be made, and else `failed`, and `reason` says why. `turns`: batches that it measured.

    `space_errors`: rules that failed to make their part of its space, by name; the others' part was searched.
    """

    name: str
    weight: float
    state: TaskState
    reason: str
    record: TuningRecord | None = None
    turns: int = 0
    space_errors: Mapping[str, str] = field(default_factory=dict)

    @property
    def seconds(self) -> float | None:
        """Of the best schedule, per call; None where there is none."""
        return None if self.record is None else self.record.seconds

    @property
    def trial_count(self) -> int:
        return 0 if self.record is None else self.record.trial_count


@dataclass(frozen=True, slots=True, kw_only=True)
class TasksRecord:
    """Results in the order of the tasks. `reason`: why the search ended. `turns`: whose turn it was and why,
    one after the other."""

    results: tuple[TaskResult, ...]
    reason: str
    turns: tuple[Turn, ...]
    wall_seconds: float

    @property
    def trial_count(self) -> int:
        return sum(result.trial_count for result in self.results)

    @property
    def failed(self) -> tuple[TaskResult, ...]:
        """The tasks for which there is no schedule."""
        return tuple(result for result in self.results if result.seconds is None)

    @property
    def weighted_seconds(self) -> float | None:
        """Of all tasks, each by its weight: what the search made small. None where one has no time."""
        times = [(result.weight, result.seconds) for result in self.results]
        known = [weight * seconds for weight, seconds in times if seconds is not None]
        return math.fsum(known) if len(known) == len(times) else None
