"""A job and what it has come to, as the API shows it."""

from __future__ import annotations

import json
from typing import TypeVar

from ..db.health_records import WorkerBaseline
from ..db.moments import moment
from ..db.records import Job, Trial
from ..db.summary_records import JobSummary, ResultDoubt
from ..db.words import FAILURE_KINDS, UNMEASURED_OUTCOMES
from .views import (
    BestOfJob,
    BudgetView,
    DriftView,
    JobView,
    ModelView,
    ProgressView,
    TargetView,
    TimeView,
    View,
    WorkloadView,
)

V = TypeVar("V", bound=View)


def job_view(
    job: Job,
    summary: JobSummary,
    workload: WorkloadView,
    target: TargetView,
    lacks_builder: bool,
) -> JobView:
    """All of a job, the same wherever it is shown. `lacks_builder`: whether, if it is stalled, nobody builds
    what it waits for."""
    drift = [drift_view(baseline) for baseline in summary.baselines if baseline.drifted]
    best = _best_of(summary)
    return JobView(
        id=job.id,
        state=job.state,
        reason=job.reason,
        workload=workload,
        target=target,
        hardware=job.hardware,
        budget=_budget(job),
        seed=job.seed,
        strategy=job.strategy,
        batch=job.batch,
        worker_wait=job.worker_wait,
        pool=job.pool,
        labels=json.loads(job.labels),
        priority=job.priority,
        stalled=_stalled(job, summary, lacks_builder),
        history=job.history,
        owner=job.owner,
        created_at=job.created_at,
        finished_at=job.finished_at,
        progress=_progress(job, summary, best, workload.flops),
        best=None if best is None else _best_of_job(best, workload.flops),
        model=_part(ModelView, summary.model, "overall"),
        time=_part(TimeView, summary.report, "seconds"),
        warnings=[*(view.message for view in drift), *map(_warning, summary.doubts)],
        drift=drift,
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


def eta(job: Job, measuring: float, elapsed: float, known: int = 0) -> float | None:
    """Seconds until the budget, of which `known` trials need no measuring, is used up, at the pace of
    `measuring` seconds so far; `elapsed` counts to the limit of time. None before the first result, while the
    job is paused and after the end."""
    if job.finished_at is not None or job.state == "paused" or job.done == 0 or measuring == 0.0:
        return None
    remaining = measuring / job.done * max(0, job.trials - known - job.done)
    return remaining if job.seconds is None else max(0.0, min(remaining, job.seconds - elapsed))


def _best_of(summary: JobSummary) -> Trial | None:
    """Its own best trial, or one that was known before it began and is faster."""
    own, before = summary.best, summary.known_best
    if before is None or before.seconds is None:
        return own
    return before if own is None or (own.seconds or 0.0) >= before.seconds else own


def _stalled(job: Job, summary: JobSummary, lacks_builder: bool) -> str | None:
    """Why a running job does not get on; None where it does, or has not stood still for long."""
    stall = summary.stall if job.state == "running" else None
    if stall is None:
        return None
    since = f"stalled since {moment(stall.since)}"
    if stall.number is None:
        return f"{since}, waiting for its search"
    if stall.worker is None:
        if lacks_builder:
            return (
                f"{since}, waits for a builder: nobody makes the program of trial {stall.number}; "
                "attach one by `tilewright builder run`"
            )
        return f"{since}, waiting for a worker to take trial {stall.number}"
    held = "" if stall.started else ", which holds"
    return f"{since}, waiting for worker {stall.worker}{held} trial {stall.number}"


def _progress(job: Job, summary: JobSummary, best: Trial | None, flops: float | None) -> ProgressView:
    counts, known = summary.counts, summary.known.trials
    until = job.finished_at if job.finished_at is not None else summary.at
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
        eta_seconds=eta(job, _measuring_seconds(job, summary, until), elapsed, known),
    )


def _measuring_seconds(job: Job, summary: JobSummary, until: float) -> float:
    """Seconds since the job's first trial began: its pace does not count the start of the search."""
    if not job.done or summary.first_started_at is None:
        return 0.0
    return _passed(job, summary.first_started_at, until)


def _passed(job: Job, begun: float, until: float) -> float:
    """Seconds of the job's own time."""
    return max(0.0, until - begun - job.stood_still(until))


def _warning(doubt: ResultDoubt) -> str:
    trials, do = ("1 trial", "does") if doubt.results == 1 else (f"{doubt.results} trials", "do")
    return f"{trials} by worker {doubt.worker} {do} not count: {doubt.reason}"


def _part(view: type[V], event: str | None, name: str) -> V | None:
    """What an event's data say under a name; None where there was no such event."""
    return None if event is None else view.model_validate(json.loads(event)[name])


def _budget(job: Job) -> BudgetView:
    return BudgetView(
        trials=job.trials,
        seconds=job.seconds,
        target_seconds=job.target_seconds,
        patience=job.patience,
    )


def _best_of_job(trial: Trial, flops: float | None) -> BestOfJob:
    assert trial.seconds is not None, "a job's best trial was timed"
    return BestOfJob(
        trial=trial.number,
        job=trial.job,
        seconds=trial.seconds,
        gflops=_gflops(flops, trial.seconds),
        trace=json.loads(trial.trace),
    )


def _gflops(flops: float | None, seconds: float | None) -> float | None:
    return None if flops is None or seconds is None else flops / seconds / 1e9
