"""Best-known schedules, for compilers that ask again and again: looking them up, and why one is served."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator
from typing import Annotated

from fastapi import APIRouter, Header, Query, Request
from starlette.responses import Response, StreamingResponse

from ...compiler.schedule_source import ALLOWED
from ...db.errors import NotFound
from ..auth import CanReadSchedules
from ..change_route import ChangeRoute
from ..context import Context, Ctx
from ..errors import InvalidRequest, NoSchedule
from ..paging import PageSize, PageToken, decode, encode
from ..requests import ReportRequest
from ..schedule_lines import export_lines, export_page
from ..schedule_presenter import explain, nearby_view, schedule_view
from ..schedule_views import (
    NEXT_PAGE_HEADER,
    ExplanationView,
    NearbysView,
    ReportView,
    SchedulesView,
    ScheduleView,
)
from ..unchanged import matches, unchanged, validators
from ..workloads import SpecError

router = APIRouter(prefix="/v1/schedules", tags=["schedules"], route_class=ChangeRoute)

Key = Annotated[str, Query(pattern="^[0-9a-f]{64}$", description="64 hexadecimal digits")]
Freeze = Annotated[
    str | None, Query(min_length=1, max_length=256, description="the name of a freeze to look into")
]
Allow = Annotated[
    str,
    Query(
        max_length=100,
        pattern="^[a-z_,]*$",
        description="what may be answered beside exact: same_family, transferred, default",
    ),
]
NEARBY = 32
_EXPORTED = 50
_LINES = "application/x-ndjson"
_KINDS = (*ALLOWED, "default")


@router.get("/best", response_model=ScheduleView, responses={304: {"description": "unchanged"}})
async def read_best(
    workload: Key,
    target: Key,
    hardware: Key,
    request: Request,
    context: Ctx,
    _: CanReadSchedules,
    allow: Allow = "",
    freeze: Freeze = None,
    if_none_match: Annotated[str | None, Header()] = None,
) -> Response:
    """The schedule to use for a workload and a target on a kind of hardware, and how it was found."""
    asked = (workload, target, hardware, _kinds(allow), freeze)
    mark: str | None = getattr(request.state, "mark", None)
    answer = await context.fresh.get(("best", *asked), lambda: _answer(context, *asked), mark)
    if isinstance(answer, str):
        raise NoSchedule(answer)
    body, etag = answer
    if matches(if_none_match, etag):
        return unchanged(etag)
    return Response(body, headers=validators(etag), media_type="application/json")


def _answer(
    context: Context, workload: str, target: str, hardware: str, allow: tuple[str, ...], freeze: str | None
) -> tuple[bytes, str] | str:
    """The whole answer and its tag, or why there is none."""
    try:
        view = _lookup(context, workload, target, hardware, allow, freeze)
    except NoSchedule as error:
        return str(error)
    body = view.model_dump_json().encode()
    return body, f'"{hashlib.sha256(body).hexdigest()[:32]}"'


@router.get("")
def list_schedules(
    context: Ctx,
    _: CanReadSchedules,
    page_size: PageSize = 50,
    page_token: PageToken = None,
) -> SchedulesView:
    """All best-known schedules, in the order of their keys; `pin` says where something else is served."""
    place = decode("schedules", page_token)
    page = context.store.kept(None if place is None else json.dumps(place.split("_")), page_size)
    views = [schedule_view(kept.schedule) for kept in page.items]
    after = None if page.next is None else "_".join(json.loads(page.next))
    return SchedulesView(schedules=views, next_page_token=encode("schedules", after))


@router.get("/explain")
def explain_schedule(
    workload: Key, target: Key, hardware: Key, context: Ctx, _: CanReadSchedules
) -> ExplanationView:
    """Why a lookup answers what it answers: what is served, what stands, what could be pinned, what was
    decided and what was retired."""
    return explain(context.store, workload, target, hardware)


@router.get("/nearby")
def list_nearby(
    workload: Key,
    structure: Key,
    context: Ctx,
    _: CanReadSchedules,
    limit: Annotated[int, Query(ge=1, le=NEARBY)] = NEARBY,
) -> NearbysView:
    """Best-known schedules of other keys, for a compiler that looks itself whether one applies."""
    found = context.store.nearby(workload, structure, limit)
    return NearbysView(schedules=[nearby_view(one) for one in found])


@router.get("/export", response_class=Response)
def export_schedules(
    context: Ctx,
    _: CanReadSchedules,
    page_size: Annotated[
        int | None, Query(ge=1, le=500, description="records of one page; without it, all in one answer")
    ] = None,
    page_token: PageToken = None,
) -> Response:
    """All best-known schedules, a record a line, as they are imported elsewhere; or a page of them, which
    ends after 4 MiB and says in the header `Tilewright-Next-Page` with which token the next begins."""
    if page_size is not None or page_token is not None:
        place = decode("export", page_token)
        after = None if place is None else json.dumps(place.split("_"))
        found, key = export_page(context.store, after, page_size or _EXPORTED)
        token = encode("export", None if key is None else "_".join(json.loads(key)))
        headers = {} if token is None else {NEXT_PAGE_HEADER: token}
        return Response("".join(line + "\n" for line in found), headers=headers, media_type=_LINES)

    def lines() -> Iterator[str]:
        for line in export_lines(context.store):
            yield line + "\n"

    return StreamingResponse(lines(), media_type=_LINES)


@router.post("/{trial}:report")
def report_schedule(trial: str, body: ReportRequest, context: Ctx, _: CanReadSchedules) -> ReportView:
    """Say that a schedule does not replay. The server looks for itself: it retires what does not replay here
    either, and keeps what does."""
    stored = context.store.trial(trial)
    job = context.store.job(stored.job)
    program, target = (
        context.store.workload(job.workload).program,
        context.store.target(job.target).description,
    )
    reason = context.parser.why_not(program, target, stored.trace)
    if reason is None:
        return ReportView(outcome="kept", reason="it replays with the server's compiler")
    context.store.retire(trial, f"{reason}; reported: {body.reason}"[: 32 << 10])
    return ReportView(outcome="retired", reason=reason)


def _lookup(
    context: Context, workload: str, target: str, hardware: str, allow: tuple[str, ...], freeze: str | None
) -> ScheduleView:
    """What is served, or may be. Raises NoSchedule."""
    best = context.store.best(workload, target, hardware, freeze)
    if best is not None and (best.kind != "default" or "default" not in allow):
        return schedule_view(best)
    missing = (
        f"no schedule is known for workload {workload}, target {target}, hardware {hardware}"
        if best is None
        else best.reason
    )
    if allow:
        try:
            program = context.store.workload(workload).program
            description = context.store.target(target).description
        except NotFound as error:
            raise NoSchedule(f"{missing}; {error}") from error
        if best is None and (others := tuple(kind for kind in allow if kind != "default")):
            found, why = _nearest(context, workload, program, description, (target, hardware), others)
            if found is not None:
                return found
            missing += f"; {why}" if why else ""
        if "default" in allow:
            return _default(context, (workload, target, hardware), program, description, missing)
    raise NoSchedule(f"{missing}; a job (POST /v1/jobs) finds one")


def _nearest(
    context: Context,
    workload: str,
    program: str,
    description: str,
    where: tuple[str, str],
    allow: tuple[str, ...],
) -> tuple[ScheduleView | None, str]:
    target, hardware = where
    try:
        facts = json.loads(context.store.hardware(hardware).facts)
    except NotFound as error:
        return None, str(error)
    near, why = context.parser.nearest(context.store, program, description, hardware, facts, allow)
    if near is None:
        return None, why
    stored = context.store.trial(near.trial)
    job = context.store.job(stored.job)
    assert job.hardware is not None, "what is best-known was measured on some hardware"
    source = context.store.standing(job.workload, job.target, job.hardware)
    if source is None or source.trial != near.trial:
        return None, f"trial {near.trial} has just given way to another: ask again"
    changes = {
        "kind": near.kind,
        "reason": near.reason,
        "workload": workload,
        "target": target,
        "hardware": hardware,
        "trace": json.loads(near.trace),
    }
    return schedule_view(source).model_copy(update=changes), ""


def _default(
    context: Context, key: tuple[str, str, str], program: str, description: str, reason: str
) -> ScheduleView:
    workload, target, hardware = key
    try:
        trace = context.parser.default_trace(program, description)
    except SpecError as error:
        raise NoSchedule(f"{reason}; {error}") from error
    known = context.store.standing(*key)
    baseline = None if known is None else known.baseline
    return ScheduleView(
        kind="default",
        reason=reason,
        workload=workload,
        target=target,
        hardware=hardware,
        trace=json.loads(trace),
        seconds=None if baseline is None or baseline.bound else baseline.seconds,
        trial=None if baseline is None else baseline.trial,
        speedup=1.0,
    )


def _kinds(allow: str) -> tuple[str, ...]:
    wanted = [word for word in allow.split(",") if word]
    for word in wanted:
        if word not in _KINDS:
            raise InvalidRequest.parameter("allow", f"{word!r} is none of {', '.join(_KINDS)}")
    return tuple(kind for kind in _KINDS if kind in wanted)
