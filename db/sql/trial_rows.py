"""Rows of trials, and the one place that writes a trial's result."""

import json
from dataclasses import fields
from typing import Any

from sqlalchemy import Connection, Row, select, update

from ..errors import NotFound
from ..records import Settlement, Trial
from ..words import UNMEASURED_OUTCOMES, Outcome
from .offers import note_baseline, offer_best
from .tables import jobs, trials, workers

TRIAL_COLUMNS = tuple(trials.c[field.name] for field in fields(Trial))


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


def write_result(
    conn: Connection,
    trial: Row[Any],
    settlement: Settlement,
    worker: str | None,
    codegen_version: str | None,
    now: float,
) -> None:
    """Give a trial its result, count it in its job, and make it best-known where it is."""
    outcome = _outcome(settlement)
    conn.execute(
        update(trials)
        .where(trials.c.id == trial.id)
        .values(
            outcome=outcome,
            seconds=settlement.seconds,
            samples=json.dumps(settlement.samples),
            censored=settlement.censored,
            disturbed=settlement.disturbed,
            calls=settlement.calls,
            cache=settlement.cache,
            disturbance=settlement.disturbance,
            **_baseline(settlement),
            error=settlement.error,
            failure_kind=settlement.failure_kind,
            failure_message=settlement.failure_message,
            failure_detail=settlement.failure_detail,
            build_seconds=settlement.build_seconds,
            wall_seconds=settlement.wall_seconds,
            codegen_version=codegen_version,
            worker=worker,
            settled_at=now,
        )
    )
    counted = int(outcome not in UNMEASURED_OUTCOMES) - int(trial.outcome not in UNMEASURED_OUTCOMES)
    conn.execute(update(jobs).where(jobs.c.id == trial.job).values(done=jobs.c.done + counted, active_at=now))
    if trial.origin == "default":
        note_baseline(conn, trial, settlement)
    if worker is not None:
        count_result(conn, worker, settlement)
    if outcome == "ok":
        offer_best(conn, trial.id, now)


def count_result(conn: Connection, worker: str, settlement: Settlement) -> None:
    """Count a result that was taken from a worker."""
    failed = int(settlement.failure_kind is not None)
    counts = {"settled": workers.c.settled + 1, "failed": workers.c.failed + failed}
    conn.execute(update(workers).where(workers.c.id == worker).values(**counts))


def _baseline(settlement: Settlement) -> dict[str, float]:
    """What the baseline around its samples comes to."""
    if settlement.seconds is None or len(settlement.baseline) != 2:
        return {}
    before, after = settlement.baseline
    ratio = settlement.seconds / ((before + after) / 2)
    return {"baseline_before": before, "baseline_after": after, "baseline_ratio": ratio}


def fail_trial(conn: Connection, trial: Row[Any], settlement: Settlement, now: float) -> None:
    """Give a trial a failure that the store itself has found."""
    write_result(conn, trial, settlement, worker=None, codegen_version=None, now=now)


def _outcome(settlement: Settlement) -> Outcome:
    if settlement.failure_kind is not None:
        return settlement.failure_kind
    return "censored" if settlement.censored else "ok"
