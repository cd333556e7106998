"""The OpenAPI document: what the framework knows of the routes, and what it does not.

`python -m tilewright.service.openapi docs/openapi.json` writes the document that is committed.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from fastapi import FastAPI
from fastapi.openapi.utils import get_openapi
from fastapi.routing import APIRoute

from .auth import Requires
from .change_route import CHANGING, ChangeRoute
from .changes import KEY_HEADER
from .errors import MEDIA_TYPE
from .views import ProblemView
from .wire_schema import ANSWERS, CALLS, components

_REF = "#/components/schemas/"
NAMING = ("read_best", "pin_schedule", "unpin_schedule")
"""Routes that name what may not be there, though not in their paths."""

_TITLES = {
    400: "The body is not JSON",
    401: "A token is needed, or it is wrong",
    403: "The token does not allow this",
    404: "There is no such thing",
    409: "The request is out of date, or another one with its key is being worked on",
    413: "The body is too large",
    415: "The body is not application/json",
    422: "The request does not say what this route needs",
    426: "The server does not speak the worker's protocol",
    429: "Too many requests, or more than the token may have; Retry-After says when to ask again",
    500: "The server failed",
    503: "The server or its database cannot serve now",
    507: "The database's disk is full; nothing was stored",
}
_EXAMPLE = {
    "type": "urn:tilewright:problem:not-found",
    "title": "There is no such thing",
    "status": 404,
    "code": "not-found",
    "detail": "there is no job 'job_0123456789ab'",
    "trace_id": "0af7651916cd43dd8448eb211c80319c",
}
_KEY_PARAMETER = {
    "name": KEY_HEADER,
    "in": "header",
    "required": False,
    "description": "the same key again, within 24 h: the same answer, and no second effect",
    "schema": {"type": "string", "pattern": "^[!-~]{1,255}$"},
    "example": "4f1c6f0e-9d0b-4f3f-8a55-6f2f0f7a6a55",
}


def document(app: FastAPI, routes: Iterable[APIRoute]) -> dict[str, Any]:
    """The document of an application that has these routes."""
    made = get_openapi(title=app.title, version=app.version, description=app.description, routes=app.routes)
    schemas = made["components"]["schemas"]
    for unused in ("HTTPValidationError", "ValidationError"):
        schemas.pop(unused, None)
    problem = ProblemView.model_json_schema(ref_template=_REF + "{model}")
    schemas.update(problem.pop("$defs"))
    schemas["ProblemView"] = {**problem, "examples": [_EXAMPLE]}
    schemas.update(components())
    for route in routes:
        if route.include_in_schema:
            for method in route.methods or ():
                _complete(made["paths"][route.path][method.lower()], route)
    return made


def _complete(operation: dict[str, Any], route: APIRoute) -> None:
    needed = next((d.call for d in route.dependant.dependencies if isinstance(d.call, Requires)), None)
    if needed is not None:
        operation["security"] = [*([{}] if needed.anonymous else []), {"HTTPBearer": []}]
        operation["description"] += f"\n\nNeeds a token of scope {needed.needed}."
    elif "security" in operation:  # by a setting
        operation["security"].insert(0, {})
    for response in operation["responses"].values():
        if response.get("content") == {}:
            del response["content"]
    if route.name in CALLS:
        operation["requestBody"] = {
            "required": True,
            "content": {"application/json": {"schema": CALLS[route.name]}},
        }
    if route.name in ANSWERS:
        given = operation["responses"][str(route.status_code or 200)]
        given["content"] = {"application/json": {"schema": ANSWERS[route.name]}}
    if _takes_a_key(route):
        operation.setdefault("parameters", []).append(_KEY_PARAMETER)
    operation["responses"].pop("422", None)
    for status in _refusals(operation, route, "security" in operation):
        operation["responses"][str(status)] = {
            "description": _TITLES[status],
            "content": {MEDIA_TYPE: {"schema": {"$ref": f"{_REF}ProblemView"}}},
        }


def _takes_a_key(route: APIRoute) -> bool:
    changes = isinstance(route, ChangeRoute) and hasattr(route.endpoint, "__wrapped__")
    return changes and bool(CHANGING.intersection(route.methods or ()))


def _refusals(operation: dict[str, Any], route: APIRoute, known: bool) -> list[int]:
    """The statuses with which this route may refuse a request."""
    found = {500}
    if known:
        found |= {401, 403, 422, 429, 503}
    if CHANGING.intersection(route.methods or ()):
        found |= {409, 413, 415, 422, 507}
    if "POST" in (route.methods or ()) or "requestBody" in operation:
        found.add(400)
    if operation.get("parameters"):
        found.add(422)
    if "{" in route.path or route.name in NAMING:
        found.add(404)
    if route.name in CALLS:
        found |= {404, 426}
    if route.name == "ready":
        found.add(503)
    return sorted(found)


def text(app: FastAPI) -> str:
    """The document as it is committed."""
    return json.dumps(app.openapi(), indent=1, sort_keys=True, ensure_ascii=False) + "\n"


def main(arguments: list[str]) -> int:
    from .app import bare_app

    (path,) = arguments
    Path(path).write_text(text(bare_app()), "utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
