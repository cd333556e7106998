"""One trace id for each request: the caller's (W3C `traceparent`), or a new one; sent back and in every
problem."""

from __future__ import annotations

import re
import secrets

from starlette.datastructures import Headers, MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send

_TRACEPARENT = re.compile(r"[0-9a-f]{2}-([0-9a-f]{32})-[0-9a-f]{16}-[0-9a-f]{2}(?:-.*)?")


class Tracing:
    """ASGI middleware: `state["trace_id"]` of the request, and the header `X-Trace-Id` of its answer."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        trace_id = _trace_id(Headers(scope=scope).get("traceparent", ""))
        scope.setdefault("state", {})["trace_id"] = trace_id

        async def traced(message: Message) -> None:
            if message["type"] == "http.response.start":
                MutableHeaders(scope=message)["X-Trace-Id"] = trace_id
            await send(message)

        await self._app(scope, receive, traced)


def _trace_id(traceparent: str) -> str:
    given = _TRACEPARENT.fullmatch(traceparent)
    # All zeros is "no trace" in the W3C format.
    return given[1] if given and given[1].strip("0") else secrets.token_hex(16)
