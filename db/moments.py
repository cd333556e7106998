"""Times and durations as the reasons of states say them."""

import time

_UNITS = ((86_400, "d"), (3_600, "h"), (60, "min"))


def moment(at: float) -> str:
    """Seconds since the epoch as `2026-05-01 12:00:00 UTC`."""
    return time.strftime("%Y-%m-%d %H:%M:%S UTC", time.gmtime(at))


def span(seconds: float) -> str:
    """A duration in the largest unit that has no rest: `30 min`, `90 s`, `0.5 s`."""
    for size, unit in _UNITS:
        if seconds >= size and seconds % size == 0:
            return f"{seconds / size:g} {unit}"
    return f"{seconds:g} s"
