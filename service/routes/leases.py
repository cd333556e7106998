"""Leases: a worker takes candidates, says which one it runs, keeps the lease alive, and hands results in."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import APIRouter, Body, Request
from starlette.concurrency import run_in_threadpool
from starlette.responses import JSONResponse, Response

from ...db.fleet_records import Lease, Worker
from ...measure.messages import MAX_BATCH
from ..auth import IsWorker
from ..build_calls import run_lease
from ..context import Context, Ctx
from ..lease_calls import (
    Caller,
    integer,
    lease_message,
    results,
    seconds,
    settlement,
    text,
    update_message,
)
from ..waiting import poll

_LOOK_EVERY = 0.05

router = APIRouter(prefix="/v1/leases", tags=["workers"])

Call = Annotated[dict[str, Any], Body()]


@router.post("", responses={204: {"description": "no work within wait_seconds"}})
async def take_lease(body: Call, request: Request, context: Ctx, _: IsWorker) -> Response:
    """The next batch of candidates, waiting up to `wait_seconds` for one; 204 when there is none."""
    caller = Caller.of(body, "max_items", "wait_seconds")
    settings = context.settings
    most = min(settings.lease_items, integer(body, "max_items", 1, MAX_BATCH))
    wait = min(settings.lease_wait, seconds(body, "wait_seconds"))
    worker = await run_in_threadpool(context.store.worker, caller.worker)
    looks = 0

    async def look() -> Lease | None:
        nonlocal looks
        looks += 1
        # The first look claims outright: it also tells the store that the worker is there.
        if looks > 1 and not await _may_have_work(context, worker):
            return None
        # A worker that hung up would leave its candidates lying until the lease expires.
        if await request.is_disconnected():
            return None
        return await run_in_threadpool(
            context.store.claim, caller.worker, caller.session, worker.hardware, most, settings.lease_seconds
        )

    lease = await poll(context, look, wait, _LOOK_EVERY)
    if lease is None:
        return Response(status_code=204)
    message = run_lease(lease, settings) if worker.run_only else lease_message(lease, settings)
    return JSONResponse(message.to_json())


async def _may_have_work(context: Context, worker: Worker) -> bool:
    if not await context.work.may_have_work(worker.hardware):
        return False
    return not worker.run_only or await run_in_threadpool(context.store.has_built, worker.hardware)


@router.post("/{lease_id}:start")
def start_item(lease_id: str, body: Call, context: Ctx, _: IsWorker) -> dict[str, Any]:
    """Say which candidate runs from now on: it alone is blamed when the worker is lost."""
    call = Caller.of(body, "item", "attempt").fields
    state = context.store.start(lease_id, text(call, "item"), integer(call, "attempt", 0, 2**31))
    return update_message(state).to_json()


@router.post("/{lease_id}:renew")
def renew_lease(lease_id: str, body: Call, context: Ctx, _: IsWorker) -> dict[str, Any]:
    """Keep the lease alive; the answer says what is no longer wanted."""
    Caller.of(body)
    return update_message(context.store.renew(lease_id, context.settings.lease_seconds)).to_json()


@router.post("/{lease_id}:settle")
def settle_lease(lease_id: str, body: Call, context: Ctx, _: IsWorker) -> dict[str, Any]:
    """Hand results in; this renews too. The same result again gets the same answer."""
    call = Caller.of(body, "results").fields
    state = context.store.settle(lease_id, [settlement(result) for result in results(call)])
    return update_message(state).to_json()


@router.post("/{lease_id}:release", status_code=204)
def release_lease(lease_id: str, body: Call, context: Ctx, _: IsWorker) -> Response:
    """Give back what is not settled; it counts for nothing."""
    Caller.of(body)
    context.store.release(lease_id)
    return Response(status_code=204)
