"""Tasks from programs: where the tuner meets the compiler."""

from __future__ import annotations

import json
from collections.abc import Sequence

from ..compiler import ir
from ..compiler.codegen.version import CODEGEN_VERSION
from ..compiler.space import (
    FEATURE_SCHEMA,
    KnobConstraint,
    SpaceError,
    SpaceFunction,
    default_configs,
    space_of,
    user_space,
)
from ..compiler.target import Target
from ..db.records import Job
from ..db.store import CatalogStore
from .budget import Budget
from .task import TuningTask

__all__ = ["budget_of", "open_task", "reopen_task"]


def open_task(
    func: ir.PrimFunc,
    target: Target,
    space_function: SpaceFunction | None = None,
    constraints: Sequence[KnobConstraint] = (),
) -> TuningTask:
    """The task of tuning a program for a target: within the space that the rules make, or within that of a
    user's function."""
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
        defaults=[(name, tuple(int(value) for value in row)) for name, row in chosen],
    )


def reopen_task(job: Job, store: CatalogStore) -> TuningTask:
    """The task of a stored job. Raises VerifyError or TargetError where this version does not read what
    another one has stored."""
    program = json.loads(store.workload(job.workload).program)
    description = json.loads(store.target(job.target).description)
    return open_task(ir.from_json(program), Target.parse(description))


def budget_of(job: Job) -> Budget:
    """What a stored job may use: its target and its patience stand in the request that it was made from."""
    asked = json.loads(job.spec).get("budget", {})
    return Budget(job.trials, job.seconds, asked.get("target_seconds"), asked.get("patience"))
