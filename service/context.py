"""What route handlers work with, handed in by `create_app`."""

from __future__ import annotations

import threading
from dataclasses import dataclass
from typing import Annotated

from fastapi import Depends, Request

from ..db.store import Store
from .dispatch import Searching
from .fresh import Fresh
from .presenter import Presenter
from .settings import Settings
from .work_watch import WorkWatch
from .workloads import WorkloadParser


@dataclass(frozen=True, slots=True)
class Context:
    """`stopping` is set when the server ends: long polls answer, streams end."""

    store: Store
    settings: Settings
    dispatcher: Searching
    parser: WorkloadParser
    presenter: Presenter
    work: WorkWatch
    fresh: Fresh
    stopping: threading.Event
    schema: str


async def _context(request: Request) -> Context:  # what is not asynchronous is called in a thread
    context: Context = request.app.state.context
    return context


Ctx = Annotated[Context, Depends(_context)]
