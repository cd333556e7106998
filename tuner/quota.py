"""What several searches may use together."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass

from .budget import Budget

__all__ = ["Quota", "TurnClock"]


@dataclass(slots=True)
class Quota:
    """Trials and seconds of a budget that several searches share, and their common lack of progress."""

    budget: Budget
    clock: Callable[[], float] = time.monotonic
    used: int = 0
    in_vain: int = 0
    began: float = 0.0
    target: str | None = None

    def __post_init__(self) -> None:
        self.began = self.clock()

    def took(self, *, better: bool) -> None:
        """Another trial was measured; whether it was the best of its search so far."""
        self.used += 1
        self.in_vain = 0 if better else self.in_vain + 1

    def reached(self, seconds: float | None) -> None:
        """The weighted sum of the best times, once all have one."""
        target = self.budget.target_seconds
        if seconds is not None and target is not None and seconds <= target:
            self.target = f"the weighted sum reached the target: {seconds:.4g} s, at most {target:.4g} s"

    @property
    def over(self) -> str | None:
        """Why nothing more may be measured, if so."""
        budget = self.budget
        if self.target is not None:
            return self.target
        if self.used >= budget.trials:
            return f"all {budget.trials} trials of the budget of all tasks are done"
        if budget.seconds is not None and self.clock() - self.began >= budget.seconds:
            return f"the {budget.seconds:g} s of the budget of all tasks are used up"
        if budget.patience is not None and self.in_vain >= budget.patience:
            return f"converged: {budget.patience} trials in a row brought no task a new best"
        return None


class TurnClock:
    """A clock that stands still while it is not the turn of what looks at it."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._before = 0.0
        self._since: float | None = None

    def __call__(self) -> float:
        return self._before + (0.0 if self._since is None else self._clock() - self._since)

    def __enter__(self) -> None:
        self._since = self._clock()

    def __exit__(self, *_: object) -> None:
        self._before, self._since = self(), None
