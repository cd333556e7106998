"""What route handlers work with, handed in by `create_app`."""

from __future__ import annotations

import threading
from dataclasses import dataclass
from typing import Annotated

from fastapi import Depends, Request

from ..db.records import Job
from ..db.store import Store
from .auth import Principal
from .changes import AfterChange, InFlightKeys
from .fresh import Fresh
from .metrics import Metrics
from .plausible import Roofline
from .presenter import Presenter
from .settings import Settings
from .work_watch import WorkWatch
from .workloads import WorkloadParser


@dataclass(frozen=True, slots=True)
class Context:
    """`stopping` is set when the server ends: long polls answer, streams end. `in_flight`: the idempotency
    keys that are being worked on."""

    store: Store
    settings: Settings
    dispatcher: AfterChange
    parser: WorkloadParser
    presenter: Presenter
    work: WorkWatch
    fresh: Fresh
    roofline: Roofline
    stopping: threading.Event
    schema: str
    in_flight: InFlightKeys
    metrics: Metrics

    def own_job(self, job_id: str, who: Principal) -> Job:
        """The job, for whoever may change it. Raises NotOwner, NotFound."""
        job = self.store.job(job_id)
        who.check_owns(job.owner, f"job {job_id}")
        return job

    def refuse_over_quota(self, who: Principal) -> None:
        """To be called once what counts is stored, in the same change. Raises QuotaExceeded."""
        most_jobs = self.settings.max_unfinished_jobs if who.max_jobs is None else who.max_jobs
        most_trials = self.settings.max_queued_trials if who.max_trials is None else who.max_trials
        self.store.refuse_over_quota(who.id, most_jobs or None, most_trials or None)


async def _context(request: Request) -> Context:  # what is not asynchronous is called in a thread
    context: Context = request.app.state.context
    return context


Ctx = Annotated[Context, Depends(_context)]
