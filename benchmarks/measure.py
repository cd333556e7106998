"""Interleaved timing of single-thread contenders: thread CPU time, A-B-C-A-B-C, medians and their ratios."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Mapping

#: Seconds of one sample; shorter ones are noise on a shared core (see docs/performance.md).
SAMPLE_SECONDS = 0.02


def _repeats(call: Callable[[], object]) -> int:
    call()
    start = time.thread_time()
    call()
    return max(1, round(SAMPLE_SECONDS / max(time.thread_time() - start, 1e-7)))


def interleaved(calls: Mapping[str, Callable[[], object]], rounds: int) -> dict[str, list[float]]:
    """Seconds a call, `rounds` samples for each contender, taken in turn. A call slower than a second is
    timed once."""
    repeats = {name: _repeats(call) for name, call in calls.items()}
    samples: dict[str, list[float]] = {name: [] for name in calls}
    for _ in range(rounds):
        for name, call in calls.items():
            if samples[name] and samples[name][0] > 1:
                continue
            start = time.thread_time()
            for _ in range(repeats[name]):
                call()
            samples[name].append((time.thread_time() - start) / repeats[name])
    return samples


def ratio(ours: list[float], theirs: list[float]) -> tuple[float, float, float]:
    """(median, low, high) of theirs / ours over interleaved pairs: above 1, ours is faster; the 95 % interval
    of the median by order statistics (binomial), or the whole range for fewer than 6 pairs."""
    pairs = sorted(t / o for o, t in zip(ours, theirs, strict=False))
    n = len(pairs)
    margin = round(0.98 * n**0.5) if n >= 6 else n // 2
    low, high = max(0, n // 2 - margin), min(n - 1, (n - 1) // 2 + margin)
    return statistics.median(pairs), pairs[low], pairs[high]
