"""The HTTP API as an ASGI application, made of what it is handed."""

from __future__ import annotations

import threading
from importlib.metadata import version
from typing import Any, cast

from fastapi import Depends, FastAPI
from fastapi.routing import APIRoute

from ..db.errors import StoreError
from ..db.store import Store
from ..measure.messages import MessageError
from . import openapi, problems
from .auth import Authentication
from .changes import AfterChange, InFlightKeys
from .context import Context
from .dispatch import Searching
from .errors import ServiceError
from .fresh import Fresh
from .known_tokens import KnownTokens
from .limits import BodyLimits
from .metrics import Measuring, Metrics
from .parameter_check import check_parameters
from .plausible import Roofline
from .presenter import Presenter
from .rate_limits import Buckets, RateLimits
from .request_log import RequestLog
from .routes import (
    artifacts,
    audit,
    builds,
    crashes,
    events,
    fixed_schedules,
    health,
    jobs,
    leases,
    operators,
    outside,
    own_token,
    schedules,
    tokens,
    trials,
    workers,
)
from .routes import metrics as metrics_route
from .settings import Settings
from .tracing import Tracing
from .unchanged import Unchanged
from .work_watch import WorkWatch
from .workloads import WorkloadParser

ROUTES = (
    jobs,
    trials,
    outside,
    events,
    operators,
    fixed_schedules,
    schedules,
    workers,
    leases,
    builds,
    artifacts,
    crashes,
    tokens,
    own_token,
    audit,
    health,
    metrics_route,
)


def create_app(
    store: Store,
    settings: Settings,
    dispatcher: Searching,
    parser: WorkloadParser,
    stopping: threading.Event | None = None,
    process: int = 0,
) -> FastAPI:
    """The application over `store`. Setting `stopping` ends long polls and streams, so that a server can
    end. `process`: its number among several behind one socket."""
    metrics = Metrics(store.census, parser.codegen_version(), process)
    store.watch(metrics.transaction)
    stopping = stopping or threading.Event()
    fresh = Fresh(store)
    app = bare_app()
    app.state.context = Context(
        store=store,
        settings=settings,
        dispatcher=AfterChange(dispatcher),
        parser=parser,
        presenter=Presenter(store, parser, 3 * (settings.build_seconds + settings.run_seconds)),
        work=WorkWatch(store, stopping),
        fresh=fresh,
        roofline=Roofline(store, parser),
        stopping=stopping,
        schema=store.schema_version(),
        in_flight=InFlightKeys(),
        metrics=metrics,
    )
    # The last one added is the outermost: a request is traced, logged, measured, known, counted, answered if
    # nothing has changed, read.
    app.add_middleware(
        BodyLimits,
        max_bytes=settings.max_body_bytes,
        max_depth=settings.max_json_depth,
        max_artifact_bytes=settings.max_artifact_bytes,
    )
    app.add_middleware(Unchanged)
    buckets = Buckets(settings.requests_per_second, settings.requests_burst)
    app.add_middleware(RateLimits, buckets=buckets)
    tokens_known = KnownTokens(store, fresh)
    app.add_middleware(Authentication, tokens=tokens_known, host=settings.host, failed=buckets)
    app.add_middleware(Measuring, metrics=metrics)
    app.add_middleware(RequestLog)
    app.add_middleware(Tracing)
    return app


def bare_app() -> FastAPI:
    """The routes alone, which make the OpenAPI document; `create_app` makes them work."""
    app = FastAPI(
        title="Tilewright",
        description="Auto-tuning search service for tensor kernels",
        version=version("tilewright"),
        docs_url=None,  # their pages load scripts from elsewhere
        redoc_url=None,
        # Behind whatever ends TLS they lead to plain http, and tokens with them.
        redirect_slashes=False,
        generate_unique_id_function=_operation_id,
        dependencies=[Depends(check_parameters)],
    )
    routes: list[APIRoute] = []
    for module in ROUTES:
        app.include_router(module.router)
        routes += cast("list[APIRoute]", module.router.routes)
    problems.install(app, routes, ServiceError, StoreError, MessageError)

    def described() -> dict[str, Any]:
        if app.openapi_schema is None:
            app.openapi_schema = openapi.document(app, routes)
        return app.openapi_schema

    app.openapi = described  # type: ignore[method-assign]
    return app


def _operation_id(route: APIRoute) -> str:
    return route.name
