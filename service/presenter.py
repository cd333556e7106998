"""Records of the store as the API shows them."""

from __future__ import annotations

import json
from collections.abc import Collection, Sequence
from typing import Any

from ..db.errors import NotFound
from ..db.fleet_records import Crash, Worker, WorkerChange
from ..db.fleet_store import MAX_LOSSES
from ..db.health_records import HealthCheck
from ..db.records import Job, Token, Trial
from ..db.store import Store
from ..db.words import PRESENT_STATES
from .hardware_choice import Needs
from .job_presenter import job_view
from .remembered import Remembered
from .views import (
    CrashView,
    HealthCheckView,
    JobView,
    TargetView,
    TokenView,
    TrialView,
    WorkerChangeView,
    WorkerView,
    WorkloadView,
)
from .workloads import TargetSpec, Workload, WorkloadParser

_KEPT = 1024
"""So many workloads, and so many targets: more than two of the longest pages of jobs name."""


class Presenter:
    """Makes views, of a page with as many queries as of one. Workloads and targets never change under their
    key, so that each is read once."""

    def __init__(self, store: Store, parser: WorkloadParser, stall_seconds: float = 60.0) -> None:
        self._stall_seconds = stall_seconds
        self._store = store
        self._parser = parser
        self._workloads = Remembered(self._read_workloads, _KEPT)
        self._targets = Remembered(self._read_targets, _KEPT)

    def job(self, job: Job) -> JobView:
        """Raises NotFound for one that is gone."""
        for view in self.jobs([job]):
            return view
        raise NotFound("job", job.id)

    def jobs(self, jobs: Sequence[Job]) -> list[JobView]:
        """In the same order; a job that was removed since it was read is left out."""
        # First what outlives the jobs: what is gone by then has no summary.
        workloads = self._workloads.of({job.workload for job in jobs})
        targets = self._targets.of({job.target for job in jobs})
        summaries = self._store.job_summaries([job.id for job in jobs], self._stall_seconds)
        idle = [job for job in jobs if (s := summaries.get(job.id)) and s.stall and s.stall.worker is None]
        lacking = self._lacking_builder(idle)
        return [
            job_view(job, summaries[job.id], workloads[job.workload], targets[job.target], job.id in lacking)
            for job in jobs
            if job.id in summaries
        ]

    def _lacking_builder(self, jobs: Sequence[Job]) -> set[str]:
        """The ids of those of stalled jobs that only devices without a compiler measure, while nothing is
        built for them, nor being built for anybody."""
        if not jobs:
            return set()
        present = [worker for worker in self._store.workers() if worker.state in PRESENT_STATES]
        alone = {job.id: job.hardware for job in jobs if _has_run_only(job, present)}
        kinds = {kind for kind in alone.values() if kind is not None}
        if not kinds or self._store.build_counts().started:
            return set()
        built = self._store.built_for(kinds)
        return {job for job, kind in alone.items() if kind not in built}

    def _read_workloads(self, keys: Collection[str]) -> dict[str, WorkloadView]:
        flops = self._parser.flops
        rows = self._store.workloads(keys)
        return {
            row.key: workload_view(Workload(row.key, row.name, row.program, row.script, flops(row.program)))
            for row in rows
        }

    def _read_targets(self, keys: Collection[str]) -> dict[str, TargetView]:
        rows = self._store.targets(keys)
        return {row.key: target_view(TargetSpec(row.key, row.description)) for row in rows}

    def worker(self, worker: Worker, now: float) -> WorkerView:
        return _worker_view(worker, self._store.hardware(worker.hardware).facts, now)

    def workers(self, workers: Sequence[Worker], now: float) -> list[WorkerView]:
        facts = {kind.key: kind.facts for kind in self._store.hardwares()} if workers else {}
        return [_worker_view(worker, facts[worker.hardware], now) for worker in workers]

    def worker_change(self, change: WorkerChange) -> WorkerChangeView:
        worker = self.worker(change.worker, self._store.now())
        return WorkerChangeView(worker=worker, replaced=change.replaced, lost=change.lost)


def _has_run_only(job: Job, present: Sequence[Worker]) -> bool:
    """Whether those who can measure a job are there, and none of them can compile."""
    there = [w for w in Needs.of(job).fitting(present) if w.hardware == job.hardware]
    return bool(there) and all(w.run_only for w in there)


def _worker_view(worker: Worker, kind: str, now: float) -> WorkerView:
    """`kind`: the facts of its kind of hardware."""
    return WorkerView(
        id=worker.id,
        name=worker.name,
        state=worker.state,
        reason=worker.reason,
        hardware=worker.hardware,
        facts=json.loads(kind) | json.loads(worker.facts),
        labels=json.loads(worker.labels),
        versions=json.loads(worker.versions),
        seen_seconds_ago=max(0.0, now - worker.seen_at),
        pool=worker.pool,
        protocol=worker.protocol,
        lease=worker.lease,
        trial=worker.trial,
        settled=worker.settled,
        failed=worker.failed,
        registered_at=worker.registered_at,
        state_at=worker.registered_at if worker.state_at is None else worker.state_at,
        until=worker.until,
    )


def workload_view(workload: Workload) -> WorkloadView:
    return WorkloadView(key=workload.key, name=workload.name, script=workload.script, flops=workload.flops)


def target_view(target: TargetSpec) -> TargetView:
    return TargetView(key=target.key, description=json.loads(target.description))


def trial_view(trial: Trial) -> TrialView:
    detail: dict[str, Any] = json.loads(trial.failure_detail)
    return TrialView(
        number=trial.number,
        outcome=trial.outcome,
        candidate=trial.candidate_key,
        sketch=trial.sketch,
        trace=json.loads(trial.trace),
        seconds=trial.seconds,
        samples=list(trial.samples),
        error=trial.error,
        message=trial.failure_message,
        detail=detail or None,
        worker=trial.worker,
        attempt=trial.attempt,
        batch=trial.batch,
        predicted=trial.predicted,
        origin=trial.origin,
        disturbed=trial.disturbed,
        disturbance=trial.disturbance,
        baseline=[s for s in (trial.baseline_before, trial.baseline_after) if s is not None],
        baseline_ratio=trial.baseline_ratio,
    )


def health_view(check: HealthCheck) -> HealthCheckView:
    return HealthCheckView(
        at=check.at,
        occasion=check.occasion,
        verdict=check.verdict,
        reason=check.reason,
        parts=json.loads(check.parts),
    )


def crash_view(crash: Crash) -> CrashView:
    return CrashView(
        candidate=crash.candidate_key,
        hardware=crash.hardware,
        losses=crash.losses,
        barred=crash.losses >= MAX_LOSSES,
        last_at=crash.last_at,
        trial=crash.trial,
    )


def token_view(token: Token) -> TokenView:
    return TokenView(
        id=token.id,
        name=token.name,
        scopes=list(token.scopes),
        pool=token.pool,
        created_at=token.created_at,
        expires_at=token.expires_at,
        revoked_at=token.revoked_at,
        max_jobs=token.max_jobs,
        max_trials=token.max_trials,
        rate=token.rate,
    )
