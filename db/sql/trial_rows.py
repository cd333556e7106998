"""Rows of trials, and the one place that writes a trial's result."""

import json
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, fields
from typing import Any

from sqlalchemy import Connection, Row, bindparam, func, select, update

from ..errors import NotFound
from ..records import Settlement, Trial
from ..words import OPEN_OUTCOMES, OUTCOMES, UNMEASURED_OUTCOMES, Outcome
from .offers import note_baseline, offer_all
from .tables import jobs, trials, workers

TRIAL_COLUMNS = tuple(trials.c[field.name] for field in fields(Trial))

_RESULT = (
    *("outcome", "seconds", "samples", "censored", "disturbed", "calls", "cache", "disturbance", "error"),
    *("failure_kind", "failure_message", "failure_detail", "build_seconds", "wall_seconds"),
    *("codegen_version", "worker", "settled_at", "baseline_before", "baseline_after", "baseline_ratio"),
)
# Made once: every result of every worker is written by them.
_WRITE = (
    update(trials)
    .where(trials.c.id == bindparam("of"))
    .values({name: bindparam(f"new_{name}") for name in _RESULT} | {"lease": None})
)
_COUNT = (
    update(jobs)
    .where(jobs.c.id == bindparam("of"))
    .values(done=jobs.c.done + bindparam("more"), active_at=bindparam("at"))
)
_COUNT_WORKER = (
    update(workers)
    .where(workers.c.id == bindparam("of"))
    .values(
        settled=workers.c.settled + bindparam("more"),
        failed=workers.c.failed + bindparam("bad"),
        seen_at=bindparam("at"),
    )
)


def id_of_trial(job_id: str, number: int) -> str:
    return f"{job_id}.{number}"


def trial_of(row: Row[Any]) -> Trial:
    """The record of a row that holds TRIAL_COLUMNS and perhaps more."""
    values = {column.name: row._mapping[column] for column in TRIAL_COLUMNS}
    first = values["first_samples"]
    values["first_samples"] = None if first is None else tuple(json.loads(first))
    return Trial(**values | {"samples": tuple(json.loads(values["samples"]))})


def trial_row(conn: Connection, trial: str, lock: bool = False) -> Row[Any]:
    """The trial; with `lock`, nobody else writes it until this transaction ends. NotFound."""
    query = select(trials).where(trials.c.id == trial)
    row = conn.execute(query.with_for_update(key_share=True) if lock else query).one_or_none()
    if row is None:
        raise NotFound("trial", trial)
    return row


def counts_of(conn: Connection, job_ids: Sequence[str]) -> dict[str, dict[str, int]]:
    """Of each job: its trials of each outcome, and `settled`, as `TrialStore.trial_counts` says."""
    query = select(trials.c.job, trials.c.outcome, func.count()).where(trials.c.job.in_(job_ids))
    counts = {job_id: dict.fromkeys(map(str, OUTCOMES), 0) for job_id in job_ids}
    for job_id, outcome, count in conn.execute(query.group_by(trials.c.job, trials.c.outcome)):
        counts[job_id][outcome] = count
    for of_job in counts.values():
        of_job["settled"] = sum(n for word, n in of_job.items() if word not in OPEN_OUTCOMES)
    return counts


@dataclass(frozen=True, slots=True)
class Result:
    """What a trial is given. `trial`: its row, with `id`, `job`, `number`, `origin` and `outcome`."""

    trial: Row[Any]
    settlement: Settlement
    codegen_version: str | None


def write_results(conn: Connection, results: Sequence[Result], worker: str | None, now: float) -> None:
    """Give trials their results, count these in their jobs, and make best-known what is."""
    if not results:
        return
    conn.execute(_WRITE, [_written(result, worker, now) for result in results])
    counted: Counter[str] = Counter()
    for result in results:
        counted[result.trial.job] += _counts(_outcome(result.settlement)) - _counts(result.trial.outcome)
    conn.execute(_COUNT, [{"of": job, "more": more, "at": now} for job, more in counted.items()])
    for result in results:
        if result.trial.origin == "default":
            note_baseline(conn, result.trial, result.settlement)
    offer_all(conn, [each.trial.id for each in results if _outcome(each.settlement) == "ok"], now)


def write_result(
    conn: Connection,
    trial: Row[Any],
    settlement: Settlement,
    worker: str | None,
    codegen_version: str | None,
    now: float,
) -> None:
    """`write_results` of one."""
    write_results(conn, [Result(trial, settlement, codegen_version)], worker, now)


def count_results(conn: Connection, worker: str, settlements: Sequence[Settlement], now: float) -> None:
    """Count results that were taken from a worker, who was heard of."""
    failed = sum(settlement.failure_kind is not None for settlement in settlements)
    conn.execute(_COUNT_WORKER, {"of": worker, "more": len(settlements), "bad": failed, "at": now})


def _written(result: Result, worker: str | None, now: float) -> dict[str, Any]:
    settlement = result.settlement
    return {
        "of": result.trial.id,
        "new_outcome": _outcome(settlement),
        "new_seconds": settlement.seconds,
        "new_samples": json.dumps(settlement.samples),
        "new_censored": settlement.censored,
        "new_disturbed": settlement.disturbed,
        "new_calls": settlement.calls,
        "new_cache": settlement.cache,
        "new_disturbance": settlement.disturbance,
        "new_error": settlement.error,
        "new_failure_kind": settlement.failure_kind,
        "new_failure_message": settlement.failure_message,
        "new_failure_detail": settlement.failure_detail,
        "new_build_seconds": settlement.build_seconds,
        "new_wall_seconds": settlement.wall_seconds,
        "new_codegen_version": result.codegen_version,
        "new_worker": worker,
        "new_settled_at": now,
        **_baseline(settlement),
    }


def _baseline(settlement: Settlement) -> dict[str, float | None]:
    """What the baseline around its samples comes to."""
    if settlement.seconds is None or len(settlement.baseline) != 2:
        return dict.fromkeys(("new_baseline_before", "new_baseline_after", "new_baseline_ratio"))
    before, after = settlement.baseline
    ratio = settlement.seconds / ((before + after) / 2)
    return {"new_baseline_before": before, "new_baseline_after": after, "new_baseline_ratio": ratio}


def _counts(outcome: str) -> int:
    return int(outcome not in UNMEASURED_OUTCOMES)


def fail_trial(conn: Connection, trial: Row[Any], settlement: Settlement, now: float) -> None:
    """Give a trial a failure that the store itself has found."""
    write_result(conn, trial, settlement, worker=None, codegen_version=None, now=now)


def _outcome(settlement: Settlement) -> Outcome:
    if settlement.failure_kind is not None:
        return settlement.failure_kind
    return "censored" if settlement.censored else "ok"
