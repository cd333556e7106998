"""From a request to a job: read the workload and the target, choose the hardware, store."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

from ..db.records import Job, NewJob
from ..db.store import Store
from .errors import InvalidRequest, InvalidSuggestion, InvalidTarget, InvalidWorkload
from .hardware_choice import Needs, choose, waits_for
from .presenter import target_view, workload_view
from .requests import JobRequest
from .settings import Settings
from .views import BudgetView, ValidationView
from .workloads import SpecError, TargetSpec, Workload, WorkloadParser


@dataclass(frozen=True, slots=True)
class Submission:
    """A request that was found right: what the job will be."""

    request: JobRequest
    workload: Workload
    target: TargetSpec
    hardware: str | None

    @classmethod
    def of(cls, request: JobRequest, parser: WorkloadParser, store: Store, settings: Settings) -> Submission:
        """Raises InvalidRequest and its kinds, with a pointer to what is wrong."""
        if request.budget.trials > settings.max_trials:
            raise InvalidRequest.at(
                "/budget/trials",
                f"should be less than or equal to {settings.max_trials}, got {request.budget.trials}",
            )
        try:
            workload = parser.workload(request.workload)
        except SpecError as error:
            raise InvalidWorkload.at(f"/workload{error.pointer}", error.message) from error
        hardware = choose(_needs(request), store.workers())
        try:
            target = parser.target(request.target, facts_of(hardware, store))
        except SpecError as error:
            raise InvalidTarget.at(f"/target{error.pointer}", error.message) from error
        for number, suggestion in enumerate(request.suggestions):
            try:
                parser.suggestion(workload, suggestion)
            except SpecError as error:
                raise InvalidSuggestion.at(f"/suggestions/{number}{error.pointer}", error.message) from error
        if request.measure == "outside":
            _check_outside(request, hardware)
        elif target.unmeasured is not None:
            raise InvalidTarget.at("/target", target.unmeasured)
        return cls(request, workload, target, hardware)

    def view(self) -> ValidationView:
        budget = self.request.budget
        return ValidationView(
            valid=True,
            workload=workload_view(self.workload),
            target=target_view(self.target),
            hardware=self.hardware,
            budget=BudgetView(**budget.model_dump()),
        )

    def store(self, store: Store, settings: Settings, owner: str | None, trace_id: str) -> Job:
        """Create the job, whose trials count to the share of its owner; without a worker for it, it is
        `waiting` from the start and says for what."""
        request = self.request
        w = self.workload
        store.put_workload(w.key, w.name, w.program, w.script)
        store.put_target(self.target.key, self.target.description)
        if self.hardware is not None and facts_of(self.hardware, store) is None:
            store.put_hardware(self.hardware, "{}")
        job = store.create_job(
            NewJob(
                workload=self.workload.key,
                target=self.target.key,
                hardware=self.hardware,
                trials=request.budget.trials,
                seconds=request.budget.seconds,
                target_seconds=request.budget.target_seconds,
                patience=request.budget.patience,
                seed=request.seed,
                strategy=request.strategy,
                worker_wait=request.worker_wait or settings.worker_wait,
                history=request.history,
                pool=request.pool,
                labels=json.dumps(request.labels, sort_keys=True),
                priority=request.priority,
                account=owner or "",
                origin="outside" if request.measure == "outside" else "http",
                spec=json.dumps(request.model_dump(), separators=(",", ":")),
                owner=owner,
                trace_id=trace_id,
            )
        )
        reason = None if job.origin == "outside" else waits_for(Needs.of(job), store.workers())
        return job if reason is None else store.set_waiting(job.id, reason)


def in_pool(request: JobRequest, pool: str | None) -> JobRequest:
    """A token that is bound to a pool submits to that pool. Raises InvalidRequest where another is named."""
    if pool is None or request.pool == pool:
        return request
    if request.pool is not None:
        raise InvalidRequest.at("/pool", f"this token is bound to pool {pool!r}, got {request.pool!r}")
    return request.model_copy(update={"pool": pool})


def _needs(request: JobRequest) -> Needs:
    labels = frozenset(f"{key}={value}" for key, value in request.labels.items())
    return Needs(request.hardware, request.pool, labels)


def _check_outside(request: JobRequest, hardware: str | None) -> None:
    if hardware is None:
        raise InvalidRequest.at(
            "/hardware",
            "is needed for a job that is measured outside: the key of the hardware that it is measured on",
        )
    if request.budget.seconds is not None:
        raise InvalidRequest.at(
            "/budget/seconds", "is no limit of a job that is measured outside: its trials never expire"
        )


def facts_of(hardware: str | None, store: Store) -> dict[str, Any] | None:
    """What a machine of this kind reported of itself, or None while none has."""
    reported = next((h.facts for h in store.hardwares() if h.key == hardware), "{}")
    return json.loads(reported) or None
