"""What a workload must compute: inputs and expected outputs, made in a confined child and shared with all
candidates."""

from __future__ import annotations

import mmap
import os
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import IO, Any, Self

import numpy as np

from ..compiler.interpret import Expected, NotPlain, expected, footprint, plain_problem, random_inputs
from ..compiler.ir import Buffer, PrimFunc, from_json
from . import watch
from .machine import memory_of_this_machine
from .messages import Failure, FailureKind, Limits, MeasureInput, MeasureResult
from .program import PREPARE_SECONDS, Stage
from .words import clip, size_of

Array = np.ndarray[Any, Any]

REFERENCE_BYTES = 2 << 30
"""What a reference may take at most, with all that computing it needs, unless a candidate may take more."""

_MACHINE_SHARE = 0.5
_ALIGNMENT = 64


@dataclass(frozen=True, slots=True, eq=False)
class Reference:
    """A workload with inputs that no candidate has touched, poisoned outputs, and what must come out."""

    func: PrimFunc
    arrays: tuple[Array, ...]
    expected: Expected

    @classmethod
    def of(cls, workload: dict[str, Any], seed: int) -> Self:
        """Computed here and now, without limits. Raises VerifyError, and NotPlain for a program that is
        scheduled already."""
        func = from_json(workload)
        arrays = tuple(random_inputs(func, seed))
        return cls(func, arrays, expected(func, arrays))

    @property
    def nbytes(self) -> int:
        """The memory it keeps."""
        return sum(a.nbytes for a in (*self.arrays, *self.expected.outputs, *self.expected.tolerances))


def confined(item: MeasureInput, *, seconds: float = PREPARE_SECONDS) -> Reference | Failure:
    """The reference of an item's workload, computed in a forked child of at most `seconds` and of the memory
    that `allowance` says; or why there is none. The caller must have one thread.

    A limit it runs into is the workload's own failure: no candidate of it can be measured here. Out of memory
    is a build_error, as nothing was built; out of time a run_timeout, as this is a part of the check. Raises
    VerifyError and NotPlain.
    """
    func = from_json(item.workload)
    if (problem := plain_problem(func)) is not None:
        raise NotPlain(f"{func.name!r} is not an unscheduled program: {problem}")
    memory = allowance(item.limits)
    need = footprint(func)
    if need.total > memory:
        return _too_large(f"needs {size_of(need.total)}", memory)
    arena = _Arena(func)
    try:
        limits = Limits(build_seconds=seconds, run_seconds=seconds, memory_bytes=memory)
        result = watch.measure(partial(_fill, item, func, arena.views()), replace(item, limits=limits))
        if result.failure is not None:
            return _translated(result.failure, memory, seconds)
        return arena.reference(func)
    finally:
        arena.close()


def allowance(limits: Limits) -> int:
    """The bytes a reference may take: as many as a candidate or REFERENCE_BYTES, and no more than half of
    what this machine has."""
    wanted = max(limits.memory_bytes, REFERENCE_BYTES)
    return min(wanted, int(memory_of_this_machine() * _MACHINE_SHARE))


def _fill(item: MeasureInput, func: PrimFunc, views: Sequence[Array], stage: Stage) -> MeasureResult:
    """Runs in the child. Its time says nothing, but a result has one."""
    arrays = random_inputs(func, item.input_seed)
    want = expected(func, arrays)
    for view, array in zip(views, (*arrays, *want.outputs, *want.tolerances), strict=True):
        view[...] = array
    return MeasureResult(item.item, item.attempt, seconds=1.0, samples=(1.0,))


def _hopeless(kind: FailureKind, what: str, limit: float) -> Failure:
    message = f"no candidate can be measured: the reference of the workload {what}"
    return Failure(kind, message, limit=limit, of_workload=True)


def _too_large(what: str, memory: int) -> Failure:
    return _hopeless("build_error", f"{what}, and the limit is {size_of(memory)}", float(memory))


def _translated(failure: Failure, memory: int, seconds: float) -> Failure:
    """A failure of the child in terms of the reference."""
    if failure.kind == "build_timeout":
        told = _hopeless("run_timeout", f"takes longer than its limit of {seconds:g} s", seconds)
    elif failure.limit is not None:
        told = _too_large("needs more than was reckoned", memory)
    else:
        words = f"the reference of the workload was not computed: {failure.message}"
        told = Failure("build_error", clip(words))
    return replace(told, elapsed=failure.elapsed, last_words=failure.last_words)


class _Arena:
    """Pages for a reference's arrays: the child that fills them and this process share them; what is made of
    them afterwards is private to whoever writes."""

    def __init__(self, func: PrimFunc) -> None:
        outputs = func.outputs
        self._kinds = [(p, p.dtype.numpy) for p in func.params]
        self._kinds += [(o, np.dtype(np.float64) if o.dtype.is_float else o.dtype.numpy) for o in outputs]
        self._kinds += [(o, np.dtype(np.float64)) for o in outputs]
        self._offsets, end = [], 0
        for buffer, dtype in self._kinds:
            self._offsets.append(end)
            end += -(-_count(buffer) * dtype.itemsize // _ALIGNMENT) * _ALIGNMENT
        self._size = max(end, 1)
        self._file = _anonymous_file()
        os.ftruncate(self._file.fileno(), self._size)

    def views(self) -> list[Array]:
        """Arrays to be filled, shared with children forked from now on."""
        return self._arrays(mmap.mmap(self._file.fileno(), self._size))

    def reference(self, func: PrimFunc) -> Reference:
        """What was filled in, in memory of this process: unlike a file's pages, children find it mapped, and
        large arrays in large pages, which saves each of them thousands of faults."""
        arrays = [view.copy() for view in self.views()]
        outputs, n, m = func.outputs, len(func.params), len(func.outputs)
        want = Expected(
            tuple(arrays[n : n + m]),
            tuple(arrays[n + m :]),
            tuple(o.name for o in outputs),
            tuple(func.params.index(o) for o in outputs),
        )
        return Reference(func, tuple(arrays[:n]), want)

    def _arrays(self, pages: mmap.mmap) -> list[Array]:
        return [
            np.frombuffer(pages, dtype, _count(buffer), offset).reshape([p.const or 0 for p in buffer.shape])
            for (buffer, dtype), offset in zip(self._kinds, self._offsets, strict=True)
        ]

    def close(self) -> None:
        """The pages live on as long as arrays over them."""
        self._file.close()


def _count(buffer: Buffer) -> int:
    count = 1
    for extent in buffer.shape:
        count *= extent.const or 0
    return count


def _anonymous_file() -> IO[bytes]:
    if sys.platform == "linux":
        return os.fdopen(os.memfd_create("tilewright-reference"), "r+b", buffering=0)
    return tempfile.TemporaryFile(buffering=0)
