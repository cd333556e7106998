"""Tasks from programs: where the tuner meets the compiler."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import rfc8785

from ..compiler import ir
from ..compiler.codegen.version import CODEGEN_VERSION
from ..compiler.ir.structure import structure
from ..compiler.schedule import ScheduleError, Trace, TraceError
from ..compiler.space import (
    FEATURE_SCHEMA,
    KnobConstraint,
    SpaceError,
    SpaceFunction,
    default_configs,
    estimated_cycles,
    features_of_schedule,
    space_of,
    user_space,
)
from ..compiler.target import Target, TargetError
from ..db.records import Job
from ..db.store import CatalogStore
from .budget import Budget
from .errors import NotReplayable
from .task import Replayed, Structure, TuningTask

__all__ = ["budget_of", "open_task", "reopen_task", "require_measured"]


def open_task(
    func: ir.PrimFunc,
    target: Target,
    space_function: SpaceFunction | None = None,
    constraints: Sequence[KnobConstraint] = (),
) -> TuningTask:
    """The task of tuning a program for a target: within the space that the rules make, or within that of a
    user's function. Raises TypeError for what is no program, SpaceError and ScheduleError."""
    if not isinstance(func, ir.PrimFunc):
        raise TypeError(f"what is tuned is a PrimFunc, such as te.create_prim_func makes, not {func!r:.80}")
    if space_function is None and constraints:
        raise SpaceError("constraints are on the knobs of a space of your own; give space= as well")
    space = (
        space_of(func, target) if space_function is None else user_space(func, space_function, constraints)
    )
    chosen = [(sketch.name, row) for sketch, rows in default_configs(space, target) for row in rows]
    return TuningTask(
        name=func.name,
        workload=ir.to_json(func),
        script=ir.script(func),
        target=target.to_json(),
        target_key=target.key,
        space=space,
        codegen=CODEGEN_VERSION,
        feature_schema=FEATURE_SCHEMA,
        flops=ir.flop_count(func) or None,
        space_errors=space.errors,
        defaults=[(name, tuple(int(value) for value in row)) for name, row in chosen],
        costs=lambda features: estimated_cycles(features, target),
        structure=Structure(*structure(func)),
        structure_of=_structure_of,
        replay=lambda trace: _replayed(trace, func),
        open_other=_open_other,
    )


def require_measured(target: Target) -> Target:
    """Raises TargetError for a target whose candidates cannot be measured."""
    if target.unmeasured is not None:
        raise TargetError(target.unmeasured)
    return target


def reopen_task(job: Job, store: CatalogStore) -> TuningTask:
    """The task of a stored job. Raises VerifyError or TargetError where this version does not read what
    another one has stored."""
    program = json.loads(store.workload(job.workload).program)
    description = json.loads(store.target(job.target).description)
    return open_task(ir.from_json(program), Target.parse(description))


def budget_of(job: Job) -> Budget:
    """What a stored job may use."""
    return Budget(job.trials, job.seconds, job.target_seconds, job.patience)


def _open_other(program: str, target: str) -> TuningTask | None:
    try:
        return open_task(ir.from_json(json.loads(program)), Target.parse(json.loads(target)))
    except (ir.VerifyError, TargetError, ScheduleError, ValueError):
        return None


def _structure_of(program: Mapping[str, Any]) -> Structure | None:
    """That of a stored program; None where this version does not read it."""
    try:
        return Structure(*structure(ir.from_json(program)))
    except ir.VerifyError:
        return None


def _replayed(trace: Mapping[str, Any], func: ir.PrimFunc) -> Replayed:
    try:
        read = Trace.from_json(trace)
        if read.knobs:
            raise NotReplayable(f"the trace leaves {', '.join(map(repr, read.knobs))} open: resolve it first")
        schedule = read.apply(func)
    except (ScheduleError, TraceError) as error:
        raise NotReplayable(f"the trace does not apply to {func.name!r}: {error}") from error
    text = rfc8785.dumps(read.to_json()).decode()
    features = features_of_schedule(schedule.func)
    return Replayed(text, read.canonical_json(), np.asarray(features, dtype=np.float32))
