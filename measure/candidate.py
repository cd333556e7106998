"""The candidate itself: a schedule replayed, built, checked against the reference, and only then timed."""

from __future__ import annotations

import importlib
import json
import math
import pickle
import pkgutil
import signal
import time
from collections import OrderedDict
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import lru_cache, partial
from typing import Any, Protocol

import numpy as np

from .. import compiler
from ..compiler import te
from ..compiler.build import build
from ..compiler.codegen.errors import BuildError
from ..compiler.interpret import NotPlain, check
from ..compiler.ir import PrimFunc, VerifyError, from_json, to_json, within_limits
from ..compiler.prebuilt import Prebuilt, can_prebuild, prebuild
from ..compiler.runtime import ParamInfo
from ..compiler.runtime.arrays import aligned_bytes
from ..compiler.runtime.pool import parallel_symbols, start_threads
from ..compiler.schedule import Schedule, ScheduleError, Trace, TraceError
from ..compiler.target import Target, TargetError
from ..compiler.target.hardware import usable_cores
from ..compiler.target.runs import refusal
from .messages import Failure, FailureKind, MeasureInput, MeasureResult
from .program import Body, Split, Stage
from .reference import Reference, allowance, confined
from .timing import BelowResolution, longest_first_call, thread_interruptions, time_call
from .words import clip

Array = np.ndarray[Any, Any]

# Two jobs that take turns keep their references; one of a large layer takes some 100 MB.
_KEPT_REFERENCES = 4
_KEPT_BYTES = 1 << 30
_KEPT_FAILURES = 64

Key = tuple[str, int]

_NO_CODE = (ScheduleError, TraceError, VerifyError, BuildError)


class Kernel(Protocol):
    """What is needed of a built Module."""

    @property
    def params(self) -> Sequence[ParamInfo]: ...

    def bind(self, *arrays: Array) -> Callable[[], None]: ...


class Candidate:
    """The program that a Runner runs unless told otherwise."""

    def __init__(self) -> None:
        _warm_up()
        self._references: OrderedDict[Key, Reference] = OrderedDict()
        self._hopeless: OrderedDict[tuple[Key, int], Failure] = OrderedDict()

    def prepare(self, item: MeasureInput) -> Body | Split | Failure:
        """Computes the reference once per workload and seed: every child finds it in shared pages. That a
        workload has none is remembered too."""
        try:
            target = Target.parse(item.target)
            if (reason := _lacks_cores(target)) is not None:
                return Failure("build_error", reason, of_workload=True)
            if target.num_threads > 1:
                parallel_symbols()  # compiled once, for every child
            reference = self._reference(item)
            is_split = can_prebuild(target)
        except (VerifyError, NotPlain, TargetError) as error:
            return Failure("build_error", clip(str(error)))
        if isinstance(reference, Failure):
            return reference
        if is_split:
            return Split(_build, partial(_run, item, target, reference))
        return partial(_measure, item, target, reference)

    def _reference(self, item: MeasureInput) -> Reference | Failure:
        key = (json.dumps(item.workload, sort_keys=True), item.input_seed)
        if (known := self._references.get(key)) is not None:
            self._references.move_to_end(key)
            return known
        memory = allowance(item.limits)
        if (failure := self._hopeless.get((key, memory))) is not None:
            return replace(failure, elapsed=0.0)
        computed = confined(item)
        if isinstance(computed, Reference):
            self._references[key] = computed
            self._make_room()
        elif computed.of_workload:
            self._hopeless[key, memory] = computed
            while len(self._hopeless) > _KEPT_FAILURES:
                self._hopeless.popitem(last=False)
        return computed

    def _make_room(self) -> None:
        """Forgets the references used longest ago, the latest one excepted."""
        while len(self._references) > 1 and (
            len(self._references) > _KEPT_REFERENCES
            or sum(reference.nbytes for reference in self._references.values()) > _KEPT_BYTES
        ):
            self._references.popitem(last=False)


def _warm_up() -> None:
    """Loads all that a child may need, which cannot read modules as the user it becomes: every module of the
    compiler, and, by building one small kernel, LLVM with its code generator."""
    for module in pkgutil.walk_packages(compiler.__path__, f"{compiler.__name__}."):
        importlib.import_module(module.name)
    a = te.placeholder((4, 4), "float32")
    k = te.reduce_axis((0, 4))
    func = te.create_prim_func([a, te.compute((4, 4), lambda i, j: te.sum(a[i, k] * a[k, j], axis=k))])
    # The buffer of a matrix product stays once it is there; a child without room for it would try for ever.
    np.matmul(np.ones((128, 128)), np.ones((128, 128)))
    reference = Reference.of(to_json(func), 0)
    build(Schedule(func)).bind(*reference.arrays)()
    check(reference.expected, reference.arrays)


