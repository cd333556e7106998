"""Builds: a builder takes what devices wait for, keeps it alive, and says what came of it."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import APIRouter, Body, Request
from starlette.concurrency import run_in_threadpool
from starlette.responses import JSONResponse, Response

from ...db.build_records import BuildItem
from ...measure.messages import MessageError
from ...measure.run_only.messages import MAX_BUILDS, BuildAnswer
from ..auth import IsBuilder
from ..build_calls import BUILD_SECONDS, build_lease, build_result
from ..change_route import MeasurementRoute
from ..context import Ctx
from ..errors import InvalidRequest, ProtocolRefused
from ..lease_calls import check_protocol, integer, read_fields, seconds, text
from ..waiting import poll

_LOOK_EVERY = 0.25

router = APIRouter(prefix="/v1/builds", tags=["builders"], route_class=MeasurementRoute)

Call = Annotated[dict[str, Any], Body()]


@router.post("", responses={204: {"description": "nothing to build within wait_seconds"}})
async def take_builds(body: Call, request: Request, context: Ctx, _: IsBuilder) -> Response:
    """Programs and data that devices without a compiler wait for; 204 when there are none."""
    check_protocol(body)
    read_fields(body, "builder", "codegen", "max_items", "wait_seconds")
    builder, codegen = text(body, "builder"), text(body, "codegen")
    if codegen != context.parser.codegen_version():
        raise ProtocolRefused(
            f"this server's code generator has version {context.parser.codegen_version()} and the builder's "
            f"{codegen}: install the server's version of tilewright on the builder's machine"
        )
    most = integer(body, "max_items", 1, MAX_BUILDS)
    wait = min(context.settings.lease_wait, seconds(body, "wait_seconds"))

    async def look() -> list[BuildItem] | None:
        # A builder that hung up would leave its builds lying until they expire.
        if await request.is_disconnected():
            return None
        found = await run_in_threadpool(context.store.claim_builds, builder, most, BUILD_SECONDS)
        return found or None

    items = await poll(context, look, wait, _LOOK_EVERY)
    if items is None:
        return Response(status_code=204)
    return JSONResponse(build_lease(items, context.settings).to_json())


@router.post(":renew", status_code=204)
def renew_builds(body: Call, context: Ctx, _: IsBuilder) -> Response:
    """Keep builds alive, each named with its attempt; those of others are left alone."""
    check_protocol(body)
    read_fields(body, "builder", "builds")
    context.store.renew_builds(text(body, "builder"), _held(body["builds"]), BUILD_SECONDS)
    return Response(status_code=204)


@router.post(":release", status_code=204)
def release_builds(body: Call, context: Ctx, _: IsBuilder) -> Response:
    """Give back all that this builder holds."""
    check_protocol(body)
    read_fields(body, "builder")
    context.store.release_builds(text(body, "builder"))
    return Response(status_code=204)


@router.post("/{build_id}:settle", status_code=204)
def settle_build(build_id: str, body: Call, context: Ctx, _: IsBuilder) -> Response:
    """Say what came of a build: an artifact that was put before, or a failure."""
    check_protocol(body)
    read_fields(body, "builder", "answer")
    answer = BuildAnswer.from_json(body["answer"], "/answer")
    if answer.build != build_id:
        raise InvalidRequest.at("/answer/build", f"must be the build of the path, {build_id}")
    context.store.settle_build(text(body, "builder"), build_id, answer.attempt, build_result(answer))
    return Response(status_code=204)


def _held(value: object) -> list[tuple[str, int]]:
    if not isinstance(value, list) or len(value) > MAX_BUILDS:
        raise MessageError(f"expected an array of at most {MAX_BUILDS} builds", "/builds")
    held = []
    for i, one in enumerate(value):
        if not isinstance(one, dict):
            raise MessageError("expected an object with build and attempt", f"/builds/{i}")
        read_fields({"protocol": 0, **one}, "build", "attempt")
        held.append((text(one, "build"), integer(one, "attempt", 1, 2**31)))
    return held
