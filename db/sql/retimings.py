"""Settled trials that workers time once more."""

import json
from collections.abc import Sequence
from typing import Any

from sqlalchemy import Connection, Row, delete, func, insert, select, update

from ..checks import check_int
from ..errors import InvalidValue
from ..records import Retiming, Settlement
from ..words import OPEN_OUTCOMES
from .clock import now_of
from .job_rows import job_row, searched_row
from .part import Part
from .tables import jobs, retimings, trials

_FOREIGN = -1
"""Rounds of a job that another job's trial is in are stored as -1, -2, …: its own rounds count from 0."""


class RetimingPart(Part):
    def time_again(
        self, job_id: str, epoch: int, turn: int, trials: Sequence[str], device: str | None = None
    ) -> None:
        check_int("turn", turn, 0)
        with self._database.write() as conn:
            job = searched_row(conn, job_id, epoch)
            conn.execute(update(jobs).where(jobs.c.id == job_id).values(active_at=now_of(conn)))
            for place, trial in enumerate(trials):
                _ask(conn, job, trial, turn, place, device)

    def retimings(self, job_id: str) -> list[Retiming]:
        of_own = retimings.c.job.is_(None) & (trials.c.job == job_id)
        query = (
            select(trials.c.number, *(c for c in retimings.c if c.name in Retiming.__slots__))
            .join_from(retimings, trials, retimings.c.trial == trials.c.id)
            .where(of_own | (retimings.c.job == job_id))
        )
        with self._database.read() as conn:
            job_row(conn, job_id)
            rows = conn.execute(query.order_by(retimings.c.place)).all()
        found = [_retiming(dict(row._mapping)) for row in rows]
        return sorted(found, key=lambda retiming: retiming.turn)


def _retiming(row: dict[str, Any]) -> Retiming:
    turn = row["turn"] if row["turn"] >= 0 else _FOREIGN - row["turn"]
    return Retiming(**{**row, "turn": turn, "samples": tuple(json.loads(row["samples"]))})


def _ask(conn: Connection, job: Row[Any], trial: str, turn: int, place: int, device: str | None) -> None:
    columns = trials.c.id, trials.c.outcome, trials.c.job, jobs.c.workload, jobs.c.target, jobs.c.hardware
    row = conn.execute(
        select(*columns).join_from(trials, jobs, trials.c.job == jobs.c.id).where(trials.c.id == trial)
    ).one_or_none()
    if row is None or row.outcome != "ok":
        raise InvalidValue("trials", f"trial {trial} has no time of its own")
    if (row.workload, row.target, row.hardware) != (job.workload, job.target, job.hardware):
        raise InvalidValue("trials", f"trial {trial} is of another key than job {job.id}")
    whose = None if row.job == job.id else job.id
    stored = turn if whose is None else _FOREIGN - turn
    if whose is not None:  # what another job has asked of it stands in that one's duel
        others = retimings.c.trial == trial, retimings.c.turn == stored, retimings.c.job != job.id
        conn.execute(delete(retimings).where(*others))
    known = retimings.c.trial == trial, retimings.c.turn == stored
    if conn.execute(select(retimings.c.turn).where(*known)).one_or_none() is None:
        close_retiming(conn, trial, "cancelled", None)
        values = {"trial": trial, "turn": stored, "place": place, "outcome": "pending", "samples": "[]"}
        conn.execute(insert(retimings).values(**values, job=whose, device=device))


def take_retiming(conn: Connection, trial: str, result: Settlement, worker: str | None, now: float) -> bool:
    """Give the round that a settled trial is wanted in its result; whether it is wanted in one."""
    due = retimings.c.trial == trial, retimings.c.outcome == "pending"
    outcome = result.failure_kind or ("censored" if result.censored else "ok")
    written = conn.execute(
        update(retimings)
        .where(*due)
        .values(
            outcome=outcome,
            seconds=result.seconds,
            samples=json.dumps(result.samples),
            worker=worker,
            settled_at=now,
        )
    )
    return bool(written.rowcount)


def close_retiming(conn: Connection, trial: str, outcome: str, now: float | None) -> None:
    """End the round that a trial is wanted in, if it is wanted in one, without a time."""
    due = retimings.c.trial == trial, retimings.c.outcome == "pending"
    conn.execute(update(retimings).where(*due).values(outcome=outcome, settled_at=now))


def is_wanted_again(conn: Connection, trial: str, outcome: str) -> bool:
    """Whether a trial with this outcome is to be timed once more."""
    due = select(retimings.c.turn).where(retimings.c.trial == trial, retimings.c.outcome == "pending")
    return outcome not in OPEN_OUTCOMES and conn.execute(due).one_or_none() is not None


def wanting_job() -> Any:
    """Of trials outer joined with `due_retiming`: the job for which a trial is measured."""
    return func.coalesce(retimings.c.job, trials.c.job)


def due_retiming() -> Any:
    """The condition of that join."""
    return (retimings.c.trial == trials.c.id) & (retimings.c.outcome == "pending")
