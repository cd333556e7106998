"""What people fix of best-known schedules: pins, freezes, what is retired, and records of other stores."""

from __future__ import annotations

from dataclasses import asdict
from typing import Annotated

from fastapi import APIRouter, Path
from starlette.responses import Response

from ...db.errors import NotFound
from ..auth import CanReadSchedules, CanWriteSchedules, Principal
from ..change_route import ChangeRoute
from ..context import Ctx
from ..requests import FreezeRequest, ImportRequest, PinRequest, RetireRequest
from ..schedule_lines import import_lines
from ..schedule_presenter import pin_view
from ..schedule_views import (
    ChangedKeyView,
    ChangesView,
    FreezesView,
    FreezeView,
    ImportView,
    PinsView,
    PinView,
    ReportView,
)
from .schedules import Key

router = APIRouter(prefix="/v1/schedules", tags=["schedules"], route_class=ChangeRoute)

Name = Annotated[str, Path(min_length=1, max_length=256)]


@router.get("/pins")
def list_pins(context: Ctx, _: CanReadSchedules) -> PinsView:
    """All pins, oldest first."""
    return PinsView(pins=[pin_view(pin) for pin in context.store.pins()])


@router.put("/pins")
def pin_schedule(body: PinRequest, context: Ctx, principal: CanWriteSchedules) -> PinView:
    """Serve this trial's schedule for the key, whatever is faster; without a trial, the default schedule."""
    pin = context.store.pin(
        body.workload, body.target, body.hardware, body.trial, body.note, _name_of(principal)
    )
    return pin_view(pin)


@router.delete("/pins", status_code=204)
def unpin_schedule(workload: Key, target: Key, hardware: Key, context: Ctx, _: CanWriteSchedules) -> Response:
    """End the pin of a key: what is best-known is served again."""
    if not context.store.unpin(workload, target, hardware):
        raise NotFound("pin", f"of workload {workload}, target {target}, hardware {hardware}")
    return Response(status_code=204)


@router.get("/freezes")
def list_freezes(context: Ctx, _: CanReadSchedules) -> FreezesView:
    """All freezes, oldest first."""
    return FreezesView(freezes=[FreezeView.model_validate(asdict(one)) for one in context.store.freezes()])


@router.post("/freezes", status_code=201)
def freeze_schedules(body: FreezeRequest, context: Ctx, principal: CanWriteSchedules) -> FreezeView:
    """Remember under a name which schedule is served for every key now; lookups may name it."""
    made = context.store.freeze(body.name, body.note, _name_of(principal))
    return FreezeView.model_validate(asdict(made))


@router.get("/freezes/{name}/changes")
def list_changes(name: Name, context: Ctx, _: CanReadSchedules) -> ChangesView:
    """Keys whose best-known schedule is another than the frozen one; new times change nothing."""
    changed = [ChangedKeyView.model_validate(asdict(one)) for one in context.store.changed_since(name)]
    return ChangesView(changed=changed)


@router.delete("/freezes/{name}", status_code=204)
def unfreeze_schedules(name: Name, context: Ctx, _: CanWriteSchedules) -> Response:
    """Forget a freeze."""
    context.store.unfreeze(name)
    return Response(status_code=204)


@router.post("/{trial}:retire")
def retire_schedule(
    trial: Annotated[str, Path(max_length=256)], body: RetireRequest, context: Ctx, _: CanWriteSchedules
) -> ReportView:
    """Never serve this trial's schedule again; the answer names what is best-known now."""
    best = context.store.retire(trial, body.reason)
    now = "nothing is best-known now" if best is None else f"trial {best.trial} is best-known now"
    return ReportView(outcome="retired", reason=now)


@router.post(":import")
def import_schedules(body: ImportRequest, context: Ctx, _: CanWriteSchedules) -> ImportView:
    """Take records of another store in: verified, keyed and replayed here. A bad line is named, and
    skipped."""
    return import_lines(context.store, context.parser, body.lines)


def _name_of(principal: Principal) -> str:
    return principal.name or "anonymous"
