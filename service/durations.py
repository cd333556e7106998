"""Durations as people write them in a query or on a command line: `20s`, `500ms`, `10m`, `24h`, `7d`,
`1.5`."""

from __future__ import annotations

import re

LONGEST_TOKEN_LIFE = 3650 * 86_400.0
_LONGEST_SHOWN = 40
_UNITS = {"": 1.0, "ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0, "d": 86_400.0}
_DURATION = re.compile(r"([0-9]{1,9}(?:\.[0-9]{1,9})?)(ms|s|m|h|d|)")


def seconds_of(text: str) -> float:
    """The seconds of a duration; without a unit they are seconds. Raises ValueError."""
    match = _DURATION.fullmatch(text.strip())
    if match is None:
        raise ValueError(f"must be a duration such as 20s, 500ms or 10m, got {shortened(text)}")
    return float(match[1]) * _UNITS[match[2]]


def shortened(text: str) -> str:
    """What was said, as a message repeats it."""
    return repr(text if len(text) <= _LONGEST_SHOWN else text[: _LONGEST_SHOWN - 3] + "...")
