"""Jobs: submit, list, look at, wait for, pause, resume, extend, cancel."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Query, Request, Response
from starlette.concurrency import run_in_threadpool

from ...db.records import Job
from ...db.words import FINAL_JOB_STATES, JobState
from .. import job_control, paging
from ..auth import CanReadJobs, CanWriteJobs
from ..change_route import ChangeRoute
from ..changes import nothing_changed
from ..context import Context, Ctx
from ..errors import InvalidRequest
from ..requests import BatchRequest, ExtendRequest, JobRequest
from ..submission import Submission, in_pool
from ..views import BatchView, JobsView, JobView, ValidationView
from ..waiting import poll, wait_seconds

_LOOK_EVERY = 0.1

router = APIRouter(prefix="/v1/jobs", tags=["jobs"], route_class=ChangeRoute)


@router.post("", status_code=202, responses={200: {"model": ValidationView, "description": "validate_only"}})
def create_job(
    body: JobRequest, request: Request, response: Response, context: Ctx, who: CanWriteJobs
) -> JobView | ValidationView:
    """Create a tuning job. It runs in the background; its state is at `Location`."""
    body = in_pool(body, who.pool)
    submission = Submission.of(body, context.parser, context.store, context.settings)
    if body.validate_only:
        nothing_changed()
        response.status_code = 200
        return submission.view()
    job = submission.store(context.store, context.settings, who.id, request.state.trace_id)
    context.refuse_over_quota(who)
    context.dispatcher.wake()
    response.headers["Location"] = f"/v1/jobs/{job.id}"
    return context.presenter.job(job)


@router.post(":batch", status_code=202)
def create_jobs(body: BatchRequest, request: Request, context: Ctx, who: CanWriteJobs) -> BatchView:
    """Create jobs, all of them or none: what is wrong with one is wrong with all, at its pointer."""
    found = []
    for number, job in enumerate(body.jobs):
        place = f"/jobs/{number}"
        if job.validate_only:
            raise InvalidRequest.at(f"{place}/validate_only", "is for single jobs")
        try:
            found.append(Submission.of(job, context.parser, context.store, context.settings))
        except InvalidRequest as error:
            raise error.within(place) from error
    trace_id = request.state.trace_id
    jobs = [one.store(context.store, context.settings, who.id, trace_id) for one in found]
    context.refuse_over_quota(who)
    context.dispatcher.wake()
    return BatchView(jobs=context.presenter.jobs(jobs))


@router.get("")
def list_jobs(
    context: Ctx,
    _: CanReadJobs,
    state: JobState | None = None,
    page_size: paging.PageSize = 50,
    page_token: paging.PageToken = None,
) -> JobsView:
    """Jobs, the newest first."""
    listing = f"jobs:{state or ''}"
    page = context.store.jobs(state, paging.decode(listing, page_token), page_size)
    return JobsView(
        jobs=context.presenter.jobs(page.items),
        next_page_token=paging.encode(listing, page.next),
    )


@router.get("/{job_id}")
async def read_job(
    job_id: str,
    context: Ctx,
    _: CanReadJobs,
    wait: Annotated[
        str | None, Query(description="such as 20s: answer when the job is finished, or then")
    ] = None,
) -> JobView:
    """A job: state, reason, progress, budget, best so far, what its cost model is worth, where time went."""
    job = await _finished_or_late(context, job_id, 0.0 if wait is None else wait_seconds(wait))
    return await run_in_threadpool(context.presenter.job, job)


@router.post("/{job_id}:cancel")
def cancel_job(job_id: str, context: Ctx, who: CanWriteJobs) -> JobView:
    """End a job and keep what it found. A finished job stays as it is."""
    context.own_job(job_id, who)
    job = context.store.cancel_job(job_id)
    context.dispatcher.wake()
    return context.presenter.job(job)


@router.post("/{job_id}:pause")
def pause_job(job_id: str, context: Ctx, who: CanWriteJobs) -> JobView:
    """Give out no more candidates of a job, until it is resumed; its seconds stop. May be repeated; 409 once
    it is over."""
    context.own_job(job_id, who)
    job = context.store.pause_job(job_id)
    context.dispatcher.wake()
    return context.presenter.job(job)


@router.post("/{job_id}:resume")
def resume_job(job_id: str, context: Ctx, who: CanWriteJobs) -> JobView:
    """Let a paused, cancelled or failed job go on from its stored trials. One that is under way stays as it
    is; 409 `already-complete` for one that has used its budget up."""
    context.own_job(job_id, who)
    job = job_control.resume(job_id, context.store)
    context.refuse_over_quota(who)
    context.dispatcher.wake()
    return context.presenter.job(job)


@router.post("/{job_id}:extend")
def extend_job(job_id: str, body: ExtendRequest, context: Ctx, who: CanWriteJobs) -> JobView:
    """Give a job a larger budget, with which it goes on as if it had had it from the start.

    A paused one stays paused.
    """
    context.own_job(job_id, who)
    job = job_control.extend(job_id, body.budget, context.store, context.settings)
    context.refuse_over_quota(who)
    context.dispatcher.wake()
    return context.presenter.job(job)


async def _finished_or_late(context: Context, job_id: str, seconds: float) -> Job:
    async def look() -> Job | None:
        job = await run_in_threadpool(context.store.job, job_id)
        return job if job.state in FINAL_JOB_STATES else None

    job = await poll(context, look, seconds, _LOOK_EVERY)
    return job if job is not None else await run_in_threadpool(context.store.job, job_id)
