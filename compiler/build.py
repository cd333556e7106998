"""Programs and schedules made callable."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial
from typing import Any

from .codegen.errors import BuildError
from .codegen.export import Export
from .codegen.lowered import Lowered
from .codegen.registry import CodeGenerator, assembly_of, code_generator
from .ir import IRModule, PrimFunc, workload_key
from .runtime import Function, LoadedCode, Module, SourceInfo, UnloadedCode
from .runtime.device_api import Device, device
from .schedule import Schedule, ScheduleError, Trace, TraceError
from .schedule_source import ScheduleSource
from .target import Target, detect
from .target.registry import backend
from .target.runs import refusal

TargetSpec = str | dict[str, object] | Target


Buildable = PrimFunc | Schedule


def build(
    func: Buildable | IRModule | Mapping[str, Buildable],
    target: TargetSpec = "llvm",
    schedules: ScheduleSource | None = None,
    strict: bool = False,
    constants: Mapping[str, Any] | None = None,
) -> Module:
    """A module that runs the program on arrays; of an IRModule or a mapping, its functions by their names.

    A Schedule is built as it stands. A PrimFunc gets its best-known schedule from `schedules` if there is
    one for its workload, the target and this machine's hardware, and the default schedule otherwise;
    `Module.schedule_source` says which and why. A source that cannot be reached, or a record whose trace no
    longer builds, means the default schedule, or with `strict` an error: ConnectionError, BuildError.

    `constants` are arrays by the names of the parameters that were declared constant, all of them: their
    contents are copied, and packed as the kernel reads them, and calls take the other arrays; see
    `Module.with_constants`. Without them a call takes all arrays, and packs constants each time.

    A module for another machine can be looked at and exported, but not called. Raises TargetError, before
    anything is lowered, for a kind of target that has no code generator, and BuildError for what has no code.
    """
    target = Target.parse(target)
    generator = code_generator(target.kind)
    if isinstance(func, IRModule):
        func = func.functions
    if schedules is not None and not hasattr(schedules, "best"):
        raise TypeError(f"schedules is what tilewright.connect returns, got {type(schedules).__name__}")
    named = _named(func)
    built = [_build_one(name, f, target, generator, schedules, strict) for name, f in named.items()]
    _check_symbols([function for function, _ in built])
    functions = {function.name: function for function, _ in built}
    module = Module(functions, Export(generator, tuple(lowered for _, lowered in built), target))
    return module if constants is None else module.with_constants(constants)


def _named(func: object) -> dict[str, Buildable]:
    if isinstance(func, PrimFunc | Schedule):
        return {(func if isinstance(func, PrimFunc) else func.func).name: func}
    if not isinstance(func, Mapping):
        raise TypeError(
            f"build takes a PrimFunc, a Schedule, an IRModule or a mapping of them, got {type(func).__name__}"
        )
    if not func:
        raise TypeError("build takes at least one function, got none")
    for name, f in func.items():
        if not isinstance(name, str) or not isinstance(f, PrimFunc | Schedule):
            raise TypeError(
                f"build: {name!r} is a {type(f).__name__}, not a PrimFunc or a Schedule by its name"
            )
        if not name.isidentifier():
            raise ValueError(f"build: a function's name must be an identifier, got {name!r}")
    return dict(func)


def _check_symbols(functions: list[Function]) -> None:
    taken: dict[str, str] = {}
    for f in functions:
        for symbol in (f.symbol, *([f.pack.symbol] if f.pack else ())):
            if (other := taken.setdefault(symbol, f.name)) != f.name:
                raise BuildError(
                    f"the functions {other!r} and {f.name!r} would both be {symbol!r} in the code"
                )


Built = tuple[Function, Lowered]


def _build_one(
    name: str,
    func: Buildable,
    target: Target,
    generator: CodeGenerator,
    schedules: ScheduleSource | None,
    strict: bool,
) -> Built:
    compile_ = partial(_compile, name, target, generator)
    if isinstance(func, Schedule):
        return compile_(func, SourceInfo("scheduled", "built as it stands"))
    default = partial(_default, compile_, func, target)
    if schedules is None:
        return default("no schedules were given")
    workload, hardware = workload_key(func), detect().key
    try:
        known = schedules.best(workload, target.key, hardware)
    except ConnectionError as e:
        if strict:
            raise
        return default(f"unreachable: {e}")
    if known is None:
        reason = f"no record for workload {workload}, target {target.key}, hardware {hardware}"
        return default(reason)
    try:
        schedule = Trace.from_json(json.loads(known.trace)).apply(func)
        return compile_(schedule, SourceInfo(known.kind, known.reason, known))
    except (ScheduleError, TraceError, BuildError, json.JSONDecodeError, RecursionError) as e:
        reason = f"the best-known schedule no longer applies: {_first_line(e)}"
        if strict:
            raise BuildError(reason) from e
        return default(reason)


def _default(
    compile_: Callable[[Schedule, SourceInfo], Built], func: PrimFunc, target: Target, reason: str
) -> Built:
    """The first default schedule that has code; the reason names why one before it had none."""
    from .space import default_schedules

    refused: BuildError | None = None
    for schedule in default_schedules(func, target):
        try:
            return compile_(schedule, SourceInfo("default", reason))
        except BuildError as e:
            if refused is None:
                refused = e
                reason += f"; a schedule before this one has no code: {_first_line(e)}"
    assert refused is not None
    raise refused


def _compile(
    name: str, target: Target, generator: CodeGenerator, schedule: Schedule, source: SourceInfo
) -> Built:
    func = schedule.func if schedule.func.name == name else replace(schedule.func, name=name)
    lowered = generator.lower(func, target)
    reason = refusal(target)
    loaded: LoadedCode
    if reason is None:
        loaded = generator.load(lowered, target)
    else:
        loaded = UnloadedCode(lowered.text, target, reason, partial(assembly_of, lowered.text, target))
    return function_of(name, lowered, loaded, str(func), source), lowered


def function_of(name: str, lowered: Lowered, loaded: LoadedCode, script: str, source: SourceInfo) -> Function:
    """The function that loaded code is called as."""
    return Function(
        name,
        lowered.params,
        lowered.workspaces,
        loaded,
        symbol=lowered.name,
        sizes=lowered.sizes,
        script=script,
        schedule_source=source,
        device=_device(loaded.target),
        pack=lowered.pack,
    )


def _device(target: Target) -> Device:
    """Where the arguments are: the CPU's memory, or the device of the kind, by its attribute `device`."""
    if backend(target.kind).device is None:
        return device()
    return device(target.kind, dict(target.attributes).get("device", 0))


def _first_line(error: Exception) -> str:
    return str(error).split("\n", 1)[0]
