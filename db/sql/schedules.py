"""Best-known schedules."""

import json
from collections.abc import Sequence
from statistics import median
from typing import Any

from sqlalchemy import Connection, Row, Select, delete, exists, func, insert, select, update

from ..checks import check_seconds, check_text
from ..errors import InvalidValue, NotFound
from ..records import BestSchedule, SearchState
from .belief import is_doubted
from .clock import now_of
from .job_rows import searched_row
from .locks import lock_best
from .part import Part, upsert
from .tables import jobs, retirements, schedules, trials


class SchedulePart(Part):
    def best(self, workload: str, target: str, hardware: str) -> BestSchedule | None:
        with self._database.read() as conn:
            return _best(conn, workload, target, hardware)

    def crown(self, job_id: str, epoch: int, number: int, samples: Sequence[float]) -> BestSchedule | None:
        if not samples:
            raise InvalidValue("samples", "must hold at least one time")
        for n, sample in enumerate(samples):
            check_seconds(f"samples[{n}]", sample)
        with self._database.write() as conn:
            lock_best(conn, searched_row(conn, job_id, epoch).workload)
            row = conn.execute(
                _servable().where(trials.c.job == job_id, trials.c.number == number)
            ).one_or_none()
            if row is None:
                raise InvalidValue("number", f"trial {number} of {job_id} has no time that could be best")
            timed = {"seconds": median(samples), "samples": json.dumps(list(samples))}
            first = {
                "first_seconds": func.coalesce(trials.c.first_seconds, trials.c.seconds),
                "first_samples": func.coalesce(trials.c.first_samples, trials.c.samples),
            }
            conn.execute(update(trials).where(trials.c.id == row.id).values(**timed, **first))
            same_job = select(trials.c.id).where(trials.c.job == job_id)
            key = schedules.c.workload == row.workload, schedules.c.target == row.target
            conn.execute(
                delete(schedules).where(
                    *key, schedules.c.hardware == row.hardware, schedules.c.trial.in_(same_job)
                )
            )
            offer_best(conn, row.id, now_of(conn))
            return _best(conn, row.workload, row.target, row.hardware)

    def retire(self, trial_id: str, reason: str) -> BestSchedule | None:
        check_text("reason", reason, 64 << 10)
        with self._database.write() as conn:
            row = conn.execute(_evidence().where(trials.c.id == trial_id)).one_or_none()
            if row is None:
                raise NotFound("trial", trial_id)
            if row.hardware is None:
                return None
            lock_best(conn, row.workload)
            now = now_of(conn)
            _retire(conn, row, reason, now)
            removed = conn.execute(delete(schedules).where(schedules.c.trial == trial_id)).rowcount
            if removed:
                restore_best(conn, row.workload, row.target, row.hardware, now)
            return _best(conn, row.workload, row.target, row.hardware)


def offer_best(conn: Connection, trial_id: str, now: float) -> None:
    """Make a trial the best-known of its key, if it may be served and is faster than the one that stands."""
    row = conn.execute(_servable().where(trials.c.id == trial_id)).one_or_none()
    if row is None or not _is_faster(conn, row):
        return
    lock_best(conn, row.workload)
    if conn.execute(_servable().where(trials.c.id == trial_id)).one_or_none() is None:
        return  # its candidate was retired meanwhile
    statement = upsert(conn, schedules).values(
        workload=row.workload,
        target=row.target,
        hardware=row.hardware,
        trial=row.id,
        seconds=row.seconds,
        updated_at=now,
    )
    new = statement.excluded
    conn.execute(
        statement.on_conflict_do_update(
            index_elements=["workload", "target", "hardware"],
            set_={"trial": new.trial, "seconds": new.seconds, "updated_at": new.updated_at},
            where=schedules.c.seconds > new.seconds,
        )
    )


def _is_faster(conn: Connection, row: Row[Any]) -> bool:
    """Whether a trial beats what is best-known for its key; most do not, and then nothing is locked."""
    key = schedules.c.workload == row.workload, schedules.c.target == row.target
    query = select(schedules.c.seconds).where(*key, schedules.c.hardware == row.hardware)
    standing = conn.execute(query).scalar_one_or_none()
    return standing is None or bool(row.seconds < standing)


def _evidence() -> Select[Any]:
    columns = (
        trials.c.id,
        trials.c.candidate_key,
        trials.c.seconds,
        jobs.c.workload,
        jobs.c.target,
        jobs.c.hardware,
    )
    return select(*columns).join_from(trials, jobs, trials.c.job == jobs.c.id)


def _servable() -> Select[Any]:
    """Trials that may be best-known: checked, not censored, of a known codegen version, believed, not
    retired."""
    retired = exists().where(
        retirements.c.candidate_key == trials.c.candidate_key, retirements.c.hardware == jobs.c.hardware
    )
    return _evidence().where(
        trials.c.outcome == "ok",
        trials.c.error.is_not(None),
        trials.c.codegen_version.is_not(None),
        jobs.c.hardware.is_not(None),
        ~retired,
        ~is_doubted(),
    )


def _best(conn: Connection, workload: str, target: str, hardware: str) -> BestSchedule | None:
    row = conn.execute(
        select(
            trials.c.trace,
            trials.c.seconds,
            trials.c.samples,
            trials.c.error,
            trials.c.id.label("trial"),
            trials.c.job,
            trials.c.worker,
            trials.c.settled_at,
            trials.c.codegen_version,
            jobs.c.done,
            jobs.c.trials.label("asked"),
            jobs.c.state,
        )
        .join_from(schedules, trials, schedules.c.trial == trials.c.id)
        .join(jobs, trials.c.job == jobs.c.id)
        .where(
            schedules.c.workload == workload, schedules.c.target == target, schedules.c.hardware == hardware
        )
    ).one_or_none()
    if row is None:
        return None
    return BestSchedule(
        workload=workload,
        target=target,
        hardware=hardware,
        trace=row.trace,
        seconds=row.seconds,
        samples=tuple(json.loads(row.samples)),
        error=row.error,
        trial=row.trial,
        job=row.job,
        worker=row.worker,
        measured_at=row.settled_at,
        codegen_version=row.codegen_version,
        search=SearchState(done=row.done, asked=row.asked, state=row.state),
        kind="exact",
        reason=f"measured for this workload, target and hardware by trial {row.trial}",
    )


def _retire(conn: Connection, row: Row[Any], reason: str, now: float) -> None:
    known = retirements.c.candidate_key == row.candidate_key, retirements.c.hardware == row.hardware
    if conn.execute(select(retirements.c.trial).where(*known)).one_or_none() is None:
        values = {"candidate_key": row.candidate_key, "hardware": row.hardware, "trial": row.id}
        conn.execute(insert(retirements).values(reason=reason, retired_at=now, **values))


def restore_best(conn: Connection, workload: str, target: str, hardware: str, now: float) -> None:
    """Find the next best of a key that has none: of the fastest of each job, by the index of that job."""
    same_key = jobs.c.workload == workload, jobs.c.target == target, jobs.c.hardware == hardware
    for job in conn.execute(select(jobs.c.id).where(*same_key).order_by(jobs.c.seq)).scalars().all():
        fastest = _servable().where(trials.c.job == job).order_by(trials.c.seconds, trials.c.number).limit(1)
        row = conn.execute(fastest).one_or_none()
        if row is not None:
            offer_best(conn, row.id, now)
