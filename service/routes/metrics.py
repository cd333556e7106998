"""The metrics of this process, in Prometheus' text format."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Depends, Request
from fastapi.security import HTTPAuthorizationCredentials
from starlette.responses import Response

from ..auth import Requires, bearer
from ..context import Ctx
from ..metrics import CONTENT_TYPE

router = APIRouter(tags=["health"])
_reader = Requires("jobs:write", "schedules:read", anonymous=True)


async def _may_read(
    request: Request,
    context: Ctx,
    credentials: Annotated[HTTPAuthorizationCredentials | None, Depends(bearer)],
) -> None:
    if not context.settings.metrics_open:
        await _reader(request, credentials)


@router.get(
    "/metrics",
    response_class=Response,
    dependencies=[Depends(_may_read)],
    responses={200: {"content": {"text/plain": {"schema": {"type": "string"}}}}},
)
def read_metrics(context: Ctx) -> Response:
    """Of this process, and of the database. Whoever may read jobs may read it; with the setting
    `metrics_open`, everyone."""
    return Response(context.metrics.text(), media_type=CONTENT_TYPE)
