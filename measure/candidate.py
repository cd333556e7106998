"""The candidate itself: a schedule replayed, built, checked against the reference, and only then timed."""

from __future__ import annotations

import importlib
import json
import pickle
import pkgutil
import signal
from collections import OrderedDict
from dataclasses import replace
from functools import lru_cache, partial
from typing import Any

import numpy as np

from .. import compiler
from ..compiler import te
from ..compiler.build import build
from ..compiler.codegen.errors import BuildError
from ..compiler.interpret import NotPlain, check
from ..compiler.ir import PrimFunc, VerifyError, from_json, to_json, within_limits
from ..compiler.prebuilt import Prebuilt, can_prebuild, prebuild
from ..compiler.runtime.pool import parallel_symbols, start_threads
from ..compiler.schedule import Schedule, ScheduleError, Trace, TraceError
from ..compiler.target import Target, TargetError
from ..compiler.target.hardware import usable_cores
from ..compiler.target.runs import refusal
from .checked_timing import Bench, check_and_time, failed
from .conditions import Sensors
from .golden import BaselineKernel
from .messages import Failure, MeasureInput, MeasureResult
from .program import Body, Split, Stage
from .reference import Reference, allowance, confined
from .words import clip

Array = np.ndarray[Any, Any]

# Two jobs that take turns keep their references, and so do the golden kernels; one of a large layer takes
# some 100 MB.
_KEPT_REFERENCES = 6
_KEPT_BYTES = 1 << 30
_KEPT_FAILURES = 64

Key = tuple[str, int]

_NO_CODE = (ScheduleError, TraceError, VerifyError, BuildError)


class Candidate:
    """The program that a Runner runs unless told otherwise."""

    def __init__(self) -> None:
        _warm_up()
        self._bench = Bench(Sensors(), _baseline())
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
            return Split(_build, partial(_run, item, target, reference, self._bench))
        return partial(_measure, item, target, reference, self._bench)

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


def _baseline() -> BaselineKernel | None:
    try:
        return BaselineKernel()
    except (TargetError, *_NO_CODE):  # a machine that the default target has no code for
        return None


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
    item: MeasureInput, target: Target, reference: Reference, bench: Bench, code: bytes, stage: Stage
) -> MeasureResult:
    if (reason := _lacks_threads(target)) is not None:
        return failed(item, "build_error", reason)
    built: Prebuilt = pickle.loads(code)
    try:
        module = built.load()
    except _NO_CODE as error:
        return MeasureResult.failed(item, _no_code(error))
    item = replace(item, best_seconds=stage.running())
    return check_and_time(item, module, reference, alarm=_alarm, bench=bench)


def _measure(
    item: MeasureInput, target: Target, reference: Reference, bench: Bench, stage: Stage
) -> MeasureResult:
    """Builds and runs, for kinds of targets whose code stays in the process that compiled it."""
    if (reason := refusal(target) or _lacks_threads(target)) is not None:
        return failed(item, "build_error", reason)
    try:
        module = build(_scheduled(item, reference.func), target=target)
    except _NO_CODE as error:
        return MeasureResult.failed(item, _no_code(error))
    if module.device.kind != "cpu":
        return failed(item, "build_error", f"kernels on {module.device} are not measured: only the CPU's are")
    item = replace(item, best_seconds=stage.running())
    return check_and_time(item, module, reference, alarm=_alarm, bench=bench)


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
