"""Going on with a local job by its id."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence

from ..compiler import ir
from ..compiler.space import KnobConstraint, SpaceFunction
from ..compiler.target import Target
from ..compiler.target.hardware import detect
from ..db.records import Job
from ..db.store import Store
from ..measure.messages import Limits
from ..measure.runner import Runner
from .beginning import suggested_in
from .errors import CannotResume, NotASqlStore
from .opening import open_task, reopen_task
from .record import TuningRecord
from .snapshot import Snapshot
from .standing import space_of_job
from .task import TuningTask
from .tune import Tuner, display_of

__all__ = ["resume"]


def resume(
    job: str,
    store: Store,
    *,
    trials: int | None = None,
    seconds: float | None = None,
    space: SpaceFunction | None = None,
    constraints: Sequence[KnobConstraint] = (),
    progress: bool | None = None,
    observer: Callable[[Snapshot], None] | None = None,
    limits: Limits | None = None,
) -> TuningRecord:
    """Go on with a job of `tune` that was interrupted, killed, paused, cancelled or has failed, by its id
    (`TuningRecord.job`): it comes to what it would have come to without the break, where the times are the
    same.

    `trials` and `seconds` give it a larger budget first, in new totals: so also a job that is complete goes
    on. A job within a space of the user's own needs that `space` and its `constraints` again.

    Raises NotFound, AlreadyComplete for a job that has used its budget up, Conflict for one that a living
    process or a server searches, InvalidValue for a budget that is no larger, CannotResume where this is
    another kind of hardware or the space is missing, and what `tune` raises.
    """
    if not hasattr(store, "resume_local"):
        raise NotASqlStore(type(store).__name__)
    stored = store.job(job)
    here = detect()
    if stored.hardware != here.key:
        raise CannotResume(
            f"job {job} is measured on hardware {stored.hardware}, and this is {here.key}: times of two "
            "kinds of hardware do not compare"
        )
    task = _task(stored, store, space, constraints)
    if trials is not None or seconds is not None:
        stored = store.extend_job(job, trials, seconds)
    tuner = Tuner(
        task=task,
        hardware=here,
        trials=stored.trials,
        seconds=stored.seconds,
        target_seconds=stored.target_seconds,
        patience=stored.patience,
        store=store,
        resumes=job,
        seed=stored.seed,
        strategy=stored.strategy,
        suggested=suggested_in(stored),
        display=display_of(f"tuning {task.name}", progress),
        observer=observer,
        limits=limits or Limits(),
    )
    with Runner() as runner:
        return tuner.run(runner)


def _task(
    job: Job, store: Store, space: SpaceFunction | None, constraints: Sequence[KnobConstraint]
) -> TuningTask:
    name = space_of_job(job)
    if space is None and name:
        raise CannotResume(f"job {job.id} searches a space of its own, {name!r}: give it as space= again")
    if space is None:
        return reopen_task(job, store)
    func = ir.from_json(json.loads(store.workload(job.workload).program))
    target = Target.parse(json.loads(store.target(job.target).description))
    return open_task(func, target, space, constraints)
