"""How long one call of a kernel takes.

The time of a one-thread kernel is the minimum of several samples in CPU time of the calling thread. Many
short samples beat few long ones: on a core shared with other work nine of ten readings from ten samples of
2 ms lie within 2 to 4 % of the truth (13 % beside one that empties the caches), from three of 20 ms within
4 to 8 % (20 %), and wall time is up to twice the truth with a small spread. The caches are hot (CACHE): every
call works on the same buffers.

Candidates race against the best so far. After each of the first samples, one that is slower than its noise
explains is stopped as `censored`; one that is merely slower is done after half of the time that a contender
for the first place gets.

A parallel kernel's samples are wall time: one thread's CPU time says nothing of the others, and all together
nothing of how long the caller waited.

A sample that was disturbed (`conditions.disturbance`: throttling, heat, a hypervisor, other work) is taken
again, within bounds, and counts only where there is no other.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import repeat

from .conditions import Conditions, Look, disturbance

SAMPLES = 3
SAMPLE_SECONDS = 0.002
"""The least samples of a measurement, and the least seconds of one."""
ENOUGH_SECONDS = 0.010
CONTENDER_SECONDS = 0.020
"""What all samples of a measurement come to: of one that is slower than the best, and of one that is near."""
NEAR = 1.05
"""A contender takes at most so many times the best."""
CENSOR_RATIOS = (2.0, 1.5)
"""A least sample over this many times the best ends the trial, after one and after two samples. Of several
thousand samples of 2 ms the worst was 1.55 times its truth, of the lesser of two 1.3 times; and a machine may
have become a fifth slower since the best was timed."""
COLD_RATIO = 3.0
"""The same for the call that was made before all samples, with cold caches."""
DISTURBED_RATIO = 2.0
"""What was disturbed may look so many times as slow as it is."""
MOST_SAMPLES = 12
MOST_SECONDS = 0.080
"""Of a parallel kernel on a busy machine, the samples that were disturbed included. Of a one-thread kernel
they are as many, and as long, as a measurement takes twice: CPU time tells the truth of an interrupted
sample, too, but for what the other work did to the caches."""
FIRST_SECONDS = 0.1
FIRST_RATIO = 20.0
"""The first call of a kernel, checked and with cold caches, is ended after this much processor time, or
after so many times the best where that is more."""
CACHE = "hot"
"""The caches that times are taken with. Times of other policies do not compare."""

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
    """Seconds of one call, the minimum of `samples` (fewer when `censored`); `calls` made in the last.
    `disturbance`: what disturbed every sample, of which the best are all there is; else empty.
    """

    seconds: float
    samples: tuple[float, ...]
    censored: bool
    calls: int
    disturbance: str = ""


def time_call(
    call: Callable[[], object],
    *,
    first: float = 0.0,
    best: float | None = None,
    clock: Callable[[], float] = time.thread_time,
    look: Look = Conditions,
    parallel: bool = False,
) -> Timing:
    """Times `call`, which must have been called before so that it is warm.

    `first`: the seconds that an earlier call took, 0 for unknown. When it lasted long enough to be a sample
    it can censor the trial by itself, so that a very slow kernel is not run again. `best`: the seconds to
    beat; None where there is none, or no race: then it is timed like a contender. `look` tells the conditions
    before and after each sample. `parallel`: the clock is a wall's, so that an interruption counts in full.
    Raises BelowResolution when the clock stands still however often the kernel is called.
    """
    cold = COLD_RATIO * (DISTURBED_RATIO if parallel else 1.0)
    if best is not None and first >= SAMPLE_SECONDS and first > cold * best:
        return Timing(first, (first,), censored=True, calls=1)
    calls = _enough(1, first) if first > 0 else 1
    race = _Race(best, parallel)
    while not race.over:
        before = look()
        calls, seconds = _sample(call, calls, clock)
        race.take(seconds, calls * seconds, disturbance(before, look()))
        if race.lost:
            break
    samples = race.samples
    return Timing(min(samples), samples, race.lost, calls, disturbance="" if race.kept else race.disturbance)


def longest_first_call(best: float | None, threads: int = 1) -> float:
    """Seconds of processor time, of all threads, after which a first call has lost; 0 for no limit."""
    return 0.0 if best is None else max(FIRST_SECONDS, FIRST_RATIO * best) * threads


class _Race:
    """The samples of one kernel against the best of others."""

    def __init__(self, best: float | None, parallel: bool) -> None:
        self._best = best
        self._parallel = parallel
        self.kept: list[float] = []
        self._spoilt: list[float] = []
        self._kept_seconds = 0.0
        self._all_seconds = 0.0
        self.disturbance = ""

    def take(self, seconds: float, lasted: float, disturbance: str | None) -> None:
        (self.kept if disturbance is None else self._spoilt).append(seconds)
        self._all_seconds += lasted
        self._kept_seconds += lasted if disturbance is None else 0.0
        self.disturbance = disturbance or self.disturbance

    @property
    def samples(self) -> tuple[float, ...]:
        return tuple(self.kept or sorted(self._spoilt)[:SAMPLES])

    @property
    def over(self) -> bool:
        """Whether there are enough samples."""
        if len(self.kept) >= SAMPLES and self._kept_seconds >= self._wanted:
            return True
        taken = len(self.kept) + len(self._spoilt)
        if self._parallel:
            return taken >= MOST_SAMPLES and self._all_seconds >= MOST_SECONDS
        return taken >= SAMPLES and self._all_seconds >= 2 * self._wanted

    @property
    def lost(self) -> bool:
        """Whether so few samples suffice to see that it is not the best."""
        known: Sequence[float] = self.kept or self._spoilt
        if self._best is None or self.over or not 0 < len(known) <= len(CENSOR_RATIOS):
            return False
        ratio = CENSOR_RATIOS[len(known) - 1] * (1.0 if self.kept else DISTURBED_RATIO)
        return min(known) > ratio * self._best

    @property
    def _wanted(self) -> float:
        """Seconds of samples."""
        known = self.kept or self._spoilt
        is_contender = self._best is None or not known or min(known) <= NEAR * self._best
        return CONTENDER_SECONDS if is_contender else ENOUGH_SECONDS


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
