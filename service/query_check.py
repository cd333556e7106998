"""A query parameter that no route knows, or that stands twice, is refused: a filter that is ignored gives a
wrong list."""

from __future__ import annotations

from collections import Counter
from difflib import get_close_matches

from fastapi import Request
from fastapi.routing import APIRoute

from .auth import OPEN_PATHS
from .errors import InvalidRequest


async def check_query(request: Request) -> None:
    """A dependency of every route but those of health, which whatever asks may decorate."""
    route = request.scope.get("route")
    if not request.url.query or not isinstance(route, APIRoute) or route.path in OPEN_PATHS:
        return
    known = _known(route)
    given = Counter(name for name, _ in request.query_params.multi_items())
    for name, count in given.items():
        if name not in known:
            close = get_close_matches(name, known, n=1)
            hint = f"did you mean {close[0]!r}? " if close else ""
            names = ", ".join(known) or "none"
            raise InvalidRequest.parameter(
                name[:80], f"unknown query parameter; {hint}known parameters: {names}"
            )
        if count > 1:
            raise InvalidRequest.parameter(name, f"stands {count} times in the query; say it once")


def _known(route: APIRoute) -> tuple[str, ...]:
    names: list[str] = []
    found = [route.dependant]
    while found:
        dependant = found.pop()
        names += [parameter.alias for parameter in dependant.query_params]
        found += dependant.dependencies
    return tuple(names)
