"""The composition root: the real compiler behind the service's seams, the store, the shepherd, the
application."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Any

import rfc8785

from ..compiler import CODEGEN_VERSION, interpret, ir, roofline, topi
from ..compiler.schedule import ScheduleError, Trace, TraceError
from ..compiler.target import Hardware, Target, TargetError
from ..db.schedule_store import ScheduleStore
from . import judging
from .workloads import CheckedRecord, Near, SpecError, TargetSpec, Workload, check_knobs


def workload_key_of(program: str) -> str:
    """The key of a stored program. Raises ValueError for a text that is none."""
    try:
        return ir.workload_key(ir.from_json(json.loads(program)))
    except (ir.TypeMismatch, KeyError, RecursionError) as error:
        raise ValueError(f"is no program: {error}") from error


class CompilerParser:
    """WorkloadParser by the compiler."""

    def workload(self, spec: Mapping[str, Any]) -> Workload:
        func = self._read(spec)
        return Workload(
            key=ir.workload_key(func),
            name=func.name,
            program=rfc8785.dumps(ir.to_json(func)).decode(),
            script=ir.script(func),
            flops=float(ir.flop_count(func)) or None,
        )

    def suggestion(self, workload: Workload, said: Mapping[str, Any]) -> None:
        if "steps" not in said:
            check_knobs(said)
            return
        try:
            trace = Trace.from_json(dict(said))
            if trace.knobs:
                raise SpecError(f"the trace leaves {', '.join(trace.knobs)} open: resolve it first", "/steps")
            trace.apply(ir.from_json(json.loads(workload.program)))
        except TraceError as error:
            raise SpecError(error.message, error.pointer) from error
        except ScheduleError as error:
            raise SpecError(f"the trace does not apply to {workload.name!r}: {error}", "/steps") from error

    def target(self, spec: str | Mapping[str, Any], facts: Mapping[str, Any] | None) -> TargetSpec:
        hardware = None if facts is None else Hardware.of(facts)
        try:
            target = Target.parse(spec, hardware)
        except TargetError as error:
            raise SpecError(str(error)) from error
        if hardware is not None and (lacks := lacking(target, hardware)):
            raise SpecError(
                f"code for {target.mcpu} cannot run on hardware {hardware.key[:12]} "
                f"({hardware.facts.get('model_name') or 'unnamed'}), which lacks {', '.join(lacks)}"
            )
        return TargetSpec(target.key, rfc8785.dumps(target.to_json()).decode(), target.unmeasured)

    def hardware_key(self, facts: Mapping[str, Any]) -> str:
        try:
            return Hardware.of(facts).key
        except rfc8785.CanonicalizationError as error:
            raise SpecError(f"facts must be plain JSON values: {error}") from error

    def flops(self, program: str) -> float | None:
        return float(ir.flop_count(ir.from_json(json.loads(program)))) or None

    @lru_cache(maxsize=1024)  # noqa: B019 - one parser lives as long as its server
    def least_seconds(self, program: str, target: str, facts: str) -> float:
        func = ir.from_json(json.loads(program))
        return roofline.least_seconds(func, json.loads(target), json.loads(facts))

    def why_not(self, program: str, target: str, trace: str) -> str | None:
        return judging.why_not(program, target, trace)

    def nearest(
        self,
        source: ScheduleStore,
        program: str,
        target: str,
        hardware: str,
        facts: Mapping[str, Any],
        allow: Sequence[str],
    ) -> tuple[Near | None, str]:
        return judging.nearest(source, program, target, hardware, facts, allow)

    def default_trace(self, program: str, target: str) -> str:
        return judging.default_trace(program, target)

    def record(
        self,
        program: Mapping[str, Any],
        target: Mapping[str, Any],
        facts: Mapping[str, Any],
        trace: Mapping[str, Any],
        codegen: str,
    ) -> CheckedRecord:
        return judging.checked_record(program, target, facts, trace, codegen)

    @lru_cache(maxsize=1)  # noqa: B019 - one parser lives as long as its server
    def operators(self) -> Mapping[str, Mapping[str, Any]]:
        return topi.schemas()

    def codegen_version(self) -> str:
        return CODEGEN_VERSION

    def _read(self, spec: Mapping[str, Any]) -> ir.PrimFunc:
        """A program, verified wherever it came from: what a worker runs in the end is native code."""
        try:
            if "op" in spec:
                return topi.create(dict(spec))
            if "tilewright" in spec:
                func = ir.from_json(dict(spec))
                problem = interpret.plain_problem(func)
                if problem is not None:
                    raise SpecError(f"a workload is a program as te makes it, unscheduled: {problem}")
                if func.sizes:
                    names = ", ".join(map(repr, func.sizes))
                    raise SpecError(f"a search needs numbers: bind {names} or give sizes", "/sizes")
                return func
        except (topi.OperatorError, ir.VerifyError) as error:
            raise SpecError(error.message, error.pointer) from error
        raise SpecError(
            "a workload is an operator, such as "
            '{"op": "matmul", "m": 64, "n": 64, "k": 64, "dtype": "float32"}, '
            "or a program as canonical IR JSON, which has a key 'tilewright'; got an object with "
            f"{'the keys ' + ', '.join(sorted(spec)[:8]) if spec else 'no keys'}"
        )


def lacking(target: Target, hardware: Hardware) -> list[str]:
    """What a machine lacks to run code for the target: the architecture, or features; nothing where it does
    not say."""
    if not target.mcpu:  # a kind without processors: its plug-in knows
        return []
    architecture = hardware.facts.get("architecture")
    if architecture is not None and architecture != target.architecture:
        return [target.architecture]
    if hardware.facts.get("features") is None:
        return []
    try:
        return sorted(set(target.features) - hardware.cpu.features)
    except TargetError:  # the facts name no processor that is known: nobody can say what it lacks
        return []
