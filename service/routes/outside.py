"""Trials that are measured outside of the fleet: asked for, and told, whenever that is."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Query
from starlette.concurrency import run_in_threadpool

from ...db.records import Settlement, Trial
from ...db.words import FINAL_JOB_STATES
from ..auth import CanWriteJobs
from ..change_route import MeasurementRoute
from ..context import Context, Ctx
from ..lease_calls import outcome_of
from ..presenter import trial_view
from ..requests import AskRequest, TellRequest
from ..views import AskedView, TrialView
from ..waiting import poll, wait_seconds

_LOOK_EVERY = 0.1

router = APIRouter(prefix="/v1/jobs/{job_id}/trials", tags=["jobs"], route_class=MeasurementRoute)


@router.post(":ask")
async def ask_trials(
    job_id: str,
    body: AskRequest,
    context: Ctx,
    who: CanWriteJobs,
    wait: Annotated[str | None, Query(description="such as 20s: wait so long for a trial to measure")] = None,
) -> AskedView:
    """Trials of a job with `"measure": "outside"`, for `holder` to measure: those that it was given and has
    not told yet, then new ones. So asking again is safe, and nothing that was handed out ever expires. None
    while the search waits for results of others, or while it begins: then wait, or ask again."""
    seconds = 0.0 if wait is None else wait_seconds(wait)
    await run_in_threadpool(context.own_job, job_id, who)
    found = await _handed_out(context, job_id, body, seconds)
    job = await run_in_threadpool(context.store.job, job_id)
    return AskedView(trials=[trial_view(trial) for trial in found], state=job.state, reason=job.reason)


@router.post(":tell")
def tell_trial(job_id: str, body: TellRequest, context: Ctx, who: CanWriteJobs) -> TrialView:
    """The result of one trial, whenever it is known. The same result may be told again; another one is
    refused. A time that the hardware cannot reach, by what its workers told of it, is kept as `run_error`."""
    job = context.own_job(job_id, who)
    said = _settlement(body)
    instead = context.roofline.instead_of_told(job, said)
    trial = context.store.tell_outside(job_id, body.number, said, instead)
    context.metrics.settled.labels(outcome_of(instead or said)).inc()
    context.dispatcher.wake()
    return trial_view(trial)


async def _handed_out(context: Context, job_id: str, body: AskRequest, seconds: float) -> list[Trial]:
    async def look() -> list[Trial] | None:
        found = await run_in_threadpool(context.store.hand_out, job_id, body.holder, body.count)
        if found:
            return found
        job = await run_in_threadpool(context.store.job, job_id)
        return [] if job.state in FINAL_JOB_STATES else None

    return await poll(context, look, seconds, _LOOK_EVERY) or []


def _settlement(body: TellRequest) -> Settlement:
    return Settlement(
        seconds=body.seconds,
        samples=tuple(body.samples),
        error=body.error,
        failure_kind=body.failure.kind if body.failure is not None else None,
        failure_message=body.failure.message if body.failure is not None else "",
        codegen_version=body.codegen,
    )
