"""What tells a supervisor, a load balancer and a client whether and what this server is."""

from __future__ import annotations

from importlib.metadata import version

from fastapi import APIRouter

from ...measure.messages import PROTOCOL
from ..context import Ctx
from ..errors import NotReady
from ..views import HealthView, VersionView

router = APIRouter(tags=["health"])


@router.head("/livez", include_in_schema=False)
@router.get("/livez")
async def live() -> HealthView:
    """The process answers. It asks nothing else."""
    return HealthView(status="ok")


@router.head("/readyz", include_in_schema=False)
@router.get("/readyz")
def ready(context: Ctx) -> HealthView:
    """The database is reachable, at this server's schema, and searches are being run."""
    context.store.ping()
    if (found := context.store.schema_version()) != context.schema:
        raise NotReady(f"the database is at schema {found}, this server reads {context.schema}: restart it")
    if (problem := context.dispatcher.problem()) is not None:
        raise NotReady(problem)
    if context.stopping.is_set():
        raise NotReady("the server is stopping")
    return HealthView(status="ok")


@router.head("/version", include_in_schema=False)
@router.get("/version")
def read_version(context: Ctx) -> VersionView:
    """What answers here, by which a client knows that it talks to tilewright."""
    return VersionView(
        service="tilewright",
        version=version("tilewright"),
        protocol=PROTOCOL,
        codegen=context.parser.codegen_version(),
    )
