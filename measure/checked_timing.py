"""A built kernel's output is checked, and only then its time taken, between two readings of a baseline."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Protocol

import numpy as np

from ..compiler.interpret import check
from ..compiler.runtime import ParamInfo
from ..compiler.runtime.arrays import aligned_bytes
from .conditions import Sensors
from .golden import BaselineKernel
from .messages import MAX_DISTURBANCE, Failure, FailureKind, MeasureInput, MeasureResult
from .reference import Reference
from .timing import BelowResolution, Timing, longest_first_call, time_call
from .words import clip

__all__ = ["Bench", "Kernel", "check_and_time", "failed"]

Array = np.ndarray[Any, Any]

BASELINE_DRIFT = 0.10
"""Where the baseline after a candidate's samples is farther than this from that before them, they are taken
again. A reading of 1 ms on a shared machine is within a few percent of the truth, seldom within ten."""


class Kernel(Protocol):
    """What is needed of a built Module."""

    @property
    def params(self) -> Sequence[ParamInfo]: ...

    def bind(self, *arrays: Array) -> Callable[[], None]: ...


@dataclass(frozen=True, slots=True)
class Bench:
    """What a timing is judged by: the conditions it was taken under, and a baseline, where there is one."""

    sensors: Sensors
    baseline: BaselineKernel | None = None

    def seconds(self) -> float | None:
        """Of one call of the baseline."""
        return None if self.baseline is None else self.baseline.seconds()


def check_and_time(
    item: MeasureInput,
    kernel: Kernel,
    reference: Reference,
    alarm: Callable[[float], object] = lambda seconds: None,
    bench: Bench | None = None,
) -> MeasureResult:
    """Runs a kernel on copies of the reference's arrays. Its time counts only if its output is right, and if
    it then leaves its inputs alone and gives the same output at every call.

    `alarm` is set, in seconds of processor time, for the first call of a candidate that has a best to beat:
    nothing else can end a call that is many times as slow. The samples are taken between two readings of the
    baseline of `bench`, and once more where these differ.
    """
    bench = bench or Bench(Sensors())
    arrays = [_laid_out(array) for array in reference.arrays]
    call = kernel.bind(*arrays)
    is_parallel = item.threads > 1
    clock = time.perf_counter if is_parallel else time.thread_time
    alarm(longest_first_call(item.best_seconds, item.threads))
    start = clock()
    call()
    first = clock() - start
    alarm(0.0)

    checked = check(reference.expected, arrays)
    error = checked.worst if math.isfinite(checked.worst) else None
    if not checked.ok:
        return failed(item, "wrong_output", checked.message, error)
    once = [
        array.copy() if param.is_output else pristine
        for param, pristine, array in zip(kernel.params, reference.arrays, arrays, strict=True)
    ]
    race = partial(
        time_call,
        call,
        first=first,
        best=item.best_seconds,
        clock=clock,
        look=partial(bench.sensors.look, is_parallel),
        parallel=is_parallel,
    )
    try:
        timing, baseline = _between_baselines(race, bench)
    except BelowResolution as below:
        return failed(item, "run_error", str(below))
    if reason := _disturbed(kernel, once, arrays):
        return failed(item, "wrong_output", reason, error)
    return MeasureResult(
        item.item,
        item.attempt,
        timing.seconds,
        timing.samples,
        calls=timing.calls,
        censored=timing.censored,
        disturbed=bool(timing.disturbance),
        disturbance=timing.disturbance[:MAX_DISTURBANCE],
        baseline=baseline,
        error=error,
    )


def _between_baselines(race: Callable[[], Timing], bench: Bench) -> tuple[Timing, tuple[float, ...]]:
    """A timing, and the seconds of the baseline before and after it. Taken twice where the baseline moved; if
    it moved again, that disturbed it."""
    timing, baseline, moved = _between(race, bench)
    if abs(moved) > BASELINE_DRIFT:
        timing, baseline, moved = _between(race, bench)
        if abs(moved) > BASELINE_DRIFT and not timing.disturbance:
            timing = replace(timing, disturbance=f"the baseline moved by {moved:+.0%} meanwhile")
    return timing, baseline


def _between(race: Callable[[], Timing], bench: Bench) -> tuple[Timing, tuple[float, ...], float]:
    """Also how far the baseline moved, as a ratio less 1."""
    before = bench.seconds()
    timing = race()
    after = bench.seconds()
    if before is None or after is None:
        return timing, (), 0.0
    return timing, (before, after), after / before - 1.0


def _disturbed(kernel: Kernel, once: Sequence[Array], often: Sequence[Array]) -> str | None:
    """What is wrong with a kernel whose first output was right, from the arrays after one call and after all:
    it wrote into an input, or later calls gave something else. Bits are compared: each element is computed by
    one thread, and one that does the same again gives the same."""
    for param, before, after in zip(kernel.params, once, often, strict=True):
        if not _same_bits(before, after):
            if param.is_output:
                return f"output {param.name} differs between the first call and later ones"
            return f"the kernel wrote into its input {param.name}"
    return None


def _same_bits(a: Array, b: Array) -> bool:
    # By words where there are whole ones: in an eighth of the time that bytes take.
    word = np.uint64 if a.nbytes % 8 == 0 else np.uint8
    return bool(np.array_equal(_words(a, word), _words(b, word)))


def _words(array: Array, word: type[np.unsignedinteger[Any]]) -> Array:
    words: Array = array.reshape(-1).view(np.uint8).view(word)
    return words


def failed(item: MeasureInput, kind: FailureKind, message: str, error: float | None = None) -> MeasureResult:
    failure = Failure(kind, clip(message))
    return MeasureResult(item.item, item.attempt, error=error, failure=failure)


def _laid_out(array: Array) -> Array:
    """A copy that begins 16 bytes behind a multiple of 64: all that NumPy promises to a user, and the same at
    every run. Kernels that load from it directly are up to 15 % slower than from a multiple of 64."""
    block = aligned_bytes(array.nbytes + 64)[16 : 16 + array.nbytes]
    copy: Array = block.view(array.dtype).reshape(array.shape)
    copy[...] = array
    return copy
