"""Artifacts: bytes under their SHA-256, put by builders and fetched by devices."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Header, Path, Request
from starlette.concurrency import run_in_threadpool
from starlette.responses import Response

from ..auth import IsBuilder, IsDevice
from ..context import Ctx
from ..unchanged import matches

router = APIRouter(prefix="/v1/artifacts", tags=["builders"])

MEDIA_TYPE = "application/octet-stream"
Digest = Annotated[str, Path(pattern="^[0-9a-f]{64}$", description="SHA-256 in hexadecimal digits")]
_BYTES = {"content": {MEDIA_TYPE: {"schema": {"type": "string", "format": "binary"}}}}


@router.put("/{sha256}", status_code=204, openapi_extra={"requestBody": {"required": True, **_BYTES}})
async def put_artifact(sha256: Digest, request: Request, context: Ctx, _: IsBuilder) -> Response:
    """Keep bytes under their SHA-256; 422 where it is not theirs. The same again has no effect."""
    data = await request.body()
    most = context.settings.artifact_store_bytes
    await run_in_threadpool(context.store.put_artifact, sha256, data, most)
    return Response(status_code=204)


@router.get(
    "/{sha256}",
    response_class=Response,
    responses={200: _BYTES, 304: {"description": "the caller has these bytes"}},
)
def read_artifact(
    sha256: Digest, context: Ctx, _: IsDevice, if_none_match: Annotated[str | None, Header()] = None
) -> Response:
    """The bytes, which never change."""
    headers = {"ETag": f'"{sha256}"', "Cache-Control": "private, max-age=31536000, immutable"}
    data = context.store.artifact(sha256)
    if matches(if_none_match, f'"{sha256}"'):
        return Response(status_code=304, headers=headers)
    return Response(data, headers=headers, media_type=MEDIA_TYPE)
