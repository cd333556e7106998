"""When a search has had enough."""

from __future__ import annotations

import sys
from dataclasses import dataclass

__all__ = ["EXACT", "Budget"]

EXACT = 1 << 53
"""From here on not every integer is a number of JSON, as which stores and servers know it."""


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
        _require_count("trials", self.trials)
        if self.patience is not None:
            _require_count("patience", self.patience)
        for name, value in (("seconds", self.seconds), ("target_seconds", self.target_seconds)):
            if value is not None:
                _require_seconds(name, value)


def _require_count(name: str, value: int) -> None:
    """A search compares counts with what it has done: one that is no whole number is never reached."""
    if isinstance(value, bool) or not isinstance(value, int):
        raise ValueError(f"a budget's {name} is a whole number, not {value!r}")
    if value < 1:
        raise ValueError(f"a budget's {name} is at least 1, not {value}")
    if value >= EXACT:
        raise ValueError(f"a budget's {name} is below 2**53, not {value}")


def _require_seconds(name: str, value: float) -> None:
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise ValueError(f"a budget's {name} is a number, not {value!r}")
    if not 0 < value <= sys.float_info.max:
        raise ValueError(f"a budget's {name} is finite and above 0, not {value}")
