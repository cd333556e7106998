"""When a search has had enough."""

from __future__ import annotations

import math
from dataclasses import dataclass

__all__ = ["Budget"]


@dataclass(frozen=True, slots=True)
class Budget:
    """What a search may use; it ends with whatever comes first.

    trials: measurements, at least 1. seconds: wall time. target_seconds: a trial at most this slow is good
    enough. patience: this many trials in a row, in trial order, without a new best end the search as one that
    has converged. None: no such limit.
    """

    trials: int
    seconds: float | None = None
    target_seconds: float | None = None
    patience: int | None = None

    def __post_init__(self) -> None:
        for name, least in (("trials", self.trials), ("patience", self.patience)):
            if least is not None and least < 1:
                raise ValueError(f"a budget's {name} is at least 1, not {least}")
        for name, value in (("seconds", self.seconds), ("target_seconds", self.target_seconds)):
            if value is not None and not (math.isfinite(value) and value > 0):
                raise ValueError(f"a budget's {name} is finite and above 0, not {value}")
