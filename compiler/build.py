"""Programs and schedules made callable."""

from __future__ import annotations

import json

from .codegen.c import generator as c_generator
from .codegen.errors import BuildError
from .codegen.llvm.jit import compile_ir
from .codegen.lower import lower
from .codegen.lowered import Lowered
from .ir import PrimFunc, workload_key
from .runtime import LoadedCode, Module, SourceInfo
from .schedule import Schedule, ScheduleError, Trace, TraceError
from .schedule_source import ScheduleSource
from .target import Target, detect

TargetSpec = str | dict[str, object] | Target


def build(
    func: PrimFunc | Schedule,
    target: TargetSpec = "llvm",
    schedules: ScheduleSource | None = None,
    strict: bool = False,
) -> Module:
    """A module that runs the program on NumPy arrays.

    A Schedule is built as it stands. A PrimFunc gets its best-known schedule from `schedules` if there is
    one for its workload, the target and this machine's hardware, and the default schedule otherwise;
    `Module.schedule_source` says which and why. A source that cannot be reached, or a record whose trace no
    longer builds, means the default schedule, or with `strict` an error: ConnectionError, BuildError.
    Raises TargetError, and BuildError for what has no code.
    """
    target = Target.parse(target)
    if isinstance(func, Schedule):
        return _compile(func, target, SourceInfo("scheduled", "built as it stands"))
    if not isinstance(func, PrimFunc):
        raise TypeError(f"build takes a PrimFunc or a Schedule, got {type(func).__name__}")
    if schedules is not None and not hasattr(schedules, "best"):
        raise TypeError(f"schedules is what tilewright.connect returns, got {type(schedules).__name__}")
    if schedules is None:
        return _default(func, target, "no schedules were given")
    workload, hardware = workload_key(func), detect().key
    try:
        known = schedules.best(workload, target.key, hardware)
    except ConnectionError as e:
        if strict:
            raise
        return _default(func, target, f"unreachable: {e}")
    if known is None:
        reason = f"no record for workload {workload}, target {target.key}, hardware {hardware}"
        return _default(func, target, reason)
    try:
        schedule = Trace.from_json(json.loads(known.trace)).apply(func)
        return _compile(schedule, target, SourceInfo(known.kind, known.reason, known))
    except (ScheduleError, TraceError, BuildError, json.JSONDecodeError, RecursionError) as e:
        reason = f"the best-known schedule no longer applies: {_first_line(e)}"
        if strict:
            raise BuildError(reason) from e
        return _default(func, target, reason)


def _default(func: PrimFunc, target: Target, reason: str) -> Module:
    from .space import default_schedule

    return _compile(default_schedule(func, target), target, SourceInfo("default", reason))


def _compile(schedule: Schedule, target: Target, source: SourceInfo) -> Module:
    lowered: Lowered
    loaded: LoadedCode
    if target.kind == "c":
        lowered = c_generator.lower(schedule.func, target)
        loaded = c_generator.load(lowered, target)
    else:
        lowered = lower(schedule.func, target)
        loaded = compile_ir(lowered.text, target, (lowered.name,))
    return Module(
        lowered.name,
        lowered.params,
        lowered.workspaces,
        loaded,
        sizes=lowered.sizes,
        script=str(schedule.func),
        schedule_source=source,
    )


def _first_line(error: Exception) -> str:
    return str(error).split("\n", 1)[0]
