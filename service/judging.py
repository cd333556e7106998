"""What the compiler says of stored schedules: whether one applies, which one may do, what a record holds."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

import rfc8785

from ..compiler import interpret, ir
from ..compiler.codegen.errors import BuildError
from ..compiler.codegen.registry import code_generator
from ..compiler.ir.structure import structure
from ..compiler.lookup import UNREADABLE, Found, Misses, apply, near
from ..compiler.schedule import Trace
from ..compiler.schedule_source import ScheduleSource
from ..compiler.space import default_schedules
from ..compiler.target import Hardware, Target, TargetError
from ..tuner.candidate import candidate_key
from .workloads import CheckedRecord, Near, SpecError


def why_not(program: str, target: str, trace: str) -> str | None:
    """Why a stored trace makes no code of a stored program for a stored target; None where it does."""
    try:
        func, of = _read(program), Target.parse(json.loads(target))
        code_generator(of.kind).lower(apply(trace, func).func, of)
    except (*UNREADABLE, ir.VerifyError, TargetError, BuildError, ValueError) as error:
        return _first_line(error)
    return None


def nearest(
    source: ScheduleSource,
    program: str,
    target: str,
    hardware: str,
    facts: Mapping[str, Any],
    allow: Sequence[str],
) -> tuple[Near | None, str]:
    """The first schedule of another key that may do and has code, and why others before it did not."""
    func, of, misses = _read(program), Target.parse(json.loads(target)), Misses()
    generator = code_generator(of.kind)
    for found in near(source, func, of, hardware, facts, allow, misses):
        try:
            generator.lower(found.schedule.func, of)
        except BuildError as error:
            misses.reasons.setdefault(f"trial {found.record.trial}: has no code: {_first_line(error)}")
        else:
            return Near(found.kind, found.reason, _trace_of(found), found.record.trial), str(misses)
    return None, str(misses)


def default_trace(program: str, target: str) -> str:
    """The trace of the default schedule that a build would take. Raises SpecError where none has code."""
    func, of = _read(program), Target.parse(json.loads(target))
    refused = "there is none"
    for schedule in default_schedules(func, of):
        try:
            code_generator(of.kind).lower(schedule.func, of)
        except BuildError as error:
            refused = _first_line(error)
        else:
            return rfc8785.dumps(schedule.trace.to_json()).decode()
    raise SpecError(f"no default schedule of {func.name!r} has code: {refused}")


def checked_record(
    program: Mapping[str, Any],
    target: Mapping[str, Any],
    facts: Mapping[str, Any],
    trace: Mapping[str, Any],
    codegen: str,
) -> CheckedRecord:
    """What a record of another store holds: verified, keyed anew, its trace replayed. Raises SpecError with a
    pointer to the part that is wrong."""
    try:
        func = ir.from_json(dict(program))
    except ir.VerifyError as error:
        raise SpecError(error.message, f"/workload/program{error.pointer}") from error
    if (problem := interpret.plain_problem(func)) is not None:
        raise SpecError(f"is no workload: {problem}", "/workload/program")
    try:
        of = Target.parse(dict(target))
    except TargetError as error:
        raise SpecError(str(error), "/target/description") from error
    try:
        kind = Hardware.of(facts)
    except rfc8785.CanonicalizationError as error:
        raise SpecError(f"must be plain JSON values: {error}", "/hardware/facts") from error
    try:
        read = Trace.from_json(dict(trace))
        read.apply(func)
    except UNREADABLE as error:
        raise SpecError(f"does not apply: {_first_line(error)}", "/schedule/trace") from error
    key = ir.workload_key(func)
    return CheckedRecord(
        workload=key,
        name=func.name,
        program=rfc8785.dumps(ir.to_json(func)).decode(),
        script=ir.script(func),
        structure=structure(func)[0],
        target=of.key,
        description=rfc8785.dumps(of.to_json()).decode(),
        hardware=kind.key,
        trace=rfc8785.dumps(read.to_json()).decode(),
        candidate=candidate_key(key, read.canonical_json(), of.key, codegen),
    )


def _trace_of(found: Found) -> str:
    return rfc8785.dumps(found.schedule.trace.to_json()).decode()


def _read(program: str) -> ir.PrimFunc:
    return ir.from_json(json.loads(program))


def _first_line(error: Exception) -> str:
    return str(error).split("\n", 1)[0]
