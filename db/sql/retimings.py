"""Settled trials that workers time once more."""

import json
from collections.abc import Sequence

from sqlalchemy import Connection, insert, select, update

from ..checks import check_int
from ..errors import InvalidValue
from ..records import Retiming, Settlement
from ..words import OPEN_OUTCOMES
from .clock import now_of
from .job_rows import job_row, searched_row
from .part import Part
from .tables import jobs, retimings, trials


class RetimingPart(Part):
    def time_again(self, job_id: str, epoch: int, turn: int, numbers: Sequence[int]) -> None:
        check_int("turn", turn, 0)
        with self._database.write() as conn:
            searched_row(conn, job_id, epoch)
            conn.execute(update(jobs).where(jobs.c.id == job_id).values(active_at=now_of(conn)))
            for place, number in enumerate(numbers):
                _ask(conn, job_id, number, turn, place)

    def retimings(self, job_id: str) -> list[Retiming]:
        query = (
            select(trials.c.number, *(c for c in retimings.c if c.name in Retiming.__slots__))
            .join_from(retimings, trials, retimings.c.trial == trials.c.id)
            .where(trials.c.job == job_id)
            .order_by(retimings.c.turn, retimings.c.place)
        )
        with self._database.read() as conn:
            job_row(conn, job_id)
            rows = conn.execute(query).all()
            return [Retiming(**{**row._mapping, "samples": tuple(json.loads(row.samples))}) for row in rows]


def _ask(conn: Connection, job_id: str, number: int, turn: int, place: int) -> None:
    row = conn.execute(
        select(trials.c.id, trials.c.outcome).where(trials.c.job == job_id, trials.c.number == number)
    ).one_or_none()
    if row is None or row.outcome != "ok":
        raise InvalidValue("numbers", f"trial {number} of {job_id} has no time of its own")
    known = retimings.c.trial == row.id, retimings.c.turn == turn
    if conn.execute(select(retimings.c.turn).where(*known)).one_or_none() is None:
        close_retiming(conn, row.id, "cancelled", None)
        values = {"trial": row.id, "turn": turn, "place": place, "outcome": "pending", "samples": "[]"}
        conn.execute(insert(retimings).values(**values))


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
