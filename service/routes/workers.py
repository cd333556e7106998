"""Measurement workers: attach, list, leave."""

from __future__ import annotations

import json
from typing import Annotated, Any

from fastapi import APIRouter, Body
from starlette.responses import Response

from ...db.fleet_records import NewWorker
from ...measure.messages import Registration, WorkerHello
from ..auth import CanReadWorkers, IsWorker
from ..context import Context, Ctx
from ..errors import InvalidRequest
from ..lease_calls import Caller, check_protocol
from ..views import WorkersView, WorkerView
from ..workloads import SpecError

router = APIRouter(prefix="/v1/workers", tags=["workers"])


@router.post("", status_code=201)
def attach_worker(
    body: Annotated[dict[str, Any], Body()], context: Ctx, principal: IsWorker
) -> dict[str, Any]:
    """Attach a worker (a WorkerHello); a newer session of a name supersedes the older one."""
    check_protocol(body)
    hello = WorkerHello.from_json(body)
    _check_hardware(hello, context)
    context.store.put_hardware(hello.hardware_key, json.dumps(hello.hardware))
    worker = context.store.register_worker(
        NewWorker(
            name=hello.name,
            session=hello.session,
            hardware=hello.hardware_key,
            protocol=hello.protocol,
            versions=json.dumps(hello.versions),
            labels=json.dumps(hello.labels),
            codegen_version=_codegen_version(hello, context),
            pool=principal.pool,
            run_only=hello.run_only,
        )
    )
    context.dispatcher.wake()
    settings = context.settings
    registration = Registration(
        worker=worker.id,
        ttl_seconds=settings.lease_seconds,
        renew_seconds=settings.renew_seconds,
        wait_seconds=settings.lease_wait,
    )
    return registration.to_json()


@router.post("/{worker_id}:leave", status_code=204)
def detach_worker(
    worker_id: str, body: Annotated[dict[str, Any], Body()], context: Ctx, _: IsWorker
) -> Response:
    """Say that the worker ends its session: it is offline at once, and what it holds is given back."""
    caller = Caller.of(body)
    if caller.worker != worker_id:
        raise InvalidRequest.at("/worker", f"must be the worker of the path, {worker_id}")
    context.store.leave(worker_id, caller.session)
    context.dispatcher.wake()
    return Response(status_code=204)


@router.get("")
def list_workers(context: Ctx, _: CanReadWorkers) -> WorkersView:
    """All workers but retired ones, by name."""
    now = context.store.now()
    return WorkersView(workers=[context.presenter.worker(w, now) for w in context.store.workers()])


@router.get("/{worker_id}")
def read_worker(worker_id: str, context: Ctx, _: CanReadWorkers) -> WorkerView:
    """One worker: state, hardware, labels, versions."""
    return context.presenter.worker(context.store.worker(worker_id), context.store.now())


def _codegen_version(hello: WorkerHello, context: Context) -> str:
    """Of a device that only runs, that of its builders, which is the server's own."""
    return context.parser.codegen_version() if hello.run_only else hello.versions.get("codegen", "")


def _check_hardware(hello: WorkerHello, context: Context) -> None:
    """A worker that names another key than its facts amount to would spoil the records of that hardware."""
    try:
        key = context.parser.hardware_key(hello.hardware)
    except SpecError as error:
        raise InvalidRequest.at(f"/hardware{error.pointer}", error.message) from error
    if key != hello.hardware_key:
        raise InvalidRequest.at(
            "/hardware_key", f"the facts in /hardware amount to {key}, got {hello.hardware_key}"
        )
