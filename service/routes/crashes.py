"""Candidates that took workers with them: list them, and let one run again."""

from __future__ import annotations

from fastapi import APIRouter
from starlette.responses import Response

from ..auth import CanReadWorkers, IsAdmin
from ..change_route import ChangeRoute
from ..context import Ctx
from ..presenter import crash_view
from ..requests import ClearCrashRequest
from ..views import CrashesView
from .schedules import Key

router = APIRouter(prefix="/v1/crashes", tags=["workers"], route_class=ChangeRoute)


@router.get("")
def list_crashes(context: Ctx, _: CanReadWorkers, hardware: Key | None = None) -> CrashesView:
    """The newest 500 candidates that workers were lost with."""
    return CrashesView(crashes=[crash_view(crash) for crash in context.store.crashes(hardware)])


@router.post(":clear", status_code=204)
def clear_crash(body: ClearCrashRequest, context: Ctx, _: IsAdmin) -> Response:
    """Forget the losses of a candidate on a kind of hardware, so that it may run there again."""
    context.store.clear_crashes(body.candidate, body.hardware)
    context.dispatcher.wake()
    return Response(status_code=204)
