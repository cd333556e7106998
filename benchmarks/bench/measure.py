"""Interleaved timing: contenders in turn, A-B-C-A-B-C, on arrays that are allocated anew several times.

Where arrays lie moves a kernel's time by several percent (cache sets, pages, translation), and a contender
that got a lucky place once would keep it for all rounds. So the rounds are spread over placements: for each,
every contender gets arrays on fresh pages, at the same offset from a page for all, and medians run over
placements.
"""

from __future__ import annotations

import math
import mmap
import statistics
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

Array = np.ndarray[Any, Any]
Call = Callable[[], object]

#: Seconds of one sample; shorter ones are noise on a shared core (see docs/performance.md).
SAMPLE_SECONDS = 0.02
#: Offsets from a page in turn: aligned, and 16 bytes past it, which is all that NumPy promises.
OFFSETS = (0, 16)
#: From this size on NumPy asks for huge pages (numpy/_core/src/multiarray/alloc.c).
HUGE = 1 << 22
#: Seconds until the threads of other contenders have gone to sleep: OpenMP's wait actively for a while.
SETTLE = 0.25


@dataclass(frozen=True, slots=True)
class Contender:
    """make: a call on the given arrays (the parameters, in order), made anew for every placement. read: what
    the call computed, from what it returned and the arrays."""

    make: Callable[[Sequence[Array]], Call]
    read: Callable[[object, Sequence[Array]], Array]


def placed(arrays: Sequence[Array], offset: int) -> list[Array]:
    """Copies on fresh pages, each `offset` bytes past the start of one."""
    out = []
    for a in arrays:
        pages = mmap.mmap(-1, a.nbytes + offset + mmap.PAGESIZE)
        if a.nbytes >= HUGE and hasattr(mmap, "MADV_HUGEPAGE"):
            pages.madvise(mmap.MADV_HUGEPAGE)
        place = np.frombuffer(pages, np.uint8, a.nbytes, offset).view(a.dtype).reshape(a.shape)
        place[...] = a
        out.append(place)
    return out


def interleaved(
    contenders: Mapping[str, tuple[Contender, Sequence[Array]]],
    rounds: int,
    placements: int = 7,
    wall: bool = False,
    rested: dict[str, list[float]] | None = None,
) -> dict[str, list[float]]:
    """Seconds a call, `rounds` samples of each contender in turn over so many placements.

    Processor time of the thread; with `wall`, for kernels on several threads, wall time: each contender rests
    until the threads of the one before it have gone to sleep, then makes one call, which `rested` takes,
    and is called in a row for as long as a sample takes before the sample begins. A call slower than a second
    is timed once.
    """
    clock = time.perf_counter if wall else time.thread_time
    placements = min(placements, rounds)
    samples: dict[str, list[float]] = {name: [] for name in contenders}
    repeats: dict[str, int] = {}
    for p in range(placements):
        calls = {
            name: c.make(placed(arrays, OFFSETS[p % len(OFFSETS)]))
            for name, (c, arrays) in contenders.items()
        }
        for _ in range(rounds * p // placements, rounds * (p + 1) // placements):
            for name, call in calls.items():
                if samples[name] and samples[name][0] > 1:
                    continue
                if wall:
                    time.sleep(SETTLE)
                start = clock()
                call()
                if rested is not None:
                    rested.setdefault(name, []).append(clock() - start)
                while wall and clock() - start < SAMPLE_SECONDS:
                    call()
                if name not in repeats:
                    repeats[name] = _repeats(call, clock)
                start = clock()
                for _ in range(repeats[name]):
                    call()
                samples[name].append((clock() - start) / repeats[name])
    return samples


def _repeats(call: Call, clock: Callable[[], float]) -> int:
    start = clock()
    call()
    return max(1, round(SAMPLE_SECONDS / max(clock() - start, 1e-7)))


def ratio(ours: Sequence[float], theirs: Sequence[float]) -> tuple[float, float, float]:
    """(median, low, high) of theirs / ours over interleaved pairs: above 1, ours is faster; the interval
    holds the median with at least 95 %, or is the whole range for fewer than 6 pairs."""
    pairs = sorted(t / o for o, t in zip(ours, theirs, strict=False))
    k = outside(len(pairs))
    return statistics.median(pairs), pairs[k], pairs[len(pairs) - 1 - k]


def outside(n: int) -> int:
    """How many of n sorted values may be left out at each end so that the rest still spans the median of
    what they were drawn from with 95 %: each value is below it with probability 1/2."""
    k, tail = 0, 0.5**n
    while k + 1 <= (n - 1) // 2 and tail + math.comb(n, k + 1) * 0.5**n <= 0.025:
        k += 1
        tail += math.comb(n, k) * 0.5**n
    return k if tail <= 0.025 and n >= 6 else 0


def geometric_mean(values: Sequence[float]) -> float:
    """The geometric mean; NaN for none."""
    return math.exp(statistics.fmean(map(math.log, values))) if values else math.nan
