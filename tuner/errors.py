"""What the tuner refuses. A candidate that fails is data (see outcome.py), never one of these."""

from __future__ import annotations

from collections.abc import Mapping

__all__ = [
    "NoLegalCandidate",
    "NotASqlStore",
    "NotReady",
    "NotReplayable",
    "SchemaMismatch",
    "SuggestionRefused",
    "TookTooLong",
    "TuningError",
    "UnknownStrategy",
]


class TuningError(Exception):
    """A search cannot be done as it was asked for."""


class NoLegalCandidate(TuningError):
    """No configuration of the space satisfies its constraints.

    `violations` counts, by constraint label, how many of the `tried` configurations broke it. `refused` gives
    the reason for each structure that did not become a sketch.
    """

    def __init__(
        self,
        sketches: tuple[str, ...],
        tried: int,
        violations: Mapping[str, int],
        refused: Mapping[str, str],
    ) -> None:
        super().__init__(sketches, tried, dict(violations), dict(refused))
        self.sketches = sketches
        self.tried = tried
        self.violations = dict(violations)
        self.refused = dict(refused)

    def __str__(self) -> str:
        if not self.sketches:
            reasons = "; ".join(f"{name}: {reason}" for name, reason in self.refused.items())
            return (
                f"no legal candidate: no sketch fits this workload and target ({reasons or 'no rule for it'})"
            )
        named = (
            ", ".join(f"{label}: {count}" for label, count in self._ranked()) or "no constraint was counted"
        )
        return (
            f"no legal candidate: none of {self.tried} configurations tried of "
            f"{_sketches(self.sketches)} satisfies every constraint (violations: {named})"
        )

    def _ranked(self) -> list[tuple[str, int]]:
        return sorted(self.violations.items(), key=lambda item: (-item[1], item[0]))


class UnknownStrategy(TuningError):
    """A search strategy was named that does not exist."""

    def __init__(self, name: str, known: tuple[str, ...]) -> None:
        super().__init__(name, known)
        self.name = name
        self.known = known

    def __str__(self) -> str:
        return f"unknown search strategy {self.name!r}; known: {', '.join(self.known)}"


class NotReplayable(TuningError):
    """A trace does not apply to the task's program; the text says where and why."""


class SuggestionRefused(TuningError):
    """A suggested candidate cannot be tried. `number` counts the suggestions from 0."""

    def __init__(self, number: int, reason: str) -> None:
        super().__init__(number, reason)
        self.number = number
        self.reason = reason

    def __str__(self) -> str:
        return f"suggestions[{self.number}]: {self.reason}"


class NotReady(TuningError):
    """A batch was asked for before the results it depends on were told."""

    def __init__(self, batch: int, missing: tuple[int, ...]) -> None:
        super().__init__(batch, missing)
        self.batch = batch
        self.missing = missing

    def __str__(self) -> str:
        numbers = ", ".join(str(number) for number in self.missing)
        return f"batch {self.batch} depends on results that were not told yet: trials {numbers}"


class TookTooLong(TuningError):
    """The search itself, not a measurement, took more time than it has: the `seconds` of its job, all in all,
    or (`budget` is false) those that a search may think at one go."""

    def __init__(self, doing: str, seconds: float, budget: bool) -> None:
        super().__init__(doing, seconds, budget)
        self.doing = doing
        self.seconds = seconds
        self.budget = budget

    def __str__(self) -> str:
        if self.budget:
            return f"the {self.seconds:g} s of the budget are used up while {self.doing}"
        return f"{self.doing} took longer than the {self.seconds:g} s that a search may think at one go"


class JobStopped(TuningError):
    """Somebody else has paused the job that this process tunes. What was measured is stored."""


class CannotResume(TuningError):
    """A stored job cannot go on here."""


class NotASqlStore(TuningError):
    """`tune` was given something it cannot record trials into."""

    def __init__(self, what: str) -> None:
        super().__init__(what)
        self.what = what

    def __str__(self) -> str:
        return (
            f"tune measures in this process and records into a SQL store; {self.what} is not one. Give it "
            'tilewright.connect("sqlite:///tilewright.db"), or let the service search: submit a job with '
            "`tilewright tune WORKLOAD --url URL`, or POST /v1/jobs"
        )


def _sketches(names: tuple[str, ...]) -> str:
    return f"{len(names)} sketch{'es' if len(names) > 1 else ''} ({', '.join(names)})"


class SchemaMismatch(TuningError):
    """Feature rows of one schema were given to a search or a model of another: their columns mean different
    things."""

    def __init__(self, what: str, found: str, expected: str) -> None:
        super().__init__(what, found, expected)
        self.what = what
        self.found = found
        self.expected = expected

    def __str__(self) -> str:
        return f"the features of {self.what} are {self.found}; those of this search are {self.expected}"
