"""Records of the store as the API shows them."""

from __future__ import annotations

import json
from functools import lru_cache
from typing import Any

from ..db.fleet_records import Crash, Worker, WorkerChange
from ..db.fleet_store import MAX_LOSSES
from ..db.health_records import HealthCheck, WorkerBaseline
from ..db.moments import moment
from ..db.records import Job, Known, Token, Trial
from ..db.store import Store
from ..db.words import FAILURE_KINDS, FINAL_JOB_STATES, PRESENT_STATES, UNMEASURED_OUTCOMES
from .hardware_choice import Needs
from .views import (
    BestOfJob,
    BudgetView,
    CrashView,
    DriftView,
    HealthCheckView,
    JobView,
    ModelView,
    ProgressView,
    TargetView,
    TimeView,
    TokenView,
    TrialView,
    WorkerChangeView,
    WorkerView,
    WorkloadView,
)
from .workloads import TargetSpec, Workload, WorkloadParser


class Presenter:
    """Makes views. Workloads and targets never change under their key, so that each is read once."""

    def __init__(self, store: Store, parser: WorkloadParser, stall_seconds: float = 60.0) -> None:
        self._stall_seconds = stall_seconds
        self._store = store
        self._parser = parser
        self._workload = lru_cache(maxsize=256)(self._read_workload)
        self._target = lru_cache(maxsize=256)(self._read_target)

    def job(self, job: Job) -> JobView:
        """All of a job, the same wherever it is shown."""
        workload = self._workload(job.workload)
        report, model = (self._last(job, kind) for kind in ("report", "model"))
        drift = self._drift(job)
        known = self._store.known(job.id)
        best = self._best_of(job, known)
        return JobView(
            id=job.id,
            state=job.state,
            reason=job.reason,
            workload=workload,
            target=self._target(job.target),
            hardware=job.hardware,
            budget=_budget(job),
            seed=job.seed,
            strategy=job.strategy,
            batch=job.batch,
            worker_wait=job.worker_wait,
            pool=job.pool,
            labels=json.loads(job.labels),
            priority=job.priority,
            stalled=self._stalled(job),
            history=job.history,
            owner=job.owner,
            created_at=job.created_at,
            finished_at=job.finished_at,
            progress=self._progress(job, known.trials, best, workload.flops),
            best=None if best is None else _best_of_job(best, workload.flops),
            model=None if model is None else ModelView.model_validate(model["overall"]),
            time=None if report is None else TimeView.model_validate(report["seconds"]),
            warnings=[
                *(view.message for view in drift),
                *(_warning(*each) for each in self._store.job_doubts(job.id)),
            ],
            drift=drift,
        )

    def _drift(self, job: Job) -> list[DriftView]:
        return [drift_view(baseline) for baseline in self._store.baselines(job.id) if baseline.drifted]

    def _last(self, job: Job, kind: str) -> Any:
        event = self._store.last_event(job.id, kind)
        return None if event is None else json.loads(event.data)

    def _stalled(self, job: Job) -> str | None:
        """Why a running job does not get on; None where it does, or has not stood still for long."""
        stall = self._store.stall(job.id, self._stall_seconds) if job.state == "running" else None
        if stall is None:
            return None
        since = f"stalled since {moment(stall.since)}"
        if stall.number is None:
            return f"{since}, waiting for its search"
        if stall.worker is None:
            if self._lacks_builder(job):
                return (
                    f"{since}, waits for a builder: nobody makes the program of trial {stall.number}; "
                    "attach one by `tilewright builder run`"
                )
            return f"{since}, waiting for a worker to take trial {stall.number}"
        held = "" if stall.started else ", which holds"
        return f"{since}, waiting for worker {stall.worker}{held} trial {stall.number}"

    def _lacks_builder(self, job: Job) -> bool:
        """Whether only devices without a compiler measure the job, and nothing is built for them, nor being
        built for anybody."""
        there = [w for w in Needs.of(job).fitting(self._store.workers()) if w.hardware == job.hardware]
        there = [w for w in there if w.state in PRESENT_STATES]
        if job.hardware is None or not there or not all(w.run_only for w in there):
            return False
        return not self._store.has_built(job.hardware) and not self._store.build_counts().started

    def _best_of(self, job: Job, known: Known) -> Trial | None:
        """Its fastest trial, or one that was known before it began and is faster."""
        own = self._winner(job) or next(iter(self._store.top_trials(job.id, 1)), None)
        if known.best is None:
            return own
        before = self._store.trial(known.best)
        faster = own is None or (own.seconds or 0.0) >= (before.seconds or 0.0)
        return before if faster and before.seconds is not None else own

    def _winner(self, job: Job) -> Trial | None:
        """Of a job that is over, what is best-known by it, or else what won its final rounds: another trial's
        single reading may have been luckier."""
        if job.state not in FINAL_JOB_STATES or job.hardware is None:
            return None
        best = self._store.standing(job.workload, job.target, job.hardware)
        if best is not None and best.job == job.id:
            return self._store.trial(best.trial)
        return self._store.crowned_trial(job.id)

    def worker(self, worker: Worker, now: float) -> WorkerView:
        return WorkerView(
            id=worker.id,
            name=worker.name,
            state=worker.state,
            reason=worker.reason,
            hardware=worker.hardware,
            facts=json.loads(self._store.hardware(worker.hardware).facts) | json.loads(worker.facts),
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

    def worker_change(self, change: WorkerChange) -> WorkerChangeView:
        worker = self.worker(change.worker, self._store.now())
        return WorkerChangeView(worker=worker, replaced=change.replaced, lost=change.lost)

    def _progress(self, job: Job, known: int, best: Trial | None, flops: float | None) -> ProgressView:
        counts = self._store.trial_counts(job.id)
        until = job.finished_at if job.finished_at is not None else self._store.now()
        elapsed = 0.0 if job.started_at is None else _passed(job, job.started_at, until)
        return ProgressView(
            done=job.done,
            asked=job.trials,
            measured=counts["ok"] + counts["censored"],
            known=known,
            failures={
                kind: counts[kind]
                for kind in FAILURE_KINDS
                if counts[kind] and kind not in UNMEASURED_OUTCOMES  # a cancelled trial is no failed one
            },
            best_seconds=None if best is None else best.seconds,
            best_gflops=None if best is None else _gflops(flops, best.seconds),
            elapsed_seconds=elapsed,
            eta_seconds=eta(job, self._measuring_seconds(job, until), elapsed, known),
        )

    def _measuring_seconds(self, job: Job, until: float) -> float:
        """Seconds since the job's first trial began: its pace does not count the start of the search."""
        first = self._store.trials(job.id, -1, 1) if job.done else []
        if not first or first[0].started_at is None:
            return 0.0
        return _passed(job, first[0].started_at, until)

    def _read_workload(self, key: str) -> WorkloadView:
        return workload_view(self.stored_workload(key))

    def stored_workload(self, key: str) -> Workload:
        row = self._store.workload(key)
        return Workload(row.key, row.name, row.program, row.script, self._parser.flops(row.program))

    def _read_target(self, key: str) -> TargetView:
        return target_view(TargetSpec(key, self._store.target(key).description))


def _warning(worker: str, reason: str, results: int) -> str:
    what = f"1 trial by worker {worker} does" if results == 1 else f"{results} trials by worker {worker} do"
    return f"{what} not count: {reason}"


def _passed(job: Job, begun: float, until: float) -> float:
    """Seconds of the job's own time."""
    return max(0.0, until - begun - job.stood_still(until))


def _budget(job: Job) -> BudgetView:
    return BudgetView(
        trials=job.trials,
        seconds=job.seconds,
        target_seconds=job.target_seconds,
        patience=job.patience,
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


def drift_view(baseline: WorkerBaseline) -> DriftView:
    slower = "slower" if baseline.drift > 0 else "faster"
    return DriftView(
        worker=baseline.worker,
        name=baseline.name,
        first_seconds=baseline.first_seconds,
        last_seconds=baseline.last_seconds,
        drift=baseline.drift,
        message=(
            f"worker {baseline.name} was {abs(baseline.drift):.0%} {slower} at its last trial than at first:"
            " times of before and after do not compare; the final rounds measure the winner again"
        ),
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


def eta(job: Job, measuring: float, elapsed: float, known: int = 0) -> float | None:
    """Seconds until the budget, of which `known` trials need no measuring, is used up, at the pace of
    `measuring` seconds so far; `elapsed` counts to the limit of time. None before the first result, while the
    job is paused and after the end."""
    if job.finished_at is not None or job.state == "paused" or job.done == 0 or measuring == 0.0:
        return None
    remaining = measuring / job.done * max(0, job.trials - known - job.done)
    return remaining if job.seconds is None else max(0.0, min(remaining, job.seconds - elapsed))


def _best_of_job(trial: Trial, flops: float | None) -> BestOfJob:
    assert trial.seconds is not None, "top_trials gives trials that were timed"
    return BestOfJob(
        trial=trial.number,
        job=trial.job,
        seconds=trial.seconds,
        gflops=_gflops(flops, trial.seconds),
        trace=json.loads(trial.trace),
    )


def _gflops(flops: float | None, seconds: float | None) -> float | None:
    return None if flops is None or seconds is None else flops / seconds / 1e9
