"""Programs and schedules made callable."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from .codegen.errors import BuildError
from .codegen.export import Export
from .codegen.lowered import Lowered
from .codegen.registry import CodeGenerator, assembly_of, code_generator
from .codegen.version import CODEGEN_VERSION
from .ir import IRModule, PrimFunc, workload_key
from .lookup import UNREADABLE, Misses, apply, check_allowed, near, newer
from .runtime import Function, LoadedCode, Module, SourceInfo, UnloadedCode
from .runtime.device_api import Device, device
from .schedule import Schedule
from .schedule_source import KnownSchedule, ScheduleSource
from .target import Hardware, Target, detect
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
    allow: Sequence[str] = (),
    freeze: str | None = None,
) -> Module:
    """A module that runs the program on arrays; of an IRModule or a mapping, its functions by their names.

    A Schedule is built as it stands. A PrimFunc gets its best-known schedule from `schedules` if there is
    one for its workload, the target and this machine's hardware, and the default schedule otherwise;
    `Module.schedule_source` says which and why. A source that cannot be reached, or a record whose trace no
    longer builds, means the default schedule, or with `strict` an error: ConnectionError, BuildError. Such a
    record is reported to the source, which does not serve it again.

    `allow` names what may do where there is none: `same_family`, a schedule of this workload for another
    target or kind of hardware of the same architecture and vendor, where this machine has every feature that
    it needs; `transferred`, one for other hardware, or for a related workload of which no extent differs by
    more than a factor of two, that applies here. `freeze` names a freeze of the source: the schedule is what
    was best-known then.

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
    lookup = None if schedules is None else Lookup(schedules, strict, check_allowed(allow), freeze)
    named = _named(func)
    built = [_build_one(name, f, target, generator, lookup) for name, f in named.items()]
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


@dataclass(frozen=True, slots=True)
class Lookup:
    """Where schedules come from, and which may."""

    source: ScheduleSource
    strict: bool
    allow: tuple[str, ...]
    freeze: str | None


def _build_one(
    name: str, func: Buildable, target: Target, generator: CodeGenerator, lookup: Lookup | None
) -> Built:
    compile_ = partial(_compile, name, target, generator)
    if isinstance(func, Schedule):
        return compile_(func, SourceInfo("scheduled", "built as it stands"))
    default = partial(_default, compile_, func, target)
    if lookup is None:
        return default("no schedules were given")
    workload, hardware = workload_key(func), detect()
    frozen = {} if lookup.freeze is None else {"freeze": lookup.freeze}
    try:
        known = lookup.source.best(workload, target.key, hardware.key, **frozen)
        if known is None:
            return _near(compile_, default, func, target, hardware, lookup)
    except ConnectionError as e:
        if lookup.strict:
            raise
        return default(f"unreachable: {e}")
    if known.kind == "default":
        return default(known.reason)
    try:
        return compile_(apply(known.trace, func), SourceInfo(known.kind, _reason(known), known))
    except (*UNREADABLE, BuildError) as e:
        reason = f"the best-known schedule no longer applies: {_first_line(e)}"
        if lookup.strict:
            raise BuildError(reason) from e
        if newer(known.codegen_version):
            made = f"made by version {known.codegen_version} of the code generator, and this is"
            return default(f"{reason}; trial {known.trial} is skipped: {made} {CODEGEN_VERSION}")
        return default(reason + _reported(lookup.source, known, reason))


def _near(
    compile_: Callable[[Schedule, SourceInfo], Built],
    default: Callable[[str], Built],
    func: PrimFunc,
    target: Target,
    hardware: Hardware,
    lookup: Lookup,
) -> Built:
    """The first allowed schedule of another key that has code here. Raises ConnectionError."""
    misses = Misses()
    for found in near(lookup.source, func, target, hardware.key, hardware.facts, lookup.allow, misses):
        try:
            return compile_(found.schedule, SourceInfo(found.kind, found.reason, found.record))
        except BuildError as e:
            misses.reasons.setdefault(f"trial {found.record.trial}: has no code here: {_first_line(e)}")
    where = "" if lookup.freeze is None else f" in freeze {lookup.freeze!r}"
    key = f"workload {workload_key(func)}, target {target.key}, hardware {hardware.key}"
    reason = f"no record{where} for {key}"
    return default(reason + (f"; {misses}" if misses.reasons else ""))


def _reason(known: KnownSchedule) -> str:
    if known.codegen_version == CODEGEN_VERSION:
        return known.reason
    return (
        f"{known.reason}; its time is of code generator version {known.codegen_version}, "
        f"and this is {CODEGEN_VERSION}"
    )


def _reported(source: ScheduleSource, known: KnownSchedule, reason: str) -> str:
    """Tells the source of a schedule that does not apply; a build does not fail for it."""
    try:
        return f"; trial {known.trial} is {source.report(known.trial, reason)}"
    except ConnectionError as e:
        return f"; trial {known.trial} could not be reported: {e}"


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
