"""The route class of handlers that change something."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Coroutine
from typing import Any

from fastapi.encoders import jsonable_encoder
from fastapi.exceptions import RequestValidationError
from fastapi.routing import APIRoute
from pydantic import BaseModel
from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from ..db.errors import StoreError
from ..measure.messages import MessageError
from .auth import Principal
from .changes import Change, current, digest_of, key_of
from .context import Context
from .errors import InvalidRequest, ServiceError, answer

# Workers tell it again and again; what came of it is kept with the worker.
_UNAUDITED = frozenset({"report_health"})
CHANGING = frozenset({"POST", "PUT", "PATCH", "DELETE"})
_Handler = Callable[[Request], Coroutine[Any, Any, Response]]


class ChangeRoute(APIRoute):
    """Each request that is no GET is a Change: its handler runs in one transaction, together with the answer
    that is kept under the request's Idempotency-Key and an entry in the audit log. Its handler is no
    coroutine, and neither waits nor computes after its first write."""

    audited = True

    def __init__(self, path: str, endpoint: Callable[..., Any], **options: Any) -> None:
        if not inspect.iscoroutinefunction(endpoint):
            endpoint = _as_change(endpoint)
        super().__init__(path, endpoint, **options)

    def get_route_handler(self) -> _Handler:
        handle = super().get_route_handler()
        if not CHANGING.intersection(self.methods or ()):
            return handle

        async def changing(request: Request) -> Response:
            change = await self._change(request)
            token = current.set(change)
            try:
                return await handle(request)
            except (ServiceError, StoreError, MessageError) as error:
                await run_in_threadpool(change.refused, answer(error, change.trace_id).body["code"])
                raise
            except RequestValidationError:
                await run_in_threadpool(change.refused, InvalidRequest.code)
                raise
            finally:
                current.reset(token)

        return changing

    async def _change(self, request: Request) -> Change:
        context: Context = request.app.state.context
        who: Principal = request.state.principal
        key = key_of(request, who)
        return Change(
            store=context.store,
            in_flight=context.in_flight,
            who=who,
            verb=self.name,
            subject=request.url.path.replace("\0", "%00"),  # no database holds it
            trace_id=request.state.trace_id,
            audited=self.audited and self.name not in _UNAUDITED,
            key=key,
            asked="" if key is None else digest_of(request, await request.body()),
            status=self.status_code or 200,
        )


class MeasurementRoute(ChangeRoute):
    """The same for what workers send all the time, which the log of trials tells: it is not audited."""

    audited = False


def _as_change(endpoint: Callable[..., Any]) -> Callable[..., Any]:
    """The handler within the change that its request is, if it is one."""

    @functools.wraps(endpoint)
    def handler(*args: Any, **given: Any) -> Any:
        change = current.get()
        if change is None:
            return endpoint(*args, **given)
        return change.run(lambda: _response(endpoint(*args, **given), given, change.status))

    return handler


def _response(value: Any, given: dict[str, Any], status: int) -> Response:
    """What the framework would make of a handler's value, now: it is kept with the effect."""
    if isinstance(value, Response):
        return value
    headers: dict[str, str] = {}
    if (said := next((v for v in given.values() if isinstance(v, Response)), None)) is not None:
        # The framework gives handlers a response without a status, to set what they want.
        status = getattr(said, "status_code", None) or status
        headers = {name: v for name, v in said.headers.items() if not name.startswith("content-")}
    if isinstance(value, BaseModel):
        body = value.model_dump_json(by_alias=True).encode()
        return Response(body, status, headers, "application/json")
    return JSONResponse(jsonable_encoder(value), status, headers)
