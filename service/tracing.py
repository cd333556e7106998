"""One trace id for each request: the caller's (W3C Trace Context), or a new one; sent back and in every
problem."""

from __future__ import annotations

import secrets

from starlette.datastructures import Headers, MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from .traces import trace_id_of


class Tracing:
    """ASGI middleware: `state["trace_id"]` and `state["span_id"]` of the request, and the headers
    `X-Trace-Id` and `traceresponse` of its answer."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        trace_id = trace_id_of(Headers(scope=scope).get("traceparent", "")) or secrets.token_hex(16)
        span_id = secrets.token_hex(8)
        scope.setdefault("state", {}).update(trace_id=trace_id, span_id=span_id)

        async def traced(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                headers["X-Trace-Id"] = trace_id
                headers["traceresponse"] = f"00-{trace_id}-{span_id}-01"
            await send(message)

        await self._app(scope, receive, traced)
