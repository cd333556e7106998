"""How long one call of a kernel takes.

The time of a one-thread kernel is the minimum of three samples of at least 20 ms each, in CPU time of the
calling thread: on a core shared with other work its error stays within about 3 %, where wall time is up to
twice the truth with a small spread. The caches are hot: every call works on the same buffers.

A parallel kernel's is the minimum of as many samples of wall time during which none of its threads was
interrupted (`ru_nivcsw` of the process stayed as it was): one thread's CPU time says nothing of the others,
and all together nothing of how long the caller waited.
"""

from __future__ import annotations

import resource
import time
from collections.abc import Callable
from dataclasses import dataclass
from itertools import repeat

SAMPLES = 3
SAMPLE_SECONDS = 0.020
MOST_SAMPLES = 12
"""Of a parallel kernel on a busy machine, those that were interrupted included."""
CENSOR_RATIO = 2.0
"""A first sample over this many times the best ends the trial."""

_HEADROOM = 1.1
_LARGEST_STEP = 100
# The loop itself costs some 30 ns a call: a clock that works has moved by 60 ms after so many.
_MOST_CALLS = 2_000_000


class BelowResolution(Exception):
    """So many calls did not make the clock move: the timing means nothing."""

    def __init__(self, calls: int, seconds: float) -> None:
        super().__init__(calls, seconds)
        self.calls = calls
        self.seconds = seconds

    def __str__(self) -> str:
        return f"below the timer's resolution: {self.calls} calls took {self.seconds:g} s"


@dataclass(frozen=True, slots=True)
class Timing:
    """Seconds of one call, the minimum of `samples` (only one when `censored`); `calls` made in the last.
    `disturbed`: every sample of a parallel kernel was interrupted, the best of them are all there is.
    """

    seconds: float
    samples: tuple[float, ...]
    censored: bool
    calls: int
    disturbed: bool = False


def time_call(
    call: Callable[[], object],
    *,
    first: float = 0.0,
    best: float | None = None,
    clock: Callable[[], float] = time.thread_time,
    interruptions: Callable[[], int] | None = None,
) -> Timing:
    """Times `call`, which must have been called before so that it is warm.

    `first`: the seconds that an earlier call took, 0 for unknown. When it lasted long enough to be a sample
    it can censor the trial by itself, so that a very slow kernel is not run again. `best`: the seconds to
    beat, if known. `interruptions`, of parallel kernels: a count that rises when a thread has to make room
    for others. Raises BelowResolution when the clock stands still however often the kernel is called.
    """
    if first >= SAMPLE_SECONDS and _is_slower(first, best, is_disturbed=interruptions is not None):
        return Timing(first, (first,), censored=True, calls=1)
    calls = _enough(1, first) if first > 0 else 1
    kept: list[float] = []
    spoilt: list[float] = []
    count = interruptions or _never
    while len(kept) < SAMPLES and len(kept) + len(spoilt) < MOST_SAMPLES:
        before = count()
        calls, seconds = _sample(call, calls, clock)
        is_disturbed = count() != before
        is_first = not kept
        (spoilt if is_disturbed else kept).append(seconds)
        if is_first and _is_slower(seconds, best, is_disturbed):
            return Timing(seconds, (seconds,), censored=True, calls=calls)
    samples = tuple(kept or sorted(spoilt)[:SAMPLES])
    return Timing(min(samples), samples, censored=False, calls=calls, disturbed=not kept)


def thread_interruptions() -> int:
    """How often the system took a core from one of this process's threads."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_nivcsw


def _never() -> int:
    return 0


def _is_slower(seconds: float, best: float | None, is_disturbed: bool) -> bool:
    # What was interrupted may look twice as slow as it is.
    ratio = 2 * CENSOR_RATIO if is_disturbed else CENSOR_RATIO
    return best is not None and seconds > ratio * best


def _sample(call: Callable[[], object], calls: int, clock: Callable[[], float]) -> tuple[int, float]:
    """Calls made and seconds of each, in one sample that is long enough; shorter ones are thrown away."""
    while True:
        start = clock()
        for _ in repeat(None, calls):
            call()
        elapsed = clock() - start
        if elapsed >= SAMPLE_SECONDS:
            return calls, elapsed / calls
        if calls >= _MOST_CALLS:
            raise BelowResolution(calls, elapsed)
        calls = _enough(calls, elapsed)


def _enough(calls: int, elapsed: float) -> int:
    """How many calls should fill a sample, given that `calls` took `elapsed`: more than `calls` when they did
    not fill it, but at most a hundred times as many, since a short reading says little."""
    wanted = calls * _LARGEST_STEP
    if elapsed > 0:
        wanted = min(wanted, int(calls * SAMPLE_SECONDS * _HEADROOM / elapsed) + 1)
    return min(max(wanted, calls + 1 if elapsed < SAMPLE_SECONDS else 1), _MOST_CALLS)
