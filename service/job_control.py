"""Letting jobs go on, as a request asks for it."""

from __future__ import annotations

from ..db.errors import Conflict, InvalidValue
from ..db.records import Job
from ..db.store import Store
from ..db.words import LIMITS
from .errors import InvalidRequest
from .requests import Extension
from .settings import Settings


def resume(job_id: str, store: Store) -> Job:
    """Raises Conflict for a job that was tuned without a server: nobody here would search it."""
    job = store.job(job_id)
    if job.origin == "local":
        raise Conflict(
            f"job {job_id} is tuned by a process of its own, not by this server: go on with "
            f"tilewright.resume({job_id!r}, store) or `tilewright tune … --resume` beside its database"
        )
    return store.resume_job(job_id)


def extend(job_id: str, budget: Extension, store: Store, settings: Settings) -> Job:
    """Raises InvalidRequest with a pointer to the limit that is wrong."""
    if budget.trials is not None and budget.trials > settings.max_trials:
        raise InvalidRequest.at(
            "/budget/trials",
            f"should be less than or equal to {settings.max_trials}, got {budget.trials}",
        )
    given = budget.model_dump(include=budget.model_fields_set)
    lift = [name for name in LIMITS if name in given and given[name] is None]
    try:
        return store.extend_job(job_id, **given, lift=lift)
    except InvalidValue as error:
        place = "/budget" if error.field == "budget" else f"/budget/{error.field}"
        raise InvalidRequest.at(place, error.reason) from error
