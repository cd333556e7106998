"""Leases: a worker takes candidates, says which one it runs, keeps the lease alive, and hands results in."""

from __future__ import annotations

import asyncio
import time
from typing import Annotated, Any

from fastapi import APIRouter, Body, Request
from starlette.concurrency import run_in_threadpool
from starlette.responses import JSONResponse, Response

from ...db.fleet_records import Lease, Worker
from ...measure.messages import MAX_BATCH
from ..auth import IsWorker
from ..build_calls import check_codegen, run_lease
from ..change_route import MeasurementRoute
from ..context import Context, Ctx
from ..lease_calls import (
    Caller,
    in_protocol,
    integer,
    lease_message,
    outcome_of,
    results,
    seconds,
    settlement,
    text,
    update_message,
)
from ..worker_client import DRAIN_HEADER

router = APIRouter(prefix="/v1/leases", tags=["workers"], route_class=MeasurementRoute)

_BUILD_TAKES = 0.05
"""Seconds until a device without a compiler asks again for work whose program is not built yet."""

_LEAST_PATIENCE = 5.0
"""Seconds that a call which does not wait for work waits for its turn to claim."""

_LONG_WAIT = 1.0
"""Who waits as long as this does not have to claim before anybody has seen work."""

_TOUCH_SECONDS = 10.0
"""A worker that waits is noted in the store as often as this; one that is not for a minute is offline."""
_ENDS, _HELD_BACK = ("draining", "retired"), ("paused", "quarantined")
_STATE_EVERY, _STATE_SEEN = 0.5, 5.0
"""Seconds until a worker that waits and is held back, or is not, finds that its state has changed."""

Call = Annotated[dict[str, Any], Body()]


@router.post("", responses={204: {"description": "no work within wait_seconds"}})
async def take_lease(body: Call, request: Request, context: Ctx, _: IsWorker) -> Response:
    """The next batch of candidates, waiting up to `wait_seconds` for one; 204 when there is none.

    The header `Tilewright-Worker: drain` of a 204 tells the worker to end.
    """
    caller = Caller.of(body, "max_items", "wait_seconds")
    settings = context.settings
    most = min(settings.lease_items, integer(body, "max_items", 1, MAX_BATCH))
    wait = min(settings.lease_wait, seconds(body, "wait_seconds"))
    worker = await run_in_threadpool(context.store.worker, caller.worker)
    check_codegen(worker, context.parser.codegen_version())

    deadline = time.monotonic() + wait

    async def claim() -> Lease | None:
        # Not for longer than the worker listens: it would be given work behind its back.
        left = max(_LEAST_PATIENCE, deadline - time.monotonic())
        async with context.work.may_claim(left) as mine:
            # A worker that hung up would leave its candidates lying until the lease expires.
            if not mine or await request.is_disconnected():
                return None
            return await run_in_threadpool(
                context.store.claim,
                caller.worker,
                caller.session,
                worker.hardware,
                most,
                settings.lease_seconds,
            )

    lease = None
    # A claim says to the store that the worker is there, too, and gives back what it held.
    known = worker.state == "online" and worker.session == caller.session and wait >= _LONG_WAIT
    if not known or context.work.saw_work(worker) or await _is_long_unseen(context, worker):
        lease = await claim()
    while lease is None and (left := deadline - time.monotonic()) > 0:
        worker = await run_in_threadpool(context.store.worker, caller.worker)
        if worker.state in _ENDS or context.stopping.is_set():
            break
        if worker.state in _HELD_BACK:  # there may be work, but not for it
            await asyncio.sleep(min(_STATE_EVERY, left))
            continue
        if not await context.work.turn(worker, min(_STATE_SEEN, left)):
            continue
        if worker.run_only and not await run_in_threadpool(context.store.built_for, [worker.hardware]):
            await asyncio.sleep(min(_BUILD_TAKES, left))
            continue
        lease = await claim()
    if lease is None:
        worker = await run_in_threadpool(context.store.worker, caller.worker)
        if worker.session != caller.session:
            await claim()  # says so
        return Response(status_code=204, headers={DRAIN_HEADER: "drain"} if worker.state in _ENDS else {})
    context.metrics.leases.inc()
    message = run_lease(lease, settings) if worker.run_only else lease_message(lease, settings)
    return JSONResponse(in_protocol(message.to_json(), body["protocol"]))


async def _is_long_unseen(context: Context, worker: Worker) -> bool:
    return await run_in_threadpool(context.store.now) - worker.seen_at > _TOUCH_SECONDS


@router.post("/{lease_id}:start")
def start_item(lease_id: str, body: Call, context: Ctx, _: IsWorker) -> dict[str, Any]:
    """Say which candidate runs from now on: it alone is blamed when the worker is lost."""
    caller = Caller.of(body, "item", "attempt")
    item, attempt = text(body, "item"), integer(body, "attempt", 0, 2**31)
    state = context.store.start(lease_id, item, attempt, caller.session)
    return update_message(state).to_json()


@router.post("/{lease_id}:renew")
def renew_lease(lease_id: str, body: Call, context: Ctx, _: IsWorker) -> dict[str, Any]:
    """Keep the lease alive; the answer says what is no longer wanted."""
    caller = Caller.of(body)
    state = context.store.renew(lease_id, context.settings.lease_seconds, caller.session)
    return update_message(state).to_json()


@router.post("/{lease_id}:settle")
def settle_lease(lease_id: str, body: Call, context: Ctx, _: IsWorker) -> dict[str, Any]:
    """Hand results in; this renews too. The same result again gets the same answer."""
    caller = Caller.of(body, "results")
    said = [settlement(result) for result in results(body)]
    instead = context.roofline.instead(lease_id, said)
    state = context.store.settle(lease_id, said, caller.session, instead)
    for result in said:
        context.metrics.settled.labels(outcome_of(instead.get(result.trial, result))).inc()
    return update_message(state).to_json()


@router.post("/{lease_id}:release", status_code=204)
def release_lease(lease_id: str, body: Call, context: Ctx, _: IsWorker) -> Response:
    """Give back what is not settled; it counts for nothing."""
    context.store.release(lease_id, Caller.of(body).session)
    return Response(status_code=204)
