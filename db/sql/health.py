"""Health checks of workers, and their baselines in each job."""

import json
from collections.abc import Sequence
from dataclasses import fields
from typing import Any

from sqlalchemy import Connection, Row, Select, delete, insert, select, update

from ..checks import check_json, check_limit, check_text, check_word
from ..fleet_records import Worker
from ..health_records import HealthCheck, NewHealthCheck, WorkerBaseline
from ..health_store import DRIFT_LIMIT, MAX_HEALTH_CHECKS
from ..moments import moment
from ..words import HEALTH_OCCASIONS, HEALTH_VERDICTS, SICK_VERDICTS
from .clock import now_of
from .doubts import doubt
from .events import append_event
from .job_rows import job_row, lock_job
from .part import Part
from .tables import health_checks, job_baselines, workers
from .worker_rows import lock_worker, read_worker, set_state, superseded

_MOST_PARTS = 16 << 10
_MOST_REASON = 4 << 10
HEALTHY_AGAIN = " (its golden kernels are healthy again: release it to give it work)"


class HealthPart(Part):
    def record_health(self, worker: str, session: str, check: NewHealthCheck) -> Worker:
        _check(check)
        with self._database.write() as conn:
            row = lock_worker(conn, worker)
            if row.session != session:
                raise superseded(row)
            now = now_of(conn)
            since = last_sound(conn, worker)
            said = {name: getattr(check, name) for name in NewHealthCheck.__slots__}
            conn.execute(insert(health_checks).values(worker=worker, at=now, **said))
            _forget_old(conn, worker)
            conn.execute(update(workers).where(workers.c.id == worker).values(seen_at=now))
            if check.verdict in SICK_VERDICTS and row.state != "retired":
                _quarantine(conn, row, check, row.registered_at if since is None else since, now)
            elif row.state == "registering":
                set_state(conn, worker, "online", "", now)
            elif row.state == "quarantined":
                reason = row.reason.removesuffix(HEALTHY_AGAIN) + HEALTHY_AGAIN * (check.verdict == "healthy")
                conn.execute(update(workers).where(workers.c.id == worker).values(reason=reason))
            return read_worker(conn, worker)

    def health_checks(self, worker_id: str, limit: int = 100) -> list[HealthCheck]:
        check_limit(limit)
        columns = (health_checks.c[field.name] for field in fields(HealthCheck))
        query = select(*columns).where(health_checks.c.worker == worker_id)
        with self._database.read() as conn:
            read_worker(conn, worker_id)
            rows = conn.execute(query.order_by(health_checks.c.seq.desc()).limit(limit))
            return [HealthCheck(**row._mapping) for row in rows]

    def sound_at(self, worker_id: str) -> float | None:
        with self._database.read() as conn:
            read_worker(conn, worker_id)
            return last_sound(conn, worker_id)

    def baselines(self, job_id: str) -> list[WorkerBaseline]:
        with self._database.read() as conn:
            job_row(conn, job_id)
            return [WorkerBaseline(**row._mapping) for row in conn.execute(baselines_query([job_id]))]


def baselines_query(job_ids: Sequence[str]) -> Select[Any]:
    """What `WorkerBaseline` holds, of these jobs, by the worker's name."""
    columns = (
        workers.c.name if f.name == "name" else job_baselines.c[f.name] for f in fields(WorkerBaseline)
    )
    return (
        select(*columns)
        .join_from(job_baselines, workers, job_baselines.c.worker == workers.c.id)
        .where(job_baselines.c.job.in_(job_ids))
        .order_by(workers.c.name)
    )


def note_baseline(
    conn: Connection, job: str, worker: str | None, baseline: tuple[float, ...], now: float
) -> None:
    """Remember the first and the last baseline of a worker in a job; an event tells of its first drift."""
    if worker is None or not baseline:
        return
    seconds = sum(baseline) / len(baseline)
    own = job_baselines.c.job == job, job_baselines.c.worker == worker
    known = conn.execute(select(job_baselines).where(*own).with_for_update()).one_or_none()
    if known is None:
        values = {"first_seconds": seconds, "last_seconds": seconds, "readings": 1, "drifted": False}
        conn.execute(insert(job_baselines).values(job=job, worker=worker, **values))
        return
    drift = seconds / known.first_seconds - 1.0
    has_drifted = abs(drift) > DRIFT_LIMIT
    if has_drifted and not known.drifted:
        lock_job(conn, job)
        name = conn.execute(select(workers.c.name).where(workers.c.id == worker)).scalar_one()
        told = {"worker": worker, "name": name, "first_seconds": known.first_seconds, "last_seconds": seconds}
        append_event(conn, job, "drift", json.dumps({**told, "drift": drift}), now)
    conn.execute(
        update(job_baselines)
        .where(*own)
        .values(last_seconds=seconds, readings=known.readings + 1, drifted=known.drifted or has_drifted)
    )


def _quarantine(conn: Connection, row: Row[Any], check: NewHealthCheck, since: float, now: float) -> None:
    """Give a sick worker no more work, and believe nothing that it settled since it was last known to be
    sound. What it was quarantined for first stays said."""
    if row.state == "quarantined":
        return
    reason = f"{check.reason}; results since {moment(since)} do not count"
    set_state(conn, row.id, "quarantined", reason, now)
    doubt(conn, row.id, since, reason, now)


def last_sound(conn: Connection, worker: str) -> float | None:
    of_worker = health_checks.c.worker == worker, health_checks.c.verdict == "healthy"
    newest = select(health_checks.c.at).where(*of_worker).order_by(health_checks.c.seq.desc()).limit(1)
    return conn.execute(newest).scalar_one_or_none()


def _check(check: NewHealthCheck) -> None:
    check_word("occasion", check.occasion, HEALTH_OCCASIONS)
    check_word("verdict", check.verdict, HEALTH_VERDICTS)
    check_text("parts", check.parts, _MOST_PARTS)
    check_json("parts", check.parts)
    check_text("reason", check.reason, _MOST_REASON, empty=True)


def _forget_old(conn: Connection, worker: str) -> None:
    of_worker = health_checks.c.worker == worker
    newest = select(health_checks.c.seq).where(of_worker).order_by(health_checks.c.seq.desc())
    oldest_kept = newest.offset(MAX_HEALTH_CHECKS - 1).limit(1).scalar_subquery()
    conn.execute(delete(health_checks).where(of_worker, health_checks.c.seq < oldest_kept))
