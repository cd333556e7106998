"""The golden kernel: a small program, always the same, whose time tells how well a device is.

It has two parts: a product of matrices that stays in the first cache and depends on the clock alone, and a
sum of vectors that no cache of a small device holds."""

from __future__ import annotations

import time
from collections.abc import Callable
from itertools import repeat
from typing import Any

import numpy as np

from ..compiler import te
from ..compiler.build import build
from ..compiler.ir import PrimFunc, to_json
from ..compiler.runtime.arrays import aligned_bytes
from ..compiler.space import default_schedule
from ..compiler.target import Target
from .health_messages import PartName
from .messages import Limits, MeasureInput

__all__ = ["BaselineKernel", "golden_items"]

Array = np.ndarray[Any, Any]

_ORDER = 64
_LENGTH = 1 << 20
# Two orders of magnitude above what it takes on a small board.
_LIMITS = Limits(build_seconds=20.0, run_seconds=20.0, memory_bytes=1 << 30)

BASELINE_SAMPLES = 5
BASELINE_SECONDS = 0.0002
"""The baseline around each candidate's samples takes the least of so many samples of so many seconds: some 2
ms a trial in all, of the 60 ms that the shortest one takes."""
_MOST_CALLS = 1 << 16


def golden_items() -> dict[PartName, MeasureInput]:
    """Both parts, for this machine, as a worker measures candidates. Raises
    TargetError where no code can be made for this machine."""
    target = Target.parse("llvm")
    parts: dict[PartName, PrimFunc] = {"compute": _compute(), "memory": _memory()}
    return {
        part: MeasureInput(
            item=f"golden:{part}",
            attempt=0,
            workload=to_json(func),
            target=target.to_json(),
            trace=default_schedule(func, target).trace.to_json(),
            limits=_LIMITS,
        )
        for part, func in parts.items()
    }


class BaselineKernel:
    """The computing part, built and ready in this process, to be timed around candidates."""

    def __init__(self) -> None:
        func, target = _compute(), Target.parse("llvm")
        rng = np.random.default_rng(0)
        shape = (_ORDER, _ORDER)
        self._arrays = [_aligned(rng.standard_normal(shape).astype(np.float32)) for _ in func.params]
        self._call = build(default_schedule(func, target), target=target).bind(*self._arrays)
        self._calls = 1
        self._calls = self._enough()

    def seconds(self, clock: Callable[[], float] = time.thread_time) -> float | None:
        """Of one call, in processor time of this thread; None where the clock does not move."""
        self._sample(clock)  # what ran before has emptied the caches
        best = min(self._sample(clock) for _ in range(BASELINE_SAMPLES))
        return best / self._calls if best > 0 else None

    def _sample(self, clock: Callable[[], float]) -> float:
        start = clock()
        for _ in repeat(None, self._calls):
            self._call()
        return clock() - start

    def _enough(self) -> int:
        """Calls that fill a sample."""
        self._call()
        while (took := self._sample(time.thread_time)) < BASELINE_SECONDS / 2 and self._calls < _MOST_CALLS:
            self._calls *= 2
        return max(1, round(self._calls * BASELINE_SECONDS / took)) if took > 0 else self._calls


def _compute() -> PrimFunc:
    a, b = (te.placeholder((_ORDER, _ORDER), "float32") for _ in range(2))
    k = te.reduce_axis((0, _ORDER))
    product = te.compute((_ORDER, _ORDER), lambda i, j: te.sum(a[i, k] * b[k, j], axis=k))
    return te.create_prim_func([a, b, product])


def _memory() -> PrimFunc:
    a, b = (te.placeholder((_LENGTH,), "float32") for _ in range(2))
    return te.create_prim_func([a, b, te.compute((_LENGTH,), lambda i: a[i] * 0.5 + b[i])])


def _aligned(values: Array) -> Array:
    """A copy that begins at a multiple of 64, so that every process times the same accesses."""
    copy: Array = aligned_bytes(values.nbytes).view(np.float32).reshape(values.shape)
    copy[...] = values
    return copy
