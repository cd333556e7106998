"""Best-known schedules, for compilers that ask again and again."""

from __future__ import annotations

import hashlib
from typing import Annotated

from fastapi import APIRouter, Header, Query, Request
from starlette.responses import Response

from ..auth import CanReadSchedules
from ..context import Context, Ctx
from ..errors import NoSchedule
from ..views import ScheduleView

router = APIRouter(prefix="/v1/schedules", tags=["schedules"])

Key = Annotated[str, Query(pattern="^[0-9a-f]{64}$", description="64 hexadecimal digits")]


@router.get("/best", response_model=ScheduleView, responses={304: {"description": "unchanged"}})
async def read_best(
    workload: Key,
    target: Key,
    hardware: Key,
    request: Request,
    context: Ctx,
    _: CanReadSchedules,
    if_none_match: Annotated[str | None, Header()] = None,
) -> Response:
    """The best-known schedule of a workload for a target on a kind of hardware, and how it was found."""
    key = (workload, target, hardware)
    mark: str | None = getattr(request.state, "mark", None)
    answer = await context.fresh.get(("best", *key), lambda: _answer(context, *key), mark)
    if answer is None:
        raise NoSchedule(
            f"no schedule is known for workload {workload}, target {target}, hardware {hardware}; "
            "a job (POST /v1/jobs) finds one"
        )
    body, etag = answer
    headers = {"ETag": etag, "Cache-Control": "no-cache"}
    if matches(if_none_match, etag):
        return Response(status_code=304, headers=headers)
    return Response(body, headers=headers, media_type="application/json")


def _answer(context: Context, workload: str, target: str, hardware: str) -> tuple[bytes, str] | None:
    """The whole answer and its tag."""
    best = context.store.best(workload, target, hardware)
    if best is None:
        return None
    body = context.presenter.schedule(best).model_dump_json().encode()
    return body, f'"{hashlib.sha256(body).hexdigest()[:32]}"'


def matches(if_none_match: str | None, etag: str) -> bool:
    """Whether one of the tags is this one, by the weak comparison that RFC 9110 asks for."""
    if if_none_match is None:
        return False
    tags = [tag.strip().removeprefix("W/") for tag in if_none_match.split(",")]
    return "*" in tags or etag in tags
