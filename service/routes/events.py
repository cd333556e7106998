"""The history of a job as server-sent events: what was, and then what happens until the job ends."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Annotated

from fastapi import APIRouter, Depends, Header, Query, Request
from fastapi.sse import EventSourceResponse, ServerSentEvent
from starlette.concurrency import run_in_threadpool

from ...db.records import Job
from ...db.words import FINAL_JOB_STATES
from ..auth import CanReadJobs
from ..context import Ctx
from ..errors import InvalidRequest
from ..single_header import single_header

_LOOK_EVERY = 0.2
_BATCH = 500
_BACK_AFTER_MS = 1000
_CLOSING = '{"reason": "the server is stopping"}'

router = APIRouter(prefix="/v1/jobs/{job_id}/events", tags=["jobs"])


def _known_job(job_id: str, context: Ctx) -> Job:
    return context.store.job(job_id)


def _after(
    request: Request,
    last_event_id: Annotated[str | None, Header(description="the id of the last event that was seen")] = None,
    after: Annotated[
        int, Query(ge=0, le=2**53 - 1, description="the same, for clients that cannot set the header")
    ] = 0,
) -> int:
    if single_header(request.headers, "Last-Event-ID") is None or last_event_id is None:
        return after
    if not (last_event_id.isascii() and last_event_id.isdecimal() and len(last_event_id) < 16):
        raise InvalidRequest.parameter(
            "Last-Event-ID", f"Last-Event-ID must be the id of an event, got {last_event_id[:40]!r}"
        )
    return int(last_event_id)


@router.get("", response_class=EventSourceResponse)
async def stream_events(
    _: CanReadJobs,  # first: who may not look is not told either whether the job is there
    known: Annotated[Job, Depends(_known_job)],
    after: Annotated[int, Depends(_after)],
    context: Ctx,
) -> AsyncIterator[ServerSentEvent]:
    """Events with a number above Last-Event-ID. The stream ends after the job's last event, or, when the
    server stops, after an event `closing` without an id."""
    while not context.stopping.is_set():
        # The job first: what it is then, its events say at least.
        job = await run_in_threadpool(context.store.job, known.id)
        events = await run_in_threadpool(context.store.events, known.id, after, _BATCH)
        for event in events:
            yield ServerSentEvent(id=str(event.seq), event=event.kind, raw_data=event.data)
            after = event.seq
        if len(events) == _BATCH:
            continue
        if job.state in FINAL_JOB_STATES:
            return
        await asyncio.sleep(_LOOK_EVERY)
    # Without an id: whoever comes back goes on after the last event that it saw.
    yield ServerSentEvent(event="closing", retry=_BACK_AFTER_MS, raw_data=_CLOSING)
