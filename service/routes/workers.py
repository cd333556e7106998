"""Measurement workers: attach, list, leave."""

from __future__ import annotations

import json
from typing import Annotated, Any

from fastapi import APIRouter, Body
from starlette.responses import Response

from ...db.fleet_records import NewWorker, WorkerChange
from ...measure.health_messages import HealthReport, HealthUpdate
from ...measure.messages import Registration, WorkerHello
from ..auth import CanReadWorkers, IsAdmin, IsWorker, Principal
from ..change_route import ChangeRoute
from ..changes import after_change
from ..context import Context, Ctx
from ..errors import InvalidRequest
from ..health_calls import plan_of, take_first_report, take_report
from ..lease_calls import Caller, check_protocol
from ..presenter import health_view
from ..requests import (
    PauseWorkerRequest,
    QuarantineRequest,
    ReleaseRequest,
    RemoveRequest,
    WorkerNote,
)
from ..views import HealthChecksView, WorkerChangeView, WorkersView, WorkerView
from ..workloads import SpecError

router = APIRouter(prefix="/v1/workers", tags=["workers"], route_class=ChangeRoute)


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
            facts=json.dumps(hello.hardware),
            run_only=hello.run_only,
        )
    )
    take_first_report(context.store, worker, hello.health)
    context.dispatcher.wake()
    settings = context.settings
    registration = Registration(
        worker=worker.id,
        ttl_seconds=settings.lease_seconds,
        renew_seconds=settings.renew_seconds,
        wait_seconds=settings.lease_wait,
        # A device that only runs has no kernel of its own to check itself with.
        health=None if hello.run_only else plan_of(settings, hello.protocol),
    )
    said = registration.to_json()
    if registration.health is None:
        del said["health"]  # the word is not known to older workers
    return said


@router.post("/{worker_id}:leave", status_code=204)
def detach_worker(
    worker_id: str, body: Annotated[dict[str, Any], Body()], context: Ctx, _: IsWorker
) -> Response:
    """Say that the worker ends its session: it is offline at once, and what it holds is given back."""
    caller = _caller_of(worker_id, body)
    context.store.leave(worker_id, caller.session)
    context.dispatcher.wake()
    return Response(status_code=204)


@router.post("/{worker_id}:health")
def report_health(
    worker_id: str, body: Annotated[dict[str, Any], Body()], context: Ctx, _: IsWorker
) -> dict[str, Any]:
    """Tell what the worker's golden kernels showed; the answer says what state it is in then, and why."""
    caller = _caller_of(worker_id, body, "report")
    report = HealthReport.from_json(caller.fields["report"], "/report")
    worker = take_report(context.store, worker_id, caller.session, report)
    return HealthUpdate(worker.state, worker.reason).to_json()


@router.get("/{worker_id}/health")
def read_health(worker_id: str, context: Ctx, _: CanReadWorkers) -> HealthChecksView:
    """The latest golden kernels of a worker, newest first."""
    return HealthChecksView(checks=[health_view(check) for check in context.store.health_checks(worker_id)])


@router.get("")
def list_workers(context: Ctx, _: CanReadWorkers) -> WorkersView:
    """All workers but retired ones, by name."""
    now = context.store.now()
    return WorkersView(workers=context.presenter.workers(context.store.workers(), now))


@router.get("/{worker}")
def read_worker(worker: str, context: Ctx, _: CanReadWorkers) -> WorkerView:
    """One worker, by its name or id: state and reason, what it measures, hardware, labels, versions."""
    return context.presenter.worker(context.store.find_worker(worker), context.store.now())


def _who(principal: Principal) -> str:
    return f"token {principal.name}"


@router.post("/{worker}:pause")
def pause_worker(worker: str, body: PauseWorkerRequest, context: Ctx, principal: IsAdmin) -> WorkerChangeView:
    """Give a worker, by its name or id, no more candidates: for so many seconds, or until it is resumed.

    The candidate that runs is finished, the rest given back.
    """
    found = context.store.find_worker(worker)
    change = context.store.pause_worker(found.id, _who(principal), body.note, body.seconds)
    return _changed(context, change)


@router.post("/{worker}:resume")
def resume_worker(worker: str, context: Ctx, principal: IsAdmin) -> WorkerChangeView:
    """Let a paused or draining worker measure again."""
    found = context.store.find_worker(worker)
    return _changed(context, context.store.resume_worker(found.id, _who(principal)))


@router.post("/{worker}:drain")
def drain_worker(worker: str, body: WorkerNote, context: Ctx, principal: IsAdmin) -> WorkerChangeView:
    """Have a worker finish the candidate that runs, give the rest back, and end: it becomes offline."""
    found = context.store.find_worker(worker)
    return _changed(context, context.store.drain_worker(found.id, _who(principal), body.note))


@router.post("/{worker}:quarantine")
def quarantine_worker(
    worker: str, body: QuarantineRequest, context: Ctx, principal: IsAdmin
) -> WorkerChangeView:
    """Give a worker no more candidates, and believe nothing that it measured in the last `since_seconds`, or
    without them since its last healthy check, or since it attached where there was none. What rested on that
    is replaced by the next best."""
    found = context.store.find_worker(worker)
    ago = body.since_seconds
    since = None if ago is None else max(0.0, context.store.now() - ago)
    return _changed(context, context.store.quarantine_worker(found.id, _who(principal), body.note, since))


@router.post("/{worker}:release")
def release_worker(worker: str, body: ReleaseRequest, context: Ctx, principal: IsAdmin) -> WorkerChangeView:
    """Let a quarantined worker measure again; what it measured before counts only with `restore_results`."""
    found = context.store.find_worker(worker)
    change = context.store.release_worker(found.id, _who(principal), body.restore_results)
    return _changed(context, change)


@router.post("/{worker}:remove")
def remove_worker(worker: str, body: RemoveRequest, context: Ctx, principal: IsAdmin) -> WorkerChangeView:
    """Retire a worker: its name attaches no more. With `discard_results`, nothing that it ever measured
    counts, and what rested on that is replaced by the next best."""
    found = context.store.find_worker(worker)
    change = context.store.remove_worker(found.id, _who(principal), body.note, body.discard_results)
    return _changed(context, change)


def _changed(context: Context, change: WorkerChange) -> WorkerChangeView:
    context.dispatcher.wake()
    after_change(lambda: context.work.let_go(change.worker.id))
    return context.presenter.worker_change(change)


def _codegen_version(hello: WorkerHello, context: Context) -> str:
    """Of a device that only runs, that of its builders, which is the server's own."""
    return context.parser.codegen_version() if hello.run_only else hello.versions.get("codegen", "")


def _caller_of(worker_id: str, body: dict[str, Any], *names: str) -> Caller:
    caller = Caller.of(body, *names)
    if caller.worker != worker_id:
        raise InvalidRequest.at("/worker", f"must be the worker of the path, {worker_id}")
    return caller


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
