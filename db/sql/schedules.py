"""Best-known schedules: looking them up, and deciding between them."""

import json
from collections.abc import Mapping, Sequence
from statistics import median
from typing import Any

from sqlalchemy import Connection, Row, delete, insert, select, tuple_, update

from ..best_records import BestSchedule, Duel, KeptSchedule, Retirement
from ..checks import check_limit, check_seconds, check_text
from ..errors import InvalidValue, NotFound, StoreUnavailable
from ..records import Page
from .best_rows import (
    Key,
    best_of,
    kept_of,
    kept_query,
    listed_query,
    of_key,
    read_best,
    read_frozen,
    read_standing,
    rival_query,
)
from .clock import now_of
from .job_rows import searched_row
from .locks import lock_best
from .offers import (
    challenge,
    enthrone,
    evidence,
    forget_challengers,
    forget_challengers_of_job,
    key_of,
    offer_best,
    restore_best,
    retime,
    servable,
    settle_challenger,
    settle_pin,
    standing_row,
)
from .part import Part, upsert
from .pins import require_freeze
from .tables import duels, jobs, retirements, schedules, structures, trials, workers


class SchedulePart(Part):
    def best(
        self, workload: str, target: str, hardware: str, freeze: str | None = None
    ) -> BestSchedule | None:
        key = workload, target, hardware
        with self._database.read() as conn:
            if freeze is None:
                return read_best(conn, key)
            require_freeze(conn, freeze)
            return read_frozen(conn, key, freeze)

    def standing(self, workload: str, target: str, hardware: str) -> BestSchedule | None:
        with self._database.read() as conn:
            return read_standing(conn, (workload, target, hardware))

    def nearby(self, workload: str, structure: str, limit: int = 32) -> list[KeptSchedule]:
        check_limit(limit)
        own = kept_query().where(schedules.c.workload == workload)
        own = own.order_by(schedules.c.seconds, schedules.c.target, schedules.c.hardware).limit(limit)
        alike = kept_query().join(structures, structures.c.workload == schedules.c.workload)
        alike = alike.where(structures.c.structure == structure, schedules.c.workload != workload)
        alike = alike.order_by(schedules.c.updated_at.desc(), schedules.c.workload).limit(limit)
        with self._database.read() as conn:
            return [kept_of(row) for query in (own, alike) for row in conn.execute(query)]

    def kept(self, after: str | None = None, limit: int = 100) -> Page[KeptSchedule]:
        check_limit(limit)
        columns = schedules.c.workload, schedules.c.target, schedules.c.hardware
        query = listed_query().order_by(*columns).limit(limit + 1)
        if after is not None:
            query = query.where(tuple_(*columns) > tuple_(*_key_in(after)))
        with self._database.read() as conn:
            items = [kept_of(row) for row in conn.execute(query)]
        more = len(items) > limit
        items = items[:limit]
        return Page(tuple(items), _name_of(items[-1].schedule) if more else None)

    def rivals(self, workload: str, target: str, hardware: str, limit: int = 10) -> list[BestSchedule]:
        check_limit(limit)
        query = rival_query().where(*of_key(jobs, (workload, target, hardware)))
        with self._database.read() as conn:
            rows = conn.execute(query.order_by(trials.c.seconds, trials.c.id).limit(limit))
            return [best_of(row) for row in rows]

    def duels(self, workload: str, target: str, hardware: str, limit: int = 20) -> list[Duel]:
        check_limit(limit)
        query = select(duels).where(*of_key(duels, (workload, target, hardware)))
        with self._database.read() as conn:
            rows = conn.execute(query.order_by(duels.c.seq.desc()).limit(limit)).all()
        return [
            Duel(row.job, row.incumbent, row.winner, _times(row.times), row.worker, row.at) for row in rows
        ]

    def retirements(self, workload: str, target: str, hardware: str, limit: int = 20) -> list[Retirement]:
        check_limit(limit)
        query = (
            select(retirements.c.trial, retirements.c.reason, retirements.c.retired_at)
            .join_from(retirements, trials, trials.c.id == retirements.c.trial)
            .join(jobs, jobs.c.id == trials.c.job)
            .where(*of_key(jobs, (workload, target, hardware)))
            .order_by(retirements.c.retired_at.desc(), retirements.c.trial)
        )
        with self._database.read() as conn:
            return [Retirement(*row) for row in conn.execute(query.limit(limit))]

    def crown(self, job_id: str, epoch: int, number: int, samples: Sequence[float]) -> BestSchedule | None:
        _check_samples("samples", samples)
        with self._database.write() as conn:
            lock_best(conn, searched_row(conn, job_id, epoch).workload)
            mine = select(trials.c.id).where(trials.c.job == job_id, trials.c.number == number)
            trial = conn.execute(mine).scalar_one_or_none() or ""
            row = servable(conn, trial)
            if row is None:
                found = evidence(conn, trial)
                if found is None or not _is_retired(conn, found):
                    raise InvalidValue("number", f"trial {number} of {job_id} has no time that could be best")
                return read_standing(conn, key_of(found))
            key, now = key_of(row), now_of(conn)
            seconds = retime(conn, row.id, samples)
            stands = standing_row(conn, key)
            if stands is None:
                offer_best(conn, row.id, now)
            elif stands.job == job_id:
                enthrone(conn, key, row.id, seconds, now)
            else:
                forget_challengers_of_job(conn, key, job_id)
                if stands.candidate_key != row.candidate_key:
                    challenge(conn, key, row.id, seconds)
            return read_standing(conn, key)

    def decide(
        self, job_id: str, epoch: int, times: Mapping[str, Sequence[float]], worker: str | None = None
    ) -> BestSchedule | None:
        if len(times) < 2:
            raise InvalidValue("times", "must be those of two trials at least")
        for trial, samples in times.items():
            _check_samples(f"times[{trial}]", samples)
        with self._database.write() as conn:
            job = searched_row(conn, job_id, epoch)
            lock_best(conn, job.workload)
            key, now = key_of(job), now_of(conn)
            if worker is not None:
                _require_worker(conn, worker)
            for trial in times:
                row = evidence(conn, trial)
                if row is None or key_of(row) != key:
                    raise InvalidValue("times", f"trial {trial} is none that could be best for job {job_id}")
            times = {trial: taken for trial, taken in times.items() if servable(conn, trial) is not None}
            stands = standing_row(conn, key)
            if stands is not None and stands.trial in times and len(times) > 1:
                winner = min(times, key=lambda one: (median(times[one]), one != stands.trial, one))
                seconds = retime(conn, winner, times[winner])
                enthrone(conn, key, winner, seconds, now)
                forget_challengers(conn, key, list(times))
                said = json.dumps({trial: list(taken) for trial, taken in times.items()})
                fought = {"job": job_id, "incumbent": stands.trial, "winner": winner, "times": said}
                conn.execute(insert(duels).values(**_columns(key), **fought, worker=worker, at=now))
            return read_standing(conn, key)

    def confirm(
        self, job_id: str, epoch: int, trial: str, worker: str, seconds: float
    ) -> BestSchedule | None:
        check_seconds("seconds", seconds)
        with self._database.write() as conn:
            key = key_of(searched_row(conn, job_id, epoch))
            _require_worker(conn, worker)
            if evidence(conn, trial) is None:
                raise NotFound("trial", trial)
            values = {"confirmed_by": worker, "confirmed_seconds": seconds, "confirmed_at": now_of(conn)}
            stands = (*of_key(schedules, key), schedules.c.trial == trial)
            conn.execute(update(schedules).where(*stands).values(**values))
            return read_standing(conn, key)

    def retire(self, trial_id: str, reason: str) -> BestSchedule | None:
        check_text("reason", reason, 64 << 10)
        with self._database.write() as conn:
            row = evidence(conn, trial_id)
            if row is None:
                raise NotFound("trial", trial_id)
            if row.hardware is None:
                return None
            lock_best(conn, row.workload)
            key, now = key_of(row), now_of(conn)
            values = {"candidate_key": row.candidate_key, "hardware": row.hardware, "trial": row.id}
            statement = upsert(conn, retirements).values(reason=reason, retired_at=now, **values)
            conn.execute(statement.on_conflict_do_nothing(index_elements=["candidate_key", "hardware"]))
            settle_pin(conn, key)
            stands = standing_row(conn, key)
            if stands is not None and servable(conn, stands.trial) is None:
                conn.execute(delete(schedules).where(*of_key(schedules, key)))
                restore_best(conn, *key, now)
            elif stands is not None:
                settle_challenger(conn, stands)
            return read_standing(conn, key)

    def report(self, trial: str, reason: str) -> str:
        try:
            self.retire(trial, reason)
        except (StoreUnavailable, NotFound) as error:
            return f"kept: {error}"
        return "retired"


