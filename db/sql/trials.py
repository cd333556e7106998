"""Trials: what a search has proposed and what became of it."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from sqlalchemy import Connection, Row, insert, select, update

from ..checks import check_int, check_limit, check_settlement, check_trial
from ..errors import Conflict, InvalidValue, SettlementMismatch
from ..records import NewTrial, Settlement, Trial
from .belief import is_doubted
from .clock import now_of
from .digest import digest_of
from .job_rows import job_row, searched_row
from .part import Part
from .tables import attempts, jobs, trials
from .trial_rows import TRIAL_COLUMNS, counts_of, id_of_trial, trial_of, trial_row, write_result
from .turns import enter, is_idle

_NO_RESULT = {
    "outcome": "pending",
    "attempt": 0,
    "samples": "[]",
    "censored": False,
    "failure_message": "",
    "failure_detail": "{}",
    "build_seconds": 0.0,
    "wall_seconds": 0.0,
}


class TrialPart(Part):
    def add_trials(self, job_id: str, epoch: int, trials: Sequence[NewTrial]) -> list[Trial]:
        for trial in trials:
            check_trial(trial)
        with self._database.write() as conn:
            job = searched_row(conn, job_id, epoch)
            if is_idle(conn, job_id):
                enter(conn, job)
            now = now_of(conn)
            conn.execute(update(jobs).where(jobs.c.id == job_id).values(active_at=now))
            return [_add(conn, job_id, trial, now) for trial in trials]

    def trials(self, job_id: str, after_number: int = -1, limit: int = 1000) -> list[Trial]:
        check_int("after_number", after_number, -1)
        check_limit(limit)
        query = select(*TRIAL_COLUMNS).where(trials.c.job == job_id, trials.c.number > after_number)
        with self._database.read() as conn:
            job_row(conn, job_id)
            return [trial_of(row) for row in conn.execute(query.order_by(trials.c.number).limit(limit))]

    def trial(self, trial_id: str) -> Trial:
        with self._database.read() as conn:
            return trial_of(trial_row(conn, trial_id))

    def trial_counts(self, job_id: str) -> dict[str, int]:
        with self._database.read() as conn:
            job_row(conn, job_id)
            return counts_of(conn, [job_id])[job_id]

    def top_trials(self, job_id: str, limit: int = 1) -> list[Trial]:
        check_limit(limit)
        timed = trials.c.job == job_id, trials.c.outcome == "ok", ~is_doubted()
        query = select(*TRIAL_COLUMNS).where(*timed)
        with self._database.read() as conn:
            job_row(conn, job_id)
            rows = conn.execute(query.order_by(trials.c.seconds, trials.c.number).limit(limit))
            return [trial_of(row) for row in rows]

    def settle_local(self, job_id: str, epoch: int, trial_number: int, settlement: Settlement) -> Trial:
        check_settlement(settlement)
        with self._database.write() as conn:
            job = searched_row(conn, job_id, epoch)
            if job.origin != "local":
                raise InvalidValue("job_id", f"job {job_id} is measured by workers, through leases")
            trial = trial_row(conn, id_of_trial(job_id, trial_number), lock=True)
            _settle_local(conn, trial, replace(settlement, trial=trial.id, attempt=1))
            return trial_of(trial_row(conn, trial.id))


def _add(conn: Connection, job_id: str, new: NewTrial, now: float) -> Trial:
    known = conn.execute(
        select(trials).where(trials.c.job == job_id, trials.c.number == new.number)
    ).one_or_none()
    if known is not None:
        if known.candidate_key != new.candidate_key:
            raise Conflict(f"trial {known.id} exists with candidate {known.candidate_key}")
        return trial_of(known)
    of_candidate = trials.c.job == job_id, trials.c.candidate_key == new.candidate_key
    twin = conn.execute(select(trials.c.id).where(*of_candidate)).scalar_one_or_none()
    if twin is not None:
        raise Conflict(
            f"candidate {new.candidate_key} of trial {new.number} is measured by trial {twin} already"
        )
    values: dict[str, Any] = {name: getattr(new, name) for name in NewTrial.__slots__}
    row = conn.execute(
        insert(trials)
        .values(id=id_of_trial(job_id, new.number), job=job_id, created_at=now, **_NO_RESULT, **values)
        .returning(*TRIAL_COLUMNS)
    ).one()
    return trial_of(row)


def _settle_local(conn: Connection, trial: Row[Any], settlement: Settlement) -> None:
    digest = digest_of(settlement)
    known = conn.execute(
        select(attempts.c.digest).where(attempts.c.trial == trial.id, attempts.c.attempt == 1)
    ).scalar_one_or_none()
    if known == digest:
        return
    if known is not None:
        raise SettlementMismatch(trial.id, 1)
    now = now_of(conn)
    times = {"granted_at": now, "started_at": now, "ended_at": now}
    conn.execute(insert(attempts).values(trial=trial.id, attempt=1, state="settled", digest=digest, **times))
    conn.execute(update(trials).where(trials.c.id == trial.id).values(attempt=1, started_at=now))
    write_result(conn, trial, settlement, None, settlement.codegen_version, now)
