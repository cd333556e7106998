"""When a search whose trials fail is given up before its budget is used."""

from __future__ import annotations

from .outcome import Outcome

__all__ = ["MAX_ALIKE", "MAX_FAILURES", "MAX_OF_WORKLOAD", "FailureCount"]

MAX_FAILURES = 200
"""A search whose trials fail so many times in a row, in trial order, is given up."""

MAX_ALIKE = 16
"""A search whose first so many trials all fail to build, for one and the same reason, is given up: a target
that the hardware cannot run, for example, fails every candidate alike."""

MAX_OF_WORKLOAD = 2
"""A search whose first so many trials all fail for a reason that is the workload's own, and no candidate's
(its reference cannot be computed), is given up. Not after one: it may have been the worker's bad moment."""


class FailureCount:
    """Is told outcomes in trial order. Cancelled trials count neither way."""

    def __init__(self, max_failures: int = MAX_FAILURES) -> None:
        self._max_failures = max_failures
        self._in_a_row = 0
        self._counted = 0
        self._first: Outcome | None = None
        self._alike = True
        self._of_workload = True

    def count(self, outcome: Outcome) -> None:
        if outcome.failure == "cancelled":
            return
        self._in_a_row = 0 if outcome.failure is None else self._in_a_row + 1
        self._first = self._first or outcome
        self._alike = self._alike and outcome.failure is not None and outcome == self._first
        # Workers of other limits say it in other numbers.
        self._of_workload = self._of_workload and outcome.of_workload
        self._counted += 1

    @property
    def workload(self) -> str | None:
        """Why no candidate can be measured, in the words of the first trial; None unless all failed so."""
        first = self._first
        if first is None or not self._of_workload:
            return None
        return f"{first.message} ({first.failure}, {_of_trials(self._counted)})"

    @property
    def example(self) -> str:
        """The first failure in its own words, for people whose trials all failed; empty where it had none."""
        first = self._first
        if first is None or first.failure is None or not first.message:
            return ""
        return "; the first one: " + first.message.split("\n", 1)[0]

    def verdict(self, failures: dict[str, int]) -> str | None:
        """The reason to give up now, if there is one. `failures` counts all that were told, by kind."""
        if self._counted >= MAX_OF_WORKLOAD and self.workload is not None:
            return self.workload
        if self._counted >= MAX_ALIKE and self._alike and self._first is not None:
            first = self._first
            if first.failure == "build_error" and first.message:
                return f"the first {self._counted} trials all failed to build for one reason: {first.message}"
        if self._in_a_row >= self._max_failures:
            kinds = ", ".join(f"{kind}: {count}" for kind, count in failures.items())
            return f"{self._in_a_row} trials in a row failed ({kinds})"
        return None


def _of_trials(count: int) -> str:
    return "the only trial" if count == 1 else f"each of the first {count} trials"