def _is_retired(conn: Connection, trial: Row[Any]) -> bool:
    query = select(retirements.c.trial).where(
        retirements.c.candidate_key == trial.candidate_key, retirements.c.hardware == trial.hardware
    )
    return conn.execute(query).first() is not None


def _check_samples(field: str, samples: Sequence[float]) -> None:
    if not samples:
        raise InvalidValue(field, "must hold at least one time")
    for n, sample in enumerate(samples):
        check_seconds(f"{field}[{n}]", sample)


def _require_worker(conn: Connection, worker: str) -> None:
    if conn.execute(select(workers.c.id).where(workers.c.id == worker)).one_or_none() is None:
        raise NotFound("worker", worker)


def _columns(key: Key) -> dict[str, str]:
    return dict(zip(("workload", "target", "hardware"), key, strict=True))


def _times(text: str) -> dict[str, tuple[float, ...]]:
    return {trial: tuple(taken) for trial, taken in json.loads(text).items()}


def _name_of(best: BestSchedule) -> str:
    return json.dumps([best.workload, best.target, best.hardware])


def _key_in(after: str) -> Key:
    try:
        workload, target, hardware = json.loads(after)
    except (TypeError, ValueError, RecursionError):
        raise InvalidValue("after", "is none that a page gave") from None
    for part in (workload, target, hardware):
        check_text("after", part)
    return workload, target, hardware
