"""Best-known schedules, for compilers that ask again and again."""

from __future__ import annotations

import hashlib
from typing import Annotated

from fastapi import APIRouter, Header, Query
from starlette.responses import Response

from ..auth import CanReadSchedules
from ..context import Ctx
from ..errors import NoSchedule
from ..views import ScheduleView

router = APIRouter(prefix="/v1/schedules", tags=["schedules"])

Key = Annotated[str, Query(pattern="^[0-9a-f]{64}$", description="64 hexadecimal digits")]


@router.get("/best", response_model=ScheduleView, responses={304: {"description": "unchanged"}})
def read_best(
    workload: Key,
    target: Key,
    hardware: Key,
    context: Ctx,
    _: CanReadSchedules,
    if_none_match: Annotated[str | None, Header()] = None,
) -> Response:
    """The best-known schedule of a workload for a target on a kind of hardware, and how it was found."""
    best = context.store.best(workload, target, hardware)
    if best is None:
        raise NoSchedule(
            f"no schedule is known for workload {workload}, target {target}, hardware {hardware}; "
            "a job (POST /v1/jobs) finds one"
        )
    body = context.presenter.schedule(best).model_dump_json().encode()
    etag = f'"{hashlib.sha256(body).hexdigest()[:32]}"'
    headers = {"ETag": etag, "Cache-Control": "no-cache"}
    if matches(if_none_match, etag):
        return Response(status_code=304, headers=headers)
    return Response(body, headers=headers, media_type="application/json")


def matches(if_none_match: str | None, etag: str) -> bool:
    """Whether one of the tags is this one, by the weak comparison that RFC 9110 asks for."""
    if if_none_match is None:
        return False
    tags = [tag.strip().removeprefix("W/") for tag in if_none_match.split(",")]
    return "*" in tags or etag in tags
