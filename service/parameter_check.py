"""Parameters of the path and the query that no route can mean.

A query parameter that no route knows, or that stands twice, is refused: a filter that is ignored gives a
wrong list. So is a NUL, which no database holds.
"""

from __future__ import annotations

from collections import Counter
from difflib import get_close_matches

from fastapi import Request
from fastapi.routing import APIRoute

from .auth import OPEN_PATHS
from .errors import InvalidRequest


async def check_parameters(request: Request) -> None:
    """A dependency of every route but those of health, which whatever asks may decorate."""
    route = request.scope.get("route")
    if not isinstance(route, APIRoute) or route.path in OPEN_PATHS:
        return
    for name, value in request.path_params.items():
        _check_text(name, str(value), "path")
    if request.url.query:
        _check_query(route, request)


def _check_query(route: APIRoute, request: Request) -> None:
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
        _check_text(name, request.query_params[name], "query")


def _check_text(name: str, value: str, where: str) -> None:
    if "\0" in value:
        raise InvalidRequest.parameter(name, f"{where} parameter {name} holds the character NUL")


def _known(route: APIRoute) -> tuple[str, ...]:
    names: list[str] = []
    found = [route.dependant]
    while found:
        dependant = found.pop()
        names += [parameter.alias for parameter in dependant.query_params]
        found += dependant.dependencies
    return tuple(names)
