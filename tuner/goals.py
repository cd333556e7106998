"""What ends a search before its trials are used up: a time that is good enough, or no more progress."""

from __future__ import annotations

import math

from .budget import Budget
from .outcome import Outcome

__all__ = ["Goals"]


class Goals:
    """Is told outcomes in trial order, so that the order in which results arrive changes no verdict.

    Cancelled trials count neither way: nobody knows what they would have brought.
    """

    def __init__(self, budget: Budget, known: float | None = None) -> None:
        """`known`: the best time of earlier searches, from which progress counts."""
        self._budget = budget
        self._known = math.inf if known is None else known
        self._best: tuple[int, float] | None = None
        self._in_vain = 0

    def verdict(self, number: int, outcome: Outcome) -> str | None:
        """Counts the outcome of trial `number`; the reason why the search has had enough, if it has."""
        if outcome.failure == "cancelled":
            return None
        seconds = outcome.seconds if outcome.exact else None
        if seconds is not None and seconds < (self._known if self._best is None else self._best[1]):
            self._best, self._in_vain = (number, seconds), 0
        else:
            self._in_vain += 1
        target, patience = self._budget.target_seconds, self._budget.patience
        if target is not None and seconds is not None and seconds <= target:
            return f"trial {number} reached the target: {seconds:.4g} s, at most {target:.4g} s"
        if patience is not None and self._in_vain >= patience:
            return f"converged: {_trials(patience)} in a row {self._brought()}"
        return None

    def _brought(self) -> str:
        if self._best is None and self._known < math.inf:
            return f"brought nothing faster than what was known ({self._known:.4g} s)"
        if self._best is None:
            return "brought no time at all"
        number, seconds = self._best
        return f"brought nothing faster than trial {number} ({seconds:.4g} s)"


def _trials(count: int) -> str:
    return "1 trial" if count == 1 else f"{count} trials"
