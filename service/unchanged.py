"""Lookups that have not changed: a 304 for whoever has the answer already, before a route is looked for."""

from __future__ import annotations

from collections import OrderedDict
from dataclasses import dataclass
from typing import Any

from starlette.datastructures import Headers
from starlette.responses import Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from .auth import Principal

_PATHS = frozenset({"/v1/schedules/best"})
"""Their answers follow from the query and the store alone, for each token."""

_MOST = 4096
_LONGEST = 1024


@dataclass(frozen=True, slots=True)
class _Answer:
    """The ETag of an answer, at a mark of the store; `route`: who gave it, by which requests are counted."""

    mark: str
    etag: str
    route: Any


class Unchanged:
    """ASGI middleware: answers a conditional lookup that a route has answered at the same mark of the store,
    to the same token and the same query. For the event loop alone."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app
        self._known: OrderedDict[tuple[str | None, str, bytes], _Answer] = OrderedDict()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        mark = scope["state"].get("mark") if _is_lookup(scope) else None
        if mark is None:
            await self._app(scope, receive, send)
            return
        who: Principal = scope["state"]["principal"]
        key = who.id, scope["path"], scope["query_string"]
        known = self._known.get(key)
        if known is not None and known.mark == mark and matches(_said(scope), known.etag):
            self._known.move_to_end(key)
            scope["route"] = known.route
            await unchanged(known.etag)(scope, receive, send)
            return

        async def noted(message: Message) -> None:
            if message["type"] == "http.response.start" and message["status"] in (200, 304):
                etag = Headers(raw=message["headers"]).get("etag")
                if etag is not None:
                    self._note(key, _Answer(mark, etag, scope.get("route")))
            await send(message)

        await self._app(scope, receive, noted)

    def _note(self, key: tuple[str | None, str, bytes], answer: _Answer) -> None:
        self._known[key] = answer
        self._known.move_to_end(key)
        if len(self._known) > _MOST:
            self._known.popitem(last=False)


def unchanged(etag: str) -> Response:
    return Response(status_code=304, headers=validators(etag))


def validators(etag: str) -> dict[str, str]:
    """What an answer with this ETag says of how long it may be kept: asked for again each time."""
    return {"ETag": etag, "Cache-Control": "no-cache"}


def matches(if_none_match: str | None, etag: str) -> bool:
    """Whether one of the tags is this one, by the weak comparison that RFC 9110 asks for."""
    if if_none_match is None:
        return False
    tags = [tag.strip().removeprefix("W/") for tag in if_none_match.split(",")]
    return "*" in tags or etag in tags


def _is_lookup(scope: Scope) -> bool:
    if scope["type"] != "http" or scope["method"] != "GET" or scope["path"] not in _PATHS:
        return False
    return len(scope["query_string"]) <= _LONGEST


def _said(scope: Scope) -> str | None:
    """The tags of a request that says them once."""
    said = Headers(scope=scope).getlist("if-none-match")
    return said[0] if len(said) == 1 else None