def _build(item: MeasureInput) -> bytes | Failure:
    """The code of a candidate, pickled: who unpickles it runs it, and is confined like who made it."""
    target = Target.parse(item.target)
    if (reason := refusal(target)) is not None:
        return Failure("build_error", clip(reason))
    try:
        func = _parsed(json.dumps(item.workload, sort_keys=True))
        built = prebuild(_scheduled(item, func), target)
    except _NO_CODE as error:
        return _no_code(error)
    return pickle.dumps(built, pickle.HIGHEST_PROTOCOL)


def _run(
    item: MeasureInput, target: Target, reference: Reference, code: bytes, stage: Stage
) -> MeasureResult:
    if (reason := _lacks_threads(target)) is not None:
        return _failed(item, "build_error", reason)
    built: Prebuilt = pickle.loads(code)
    try:
        module = built.load()
    except _NO_CODE as error:
        return MeasureResult.failed(item, _no_code(error))
    item = replace(item, best_seconds=stage.running())
    return check_and_time(item, module, reference, alarm=_alarm)


def _measure(item: MeasureInput, target: Target, reference: Reference, stage: Stage) -> MeasureResult:
    """Builds and runs, for kinds of targets whose code stays in the process that compiled it."""
    if (reason := refusal(target) or _lacks_threads(target)) is not None:
        return _failed(item, "build_error", reason)
    try:
        module = build(_scheduled(item, reference.func), target=target)
    except _NO_CODE as error:
        return MeasureResult.failed(item, _no_code(error))
    if module.device.kind != "cpu":
        return _failed(
            item, "build_error", f"kernels on {module.device} are not measured: only the CPU's are"
        )
    item = replace(item, best_seconds=stage.running())
    return check_and_time(item, module, reference, alarm=_alarm)


def _scheduled(item: MeasureInput, func: PrimFunc) -> Schedule:
    """The program that was proved right, with steps done that keep it so; what they make must still fit."""
    schedule = Trace.from_json(item.trace).apply(func)
    within_limits(schedule.func)
    return schedule


@lru_cache(maxsize=_KEPT_REFERENCES)
def _parsed(workload: str) -> PrimFunc:
    return from_json(json.loads(workload))


def _no_code(error: Exception) -> Failure:
    return Failure("constraint" if isinstance(error, ScheduleError) else "build_error", clip(str(error)))


def _alarm(seconds: float) -> None:
    """Ends this process by SIGPROF after so much more processor time of its threads; 0: never."""
    signal.setitimer(signal.ITIMER_PROF, seconds)


def _lacks_cores(target: Target) -> str | None:
    """Why a kernel for several threads should not be measured here."""
    wanted, cores = target.num_threads, usable_cores()
    if wanted <= cores:
        return None
    return f"num-threads={wanted}: this worker may use {cores} cores, so that its times would mean nothing"


def _lacks_threads(target: Target) -> str | None:
    """Why it cannot be, for want of threads; they were started before the limits were set."""
    wanted = target.num_threads
    if wanted == 1 or (there := start_threads(wanted)) >= wanted:
        return None
    return f"num-threads={wanted}: the system gives this worker only {there} threads"


def check_and_time(
    item: MeasureInput,
    kernel: Kernel,
    reference: Reference,
    alarm: Callable[[float], object] = lambda seconds: None,
) -> MeasureResult:
    """Runs a kernel on copies of the reference's arrays. Its time counts only if its output is right, and if
    it then leaves its inputs alone and gives the same output at every call.

    `alarm` is set, in seconds of processor time, for the first call of a candidate that has a best to beat:
    nothing else can end a call that is many times as slow.
    """
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
        return _failed(item, "wrong_output", checked.message, error)
    once = [
        array.copy() if param.is_output else pristine
        for param, pristine, array in zip(kernel.params, reference.arrays, arrays, strict=True)
    ]
    try:
        timing = time_call(
            call,
            first=first,
            best=item.best_seconds,
            clock=clock,
            interruptions=thread_interruptions if is_parallel else None,
        )
    except BelowResolution as below:
        return _failed(item, "run_error", str(below))
    if reason := _disturbed(kernel, once, arrays):
        return _failed(item, "wrong_output", reason, error)
    return MeasureResult(
        item.item,
        item.attempt,
        timing.seconds,
        timing.samples,
        calls=timing.calls,
        censored=timing.censored,
        disturbed=timing.disturbed,
        error=error,
    )


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


def _failed(item: MeasureInput, kind: FailureKind, message: str, error: float | None = None) -> MeasureResult:
    failure = Failure(kind, clip(message))
    return MeasureResult(item.item, item.attempt, error=error, failure=failure)


def _laid_out(array: Array) -> Array:
    """A copy that begins 16 bytes behind a multiple of 64: all that NumPy promises to a user, and the same at
    every run. Kernels that load from it directly are up to 15 % slower than from a multiple of 64."""
    block = aligned_bytes(array.nbytes + 64)[16 : 16 + array.nbytes]
    copy: Array = block.view(array.dtype).reshape(array.shape)
    copy[...] = array
    return copy
