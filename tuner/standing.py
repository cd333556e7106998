"""Local jobs that stand still in a store, and can go on."""

from __future__ import annotations

import json
from typing import Any

from ..compiler.space import SpaceFunction
from ..db.records import Job
from ..db.store import Store
from ..db.words import LIMITS
from .budget import Budget
from .task import TuningTask

__all__ = ["enlarged", "name_of", "standing_job"]


def name_of(space: SpaceFunction | None) -> str:
    """How a stored job names a user's space; empty for the space that the rules make."""
    if space is None:
        return ""
    return str(getattr(space, "__qualname__", type(space).__qualname__))


def standing_job(
    store: Store, task: TuningTask, hardware: str, seed: int, strategy: str, space: str
) -> Job | None:
    """The newest paused job of this very search; None where there is none. One whose process is gone becomes
    paused by this."""
    store.sweep()
    wanted = (task.workload_key, task.target_key, hardware, seed, strategy, space)
    for job in reversed(store.unfinished_jobs("local")):
        said = (job.workload, job.target, job.hardware, job.seed, job.strategy, space_of_job(job))
        if job.state == "paused" and said == wanted:
            return job
    return None


def space_of_job(job: Job) -> str:
    """The name of the user's space in which the job searches; empty for that of the rules."""
    return str(json.loads(job.spec).get("space", ""))


def enlarged(store: Store, job: Job, budget: Budget) -> Job:
    """The job with each limit of this budget that ends it later than its own."""
    more: dict[str, Any] = {"trials": budget.trials} if budget.trials > job.trials else {}
    lift = [name for name in LIMITS if getattr(budget, name) is None and getattr(job, name) is not None]
    for name in LIMITS:
        old, new = getattr(job, name), getattr(budget, name)
        if None not in (old, new) and (new < old if name == "target_seconds" else new > old):
            more[name] = new
    return store.extend_job(job.id, **more, lift=lift) if more or lift else job
