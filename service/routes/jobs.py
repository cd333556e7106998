"""Jobs: submit, list, look at, wait for, pause, resume, extend, cancel."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Query, Response
from starlette.concurrency import run_in_threadpool

from ...db.records import Job
from ...db.words import FINAL_JOB_STATES, JobState
from .. import job_control, paging
from ..auth import CanReadJobs, CanWriteJobs
from ..context import Context, Ctx
from ..requests import ExtendRequest, JobRequest
from ..submission import Submission, in_pool
from ..views import JobsView, JobView, ValidationView
from ..waiting import poll, wait_seconds

_LOOK_EVERY = 0.1

router = APIRouter(prefix="/v1/jobs", tags=["jobs"])


@router.post("", status_code=202, responses={200: {"model": ValidationView, "description": "validate_only"}})
def create_job(
    body: JobRequest, response: Response, context: Ctx, principal: CanWriteJobs
) -> JobView | ValidationView:
    """Create a tuning job. It runs in the background; its state is at `Location`."""
    body = in_pool(body, principal.pool)
    submission = Submission.of(body, context.parser, context.store, context.settings)
    if body.validate_only:
        response.status_code = 200
        return submission.view()
    job = submission.store(context.store, context.settings, principal.id or "")
    context.dispatcher.wake()
    response.headers["Location"] = f"/v1/jobs/{job.id}"
    return context.presenter.job(job)


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
        jobs=[context.presenter.job_in_list(job) for job in page.items],
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
def cancel_job(job_id: str, context: Ctx, _: CanWriteJobs) -> JobView:
    """End a job and keep what it found. A finished job stays as it is."""
    job = context.store.cancel_job(job_id)
    context.dispatcher.wake()
    return context.presenter.job(job)


@router.post("/{job_id}:pause")
def pause_job(job_id: str, context: Ctx, _: CanWriteJobs) -> JobView:
    """Give out no more candidates of a job, until it is resumed; its seconds stop. May be repeated; 409 once
    it is over."""
    job = context.store.pause_job(job_id)
    context.dispatcher.wake()
    return context.presenter.job(job)


@router.post("/{job_id}:resume")
def resume_job(job_id: str, context: Ctx, _: CanWriteJobs) -> JobView:
    """Let a paused, cancelled or failed job go on from its stored trials. One that is under way stays as it
    is; 409 `already-complete` for one that has used its budget up."""
    job = job_control.resume(job_id, context.store)
    context.dispatcher.wake()
    return context.presenter.job(job)


@router.post("/{job_id}:extend")
def extend_job(job_id: str, body: ExtendRequest, context: Ctx, _: CanWriteJobs) -> JobView:
    """Give a job a larger budget, with which it goes on as if it had had it from the start.

    A paused one stays paused.
    """
    job = job_control.extend(job_id, body.budget, context.store, context.settings)
    context.dispatcher.wake()
    return context.presenter.job(job)


async def _finished_or_late(context: Context, job_id: str, seconds: float) -> Job:
    async def look() -> Job | None:
        job = await run_in_threadpool(context.store.job, job_id)
        return job if job.state in FINAL_JOB_STATES else None

    job = await poll(context, look, seconds, _LOOK_EVERY)
    return job if job is not None else await run_in_threadpool(context.store.job, job_id)
