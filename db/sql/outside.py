"""Trials of jobs that are measured outside of the fleet: handed out, and told, whenever that is."""

from dataclasses import replace
from typing import Any

from sqlalchemy import Connection, Row, insert, select, update

from ..checks import check_int, check_limit, check_settlement, check_text
from ..errors import Conflict, JobOver, SettlementMismatch
from ..records import Settlement, Trial
from ..words import OPEN_OUTCOMES
from .clock import now_of
from .digest import digest_of
from .job_rows import is_over, lock_job
from .part import Part
from .tables import attempts, holdings, trials
from .trial_rows import TRIAL_COLUMNS, id_of_trial, trial_of, trial_row, write_result


class OutsidePart(Part):
    def hand_out(self, job_id: str, holder: str, count: int = 1) -> list[Trial]:
        check_text("holder", holder, empty=True)
        check_limit(count)
        with self._database.write() as conn:
            job = _outside_job(conn, job_id)
            if is_over(job.state):
                raise JobOver(f"job {job_id} is {job.state} and hands out no more trials")
            held = conn.execute(_held(job_id, holder, count)).all()
            fresh = [] if job.state == "paused" else conn.execute(_pending(job_id, count - len(held))).all()
            now = now_of(conn)
            for row in fresh:
                _hold(conn, row, holder, now)
            return [trial_of(trial_row(conn, row.id)) for row in (*held, *fresh)]

    def tell_outside(
        self, job_id: str, number: int, settlement: Settlement, instead: Settlement | None = None
    ) -> Trial:
        check_int("number", number, 0)
        check_settlement(settlement)
        kept = settlement if instead is None else instead
        check_settlement(kept)
        with self._database.write() as conn:
            job = _outside_job(conn, job_id)
            trial = trial_row(conn, id_of_trial(job_id, number), lock=True)
            digest = digest_of(replace(settlement, trial=trial.id, attempt=1))
            if _was_told(conn, trial, digest):
                return trial_of(trial)
            if is_over(job.state):
                raise JobOver(f"job {job_id} is {job.state} and takes no more results")
            _settle(conn, trial, replace(kept, trial=trial.id, attempt=1), digest)
            return trial_of(trial_row(conn, trial.id))


def _outside_job(conn: Connection, job_id: str) -> Row[Any]:
    job = lock_job(conn, job_id)
    if job.origin != "outside":
        who = "its own process" if job.origin == "local" else "workers"
        raise Conflict(
            f'job {job_id} is measured by {who}; only a job that was submitted with "measure": "outside" '
            "hands out its trials"
        )
    return job


def _held(job_id: str, holder: str, count: int) -> Any:
    return (
        select(*TRIAL_COLUMNS)
        .join_from(holdings, trials, holdings.c.trial == trials.c.id)
        .where(holdings.c.job == job_id, holdings.c.holder == holder, trials.c.outcome == "started")
        .order_by(trials.c.number)
        .limit(count)
    )


def _pending(job_id: str, count: int) -> Any:
    query = select(*TRIAL_COLUMNS).where(trials.c.job == job_id, trials.c.outcome == "pending")
    return query.order_by(trials.c.number).limit(count)


def _hold(conn: Connection, trial: Row[Any], holder: str, now: float) -> None:
    began = {"outcome": "started", "attempt": 1, "started_at": now}
    conn.execute(update(trials).where(trials.c.id == trial.id).values(**began))
    conn.execute(insert(holdings).values(trial=trial.id, job=trial.job, holder=holder))
    times = {"granted_at": now, "started_at": now}
    conn.execute(insert(attempts).values(trial=trial.id, attempt=1, state="started", **times))


def _was_told(conn: Connection, trial: Row[Any], digest: str) -> bool:
    """Whether this very result was told before; SettlementMismatch where another one was."""
    query = select(attempts.c.digest).where(attempts.c.trial == trial.id, attempts.c.attempt == 1)
    known = conn.execute(query).scalar_one_or_none()
    if known is not None and known != digest:
        raise SettlementMismatch(trial.id, 1)
    return known is not None


def _settle(conn: Connection, trial: Row[Any], settlement: Settlement, digest: str) -> None:
    """Keep a result, under the digest of what was told."""
    if trial.outcome not in OPEN_OUTCOMES:
        raise Conflict(f"trial {trial.id} is {trial.outcome}: it takes no result")
    now = now_of(conn)
    if trial.outcome == "pending":
        _hold(conn, trial, "", now)
    ended = {"state": "settled", "digest": digest, "ended_at": now}
    own = attempts.c.trial == trial.id, attempts.c.attempt == 1
    conn.execute(update(attempts).where(*own).values(**ended))
    write_result(conn, trial, settlement, None, settlement.codegen_version, now)
