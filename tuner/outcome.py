"""What came of one trial: seconds, or a typed failure."""

from __future__ import annotations

import math
from dataclasses import dataclass

from ..measure.messages import MeasureResult
from .candidate import Candidate

__all__ = ["Outcome", "Trial"]


@dataclass(frozen=True, slots=True)
class Outcome:
    """Either `seconds` (per call, finite and above zero) or a `failure` kind, never both.

    `censored`: the trial was stopped early because it was clearly slower than the best; `seconds` is then its
    lower bound, and it can never be the best. `of_workload`: not this candidate failed, no candidate of the
    workload can be measured.
    """

    seconds: float | None = None
    censored: bool = False
    failure: str | None = None
    message: str = ""
    samples: tuple[float, ...] = ()
    error: float | None = None
    of_workload: bool = False

    def __post_init__(self) -> None:
        if (self.seconds is None) == (self.failure is None):
            raise ValueError("an outcome has either seconds or a failure")
        if self.seconds is not None and not (math.isfinite(self.seconds) and self.seconds > 0):
            raise ValueError(f"seconds must be finite and above zero, not {self.seconds!r}")

    @classmethod
    def timed(
        cls,
        seconds: float,
        *,
        censored: bool = False,
        samples: tuple[float, ...] = (),
        error: float | None = None,
    ) -> Outcome:
        """The outcome of a reported time. A time that no clock can have resolved (zero, negative, NaN or
        infinite) becomes a failure: it would rank first and make every ratio meaningless."""
        if math.isfinite(seconds) and seconds > 0:
            return cls(seconds=seconds, censored=censored, samples=samples, error=error)
        return cls(failure="run_error", message=f"timed as {seconds!r} s: below the resolution of the timer")

    @classmethod
    def of(cls, result: MeasureResult) -> Outcome:
        """What a worker or the runner reported."""
        if result.failure is not None:
            failure = result.failure
            return cls(failure=failure.kind, message=failure.message, of_workload=failure.of_workload)
        assert result.seconds is not None, "a message has either seconds or a failure"
        return cls.timed(
            result.seconds, censored=result.censored, samples=tuple(result.samples), error=result.error
        )

    @property
    def exact(self) -> bool:
        """Whether it is a time of its own, not a bound and not a failure: only such a trial can be best."""
        return self.seconds is not None and not self.censored


@dataclass(frozen=True, slots=True)
class Trial:
    """A candidate whose outcome is known."""

    candidate: Candidate
    outcome: Outcome
