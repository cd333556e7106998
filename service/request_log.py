"""An entry of the log for each request: what was asked by whom, how it was answered, and how long that took.

Changes and refusals are told at level info; what only reads, and what workers send all the time, at debug.
"""

from __future__ import annotations

import logging
import re
import time
from typing import Any

import structlog
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from .auth import address_of
from .change_route import CHANGING, ChangeRoute
from .metrics import HUNG_UP, method_of, route_of

log = logging.getLogger("tilewright.http")

_ID = re.compile(r"[A-Za-z0-9_-]{1,64}")
_NOUNS = {"job_id": "job", "lease_id": "lease", "worker_id": "worker", "token_id": "token"}


class RequestLog:
    """ASGI middleware, within Tracing: the entries that a request causes carry its trace and request ids."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        state = scope["state"]
        begun = time.perf_counter()
        status = HUNG_UP

        async def seen(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
            await send(message)

        with structlog.contextvars.bound_contextvars(trace_id=state["trace_id"], request_id=state["span_id"]):
            try:
                await self._app(scope, receive, seen)
            except BaseException:
                status = 500 if status == HUNG_UP else status
                raise
            finally:
                level = _level(scope, status)
                if log.isEnabledFor(level):
                    log.log(level, "request", extra=_fields(scope, status, time.perf_counter() - begun))


def _level(scope: Scope, status: int) -> int:
    route = scope.get("route")
    changes = scope["method"] in CHANGING and isinstance(route, ChangeRoute) and route.audited
    return logging.INFO if changes or status >= 400 else logging.DEBUG


def _fields(scope: Scope, status: int, seconds: float) -> dict[str, Any]:
    who = scope["state"].get("principal")
    said = {
        "method": method_of(scope),
        "route": route_of(scope),
        "status": status,
        "seconds": round(seconds, 6),
        "client": address_of(scope),
        "caller": (who.id or "anonymous") if who is not None else "unknown",
    }
    for parameter, noun in _NOUNS.items():
        value = scope.get("path_params", {}).get(parameter)
        if value is not None and _ID.fullmatch(value):
            said[noun] = value
    return said
