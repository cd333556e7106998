"""The HTTP API as an ASGI application, made of what it is handed."""

from __future__ import annotations

import threading
from collections.abc import Callable
from functools import partial
from importlib.metadata import version
from typing import Any

from fastapi import FastAPI
from fastapi.routing import APIRoute
from starlette.routing import BaseRoute

from ..db.errors import StoreError
from ..db.store import Store
from ..measure.messages import MessageError
from . import problems
from .auth import Authentication
from .context import Context
from .dispatch import Searching
from .errors import MEDIA_TYPE, ServiceError
from .fresh import Fresh
from .known_tokens import KnownTokens
from .limits import BodyLimits
from .presenter import Presenter
from .routes import (
    artifacts,
    builds,
    crashes,
    events,
    health,
    jobs,
    leases,
    operators,
    outside,
    schedules,
    tokens,
    trials,
    workers,
)
from .settings import Settings
from .tracing import Tracing
from .views import ProblemView
from .work_watch import WorkWatch
from .workloads import WorkloadParser

_PROBLEM: dict[int | str, dict[str, Any]] = {
    code: {"model": ProblemView, "description": "a problem document (RFC 9457)"} for code in ("4XX", "5XX")
}


def create_app(
    store: Store,
    settings: Settings,
    dispatcher: Searching,
    parser: WorkloadParser,
    stopping: threading.Event | None = None,
) -> FastAPI:
    """The application over `store`. Setting `stopping` ends long polls and streams, so that a server can
    end."""
    app = FastAPI(
        title="Tilewright",
        description="Auto-tuning search service for tensor kernels",
        version=version("tilewright"),
        docs_url=None,  # their pages load scripts from elsewhere
        redoc_url=None,
        generate_unique_id_function=_operation_id,
        responses=_PROBLEM,
    )
    stopping = stopping or threading.Event()
    fresh = Fresh(store)
    app.state.context = Context(
        store=store,
        settings=settings,
        dispatcher=dispatcher,
        parser=parser,
        presenter=Presenter(store, parser),
        work=WorkWatch(store, stopping),
        fresh=fresh,
        stopping=stopping,
        schema=store.schema_version(),
    )
    routes: list[BaseRoute] = []
    for module in (
        jobs,
        trials,
        outside,
        events,
        operators,
        schedules,
        workers,
        leases,
        builds,
        artifacts,
        crashes,
        tokens,
        health,
    ):
        app.include_router(module.router)
        routes += module.router.routes
    problems.install(app, routes, ServiceError, StoreError, MessageError)
    # The last one added is the outermost: a request is traced, then known, then read.
    app.add_middleware(
        BodyLimits,
        max_bytes=settings.max_body_bytes,
        max_depth=settings.max_json_depth,
        max_artifact_bytes=settings.max_artifact_bytes,
    )
    app.add_middleware(Authentication, tokens=KnownTokens(store, fresh), host=settings.host)
    app.add_middleware(Tracing)
    app.openapi = partial(_openapi, app, app.openapi)  # type: ignore[method-assign]
    return app


def _openapi(app: FastAPI, original: Callable[[], dict[str, Any]]) -> dict[str, Any]:
    """The framework's document, with problems under their own media type."""
    if app.openapi_schema is None:
        schema = original()
        for path in schema["paths"].values():
            for operation in path.values():
                for code in ("4XX", "5XX"):
                    response = operation["responses"][code]
                    (written,) = response["content"].values()
                    response["content"] = {MEDIA_TYPE: written}
    assert app.openapi_schema is not None, "the original keeps what it made"
    return app.openapi_schema


def _operation_id(route: APIRoute) -> str:
    return route.name
