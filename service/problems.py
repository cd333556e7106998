"""Problem documents as responses: what the framework and the middlewares send when a request is refused."""

from __future__ import annotations

import json
import logging
from collections.abc import Iterator, Sequence
from difflib import get_close_matches
from typing import Any

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from pydantic import BaseModel
from starlette.exceptions import HTTPException
from starlette.responses import JSONResponse, Response
from starlette.routing import BaseRoute, Match, Route
from starlette.types import Scope

from .errors import (
    MEDIA_TYPE,
    Answer,
    Fault,
    InvalidRequest,
    MethodNotAllowed,
    RouteNotFound,
    ServiceError,
    answer,
)

log = logging.getLogger("tilewright.service")

_PLACES = {"query": "query parameter", "header": "header", "path": "path parameter", "cookie": "cookie"}


def trace_id_of(scope: Scope) -> str:
    """The trace id that the tracing middleware put on this request."""
    trace_id: str = scope.get("state", {}).get("trace_id", "")
    return trace_id


def respond(error: Exception, scope: Scope) -> Response:
    """The response of an error, in the trace of the request."""
    made: Answer = answer(error, trace_id_of(scope))
    return JSONResponse(made.body, made.status, made.headers, MEDIA_TYPE)


def install(app: FastAPI, routes: Sequence[BaseRoute], *kinds: type[Exception]) -> None:
    """Make `app`, which has these routes, answer `kinds`, its own refusals and everything unforeseen with
    problem documents."""

    async def domain(request: Request, error: Exception) -> Response:
        return respond(error, request.scope)

    async def http(request: Request, error: Exception) -> Response:
        assert isinstance(error, HTTPException)
        return respond(_of_framework(routes, request, error), request.scope)

    async def invalid(request: Request, error: Exception) -> Response:
        assert isinstance(error, RequestValidationError)
        return respond(_of_validation(request, error), request.scope)

    async def unforeseen(request: Request, error: Exception) -> Response:
        state = request.scope.get("state", {})
        log.error(
            "%s %s failed",
            request.method,
            request.url.path,
            exc_info=error,
            extra={"trace_id": trace_id_of(request.scope), "request_id": state.get("span_id", "")},
        )
        response = respond(error, request.scope)
        # The web server closes the connection of a request that raised: a client must not send on it again.
        response.headers["Connection"] = "close"
        return response

    for kind in kinds:
        app.add_exception_handler(kind, domain)
    app.add_exception_handler(HTTPException, http)
    app.add_exception_handler(RequestValidationError, invalid)
    app.add_exception_handler(Exception, unforeseen)


def _of_framework(routes: Sequence[BaseRoute], request: Request, error: HTTPException) -> ServiceError:
    """A refusal of the router (404, 405) or of the framework's own reading of a request."""
    headers = dict(error.headers or {})
    if error.status_code == 404:
        return RouteNotFound(f"there is no route {request.url.path}; the routes are listed in /openapi.json")
    if error.status_code == 405:
        allowed = headers["Allow"] = _methods(routes, request, headers.get("Allow", ""))
        return MethodNotAllowed(
            f"{request.url.path} does not take {request.method}, only {allowed}", headers=headers
        )
    return InvalidRequest(str(error.detail), headers=headers)


def _methods(routes: Sequence[BaseRoute], request: Request, said: str) -> str:
    """All methods of the request's path: the framework has `said` those of one of its routes."""
    methods: set[str] = set()
    for route in routes:
        match, found = route.matches(request.scope)
        # `/v1/jobs/x:cancel` fits the route of a job of that name, too, but no id has a colon.
        named = any(":" in str(value) for value in found.get("path_params", {}).values())
        if isinstance(route, Route) and match is not Match.NONE and not named:
            methods |= set(route.methods or ())
    return ", ".join(sorted(methods)) or said


def _of_validation(request: Request, error: RequestValidationError) -> InvalidRequest:
    model = _body_model(request)
    faults = tuple(_fault(problem, model) for problem in error.errors())
    return InvalidRequest("; ".join(_place(f) + f.detail for f in faults), faults)


def _place(fault: Fault) -> str:
    where = fault.pointer if fault.pointer is not None else fault.parameter
    return f"{where}: " if where else ""


def _fault(problem: dict[str, Any], model: type[BaseModel] | None) -> Fault:
    where, *path = problem["loc"]
    detail = _say(problem, path, model)
    if where == "body":
        return Fault(detail, pointer="".join(f"/{_escape(step)}" for step in path))
    name = str(path[0]) if path else str(where)
    return Fault(f"{_PLACES.get(str(where), str(where))} {detail}", parameter=name)


def _escape(step: object) -> str:
    return str(step).replace("~", "~0").replace("/", "~1")


def _say(problem: dict[str, Any], path: list[Any], model: type[BaseModel] | None) -> str:
    """What was wrong and what would be right, of one problem that pydantic found."""
    if problem["type"] == "missing":
        return "is missing"
    if problem["type"] == "extra_forbidden":
        known = _known_keys(model, path[:-1])
        close = get_close_matches(str(path[-1]), known, n=1)
        hint = f"did you mean {close[0]!r}? " if close else ""
        return f"unknown key; {hint}known keys: {', '.join(known)}"
    said = problem["msg"].removeprefix("Input ").removeprefix("Value error, ")
    return f"{said}, got {_shorten(problem['input'])}"


def _shorten(value: object) -> str:
    text = json.dumps(value, ensure_ascii=False, default=repr)
    return text if len(text) <= 80 else text[:77] + "..."


def _body_model(request: Request) -> type[BaseModel] | None:
    field = getattr(request.scope.get("route"), "body_field", None)
    annotation = getattr(getattr(field, "field_info", None), "annotation", None)
    return annotation if isinstance(annotation, type) and issubclass(annotation, BaseModel) else None


def _known_keys(model: type[BaseModel] | None, path: list[Any]) -> list[str]:
    for step in path:
        if model is None:
            break
        info = model.model_fields.get(str(step))
        model = next(_models(info.annotation), None) if info else None
    return list(model.model_fields) if model else []


def _models(annotation: Any) -> Iterator[type[BaseModel]]:
    """The models of an annotation such as `Budget | None`."""
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        yield annotation
    for argument in getattr(annotation, "__args__", ()):
        yield from _models(argument)
