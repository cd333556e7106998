"""How far a search is, for those who watch it."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

from .session import TuningSession
from .task import TuningTask

__all__ = ["Snapshot"]


@dataclass(frozen=True, slots=True)
class Snapshot:
    """`done` of `trials` are measured (`asked`: and those being measured). `failures` counts by kind.

    `remaining` is an estimate in seconds, at the pace so far and within the limit of time; None before there
    is a pace.
    """

    done: int
    asked: int
    trials: int
    best_number: int | None
    best_seconds: float | None
    best_gflops: float | None
    best_sketch: str | None
    failures: dict[str, int]
    elapsed: float
    remaining: float | None

    @classmethod
    def of(
        cls, session: TuningSession, task: TuningTask, elapsed: float, seconds: float | None = None
    ) -> Snapshot:
        """The state of a session after `elapsed` of at most `seconds` seconds."""
        best, done = session.best, session.told
        expected = session.asked if session.closed else session.trials
        remaining = (expected - done) * elapsed / done if done else None
        if seconds is not None:
            left = max(0.0, seconds - elapsed)
            remaining = left if remaining is None else min(remaining, left)
        best_seconds = best.outcome.seconds if best else None
        return cls(
            done=done,
            asked=session.asked,
            trials=session.trials,
            best_number=best.candidate.number if best and best.candidate.number >= 0 else None,
            best_seconds=best_seconds,
            best_gflops=task.gflops(best_seconds),
            best_sketch=best.candidate.sketch if best else None,
            failures=session.failures,
            elapsed=elapsed,
            remaining=remaining,
        )

    def to_json(self) -> dict[str, Any]:
        """The data of a `progress` event."""
        return asdict(self)
