"""Which trial is the best-known of its key: the one place that writes it."""

import json
from collections.abc import Sequence
from statistics import median
from typing import Any

from sqlalchemy import Connection, Row, Select, bindparam, delete, func, or_, select, update

from ..records import Settlement
from .belief import is_doubted
from .best_rows import SERVABLE, Key, of_key, same_key
from .locks import lock_best
from .part import upsert
from .tables import baselines, jobs, pins, schedules, trials

_UNCONFIRMED: dict[str, Any] = {"confirmed_by": None, "confirmed_seconds": None, "confirmed_at": None}
_UNCHALLENGED: dict[str, Any] = {"challenger": None, "challenger_seconds": None}


def offer_best(conn: Connection, trial_id: str, now: float) -> None:
    """Make a trial that may be served the best-known of its key, where none is or a slower one of its job;
    let it challenge a slower one of another job."""
    row = servable(conn, trial_id)
    if row is None:
        return
    key = key_of(row)
    if not _is_faster(conn, row, key):
        return  # as most are: nothing is locked for them
    lock_best(conn, row.workload)
    if servable(conn, trial_id) is None:
        return  # retired or doubted meanwhile
    if not _put_first(conn, row, key, now):
        stands = standing_row(conn, key)
        if stands is None or row.seconds >= stands.seconds:
            return
        if stands.job == row.job:
            enthrone(conn, key, row.id, row.seconds, now)
        elif stands.candidate_key != row.candidate_key:  # else it is the same schedule
            challenge(conn, key, row.id, row.seconds)


def offer_all(conn: Connection, ids: Sequence[str], now: float) -> None:
    """`offer_best` of each of these, the fastest first: it leaves nothing to the others."""
    if ids:
        for trial in conn.execute(_FASTER, {"ids": list(ids)}).scalars().all():
            offer_best(conn, trial, now)


def _is_faster(conn: Connection, row: Row[Any], key: Key) -> bool:
    """Whether a trial is faster than what stands, or nothing does."""
    query = select(schedules.c.seconds).where(*of_key(schedules, key))
    stands = conn.execute(query).scalar_one_or_none()
    return stands is None or bool(row.seconds < stands)


def servable(conn: Connection, trial_id: str) -> Row[Any] | None:
    """The trial with its key, where it may be best-known."""
    return conn.execute(_trials_with_keys().where(trials.c.id == trial_id, *SERVABLE)).one_or_none()


def evidence(conn: Connection, trial_id: str) -> Row[Any] | None:
    """The trial with its key, whatever became of it."""
    return conn.execute(_trials_with_keys().where(trials.c.id == trial_id)).one_or_none()


def key_of(row: Any) -> Key:
    """Of a row that has the three columns."""
    return row.workload, row.target, row.hardware


def standing_row(conn: Connection, key: Key) -> Row[Any] | None:
    """The row of what stands, with its job, which nobody else writes until this transaction ends."""
    columns = schedules, trials.c.job, trials.c.candidate_key
    query = select(*columns).join_from(schedules, trials, schedules.c.trial == trials.c.id)
    return conn.execute(query.where(*of_key(schedules, key)).with_for_update(of=schedules)).one_or_none()


def enthrone(conn: Connection, key: Key, trial: str, seconds: float, now: float) -> None:
    """Another trial, or another time of the same, stands from now on: unconfirmed, if it is another."""
    same = schedules.c.trial == trial
    conn.execute(
        update(schedules).where(*of_key(schedules, key), same).values(seconds=seconds, updated_at=now)
    )
    values = {"trial": trial, "seconds": seconds, "updated_at": now, **_UNCONFIRMED}
    conn.execute(update(schedules).where(*of_key(schedules, key), ~same).values(**values))
    beaten = (schedules.c.challenger == trial) | (schedules.c.challenger_seconds >= seconds)
    conn.execute(update(schedules).where(*of_key(schedules, key), beaten).values(**_UNCHALLENGED))


def challenge(conn: Connection, key: Key, trial: str, seconds: float) -> None:
    """Note a reading that is below what stands, if it is the fastest such."""
    slower = schedules.c.challenger_seconds.is_(None) | (schedules.c.challenger_seconds > seconds)
    below = schedules.c.seconds > seconds
    values = {"challenger": trial, "challenger_seconds": seconds}
    conn.execute(update(schedules).where(*of_key(schedules, key), slower, below).values(**values))


def forget_challengers(conn: Connection, key: Key, ids: Sequence[str]) -> None:
    """These were timed against what stands, or may not be served: they challenge it no more."""
    among = schedules.c.challenger.in_(ids)
    conn.execute(update(schedules).where(*of_key(schedules, key), among).values(**_UNCHALLENGED))


def forget_challengers_of_job(conn: Connection, key: Key, job: str) -> None:
    of_job = select(trials.c.id).where(trials.c.job == job)
    among = schedules.c.challenger.in_(of_job)
    conn.execute(update(schedules).where(*of_key(schedules, key), among).values(**_UNCHALLENGED))


def retime(conn: Connection, trial: str, samples: Sequence[float]) -> float:
    """Give a trial the times of its final rounds; what the search was told of it stays beside them."""
    seconds = median(samples)
    first = {
        "first_seconds": func.coalesce(trials.c.first_seconds, trials.c.seconds),
        "first_samples": func.coalesce(trials.c.first_samples, trials.c.samples),
    }
    timed = {"seconds": seconds, "samples": json.dumps(list(samples))}
    conn.execute(update(trials).where(trials.c.id == trial).values(**timed, **first))
    return seconds


def restore_best(conn: Connection, workload: str, target: str, hardware: str, now: float) -> None:
    """Find who stands for a key that has nobody: the fastest of each of its jobs, by the index of that job.
    What nobody may serve any more is neither pinned nor a challenger."""
    key = workload, target, hardware
    found = []
    for job in conn.execute(select(jobs.c.id).where(*of_key(jobs, key)).order_by(jobs.c.seq)).scalars().all():
        of_job = _trials_with_keys().where(trials.c.job == job, *SERVABLE)
        row = conn.execute(of_job.order_by(trials.c.seconds, trials.c.number).limit(1)).one_or_none()
        if row is not None:
            found.append(row)
    if found:
        _put_first(conn, min(found, key=lambda row: float(row.seconds)), key, now)


def settle_pin(conn: Connection, key: Key) -> None:
    """End the pin of a key to a trial that may not be served any more."""
    pinned = conn.execute(select(pins.c.trial).where(*of_key(pins, key))).scalar_one_or_none()
    if pinned is not None and servable(conn, pinned) is None:
        conn.execute(delete(pins).where(*of_key(pins, key)))


def end_doubted_pins(conn: Connection) -> None:
    """End every pin to a trial whose time is not believed."""
    doubted = select(pins.c.trial).join_from(pins, trials, pins.c.trial == trials.c.id).where(is_doubted())
    conn.execute(delete(pins).where(pins.c.trial.in_(doubted)))


def settle_challenger(conn: Connection, stands: Row[Any]) -> None:
    """Forget a challenger that may not be served any more."""
    if stands.challenger is not None and servable(conn, stands.challenger) is None:
        forget_challengers(conn, key_of(stands), [stands.challenger])


def take_unrivalled(conn: Connection, job: Row[Any], now: float) -> None:
    """A job that people measured has ended: its challenger, which nobody here can time, takes the place."""
    if job.hardware is None:
        return
    stands = standing_row(conn, key_of(job))
    if stands is None or stands.challenger is None:
        return
    row = servable(conn, stands.challenger)
    if row is not None and row.job == job.id:
        enthrone(conn, key_of(job), row.id, row.seconds, now)


def note_baseline(conn: Connection, trial: Row[Any], settlement: Settlement) -> None:
    """Note the time of a default schedule: that of the newest job, and of its first that has code."""
    seconds, bound = settlement.seconds, settlement.censored
    if settlement.failure_kind == "run_timeout":
        seconds, bound = _limit(settlement.failure_detail), True
    job = conn.execute(select(jobs).where(jobs.c.id == trial.job)).one()
    if seconds is None or job.hardware is None:
        return
    key = key_of(job)
    known = conn.execute(
        select(baselines, trials.c.job)
        .join_from(baselines, trials, baselines.c.trial == trials.c.id)
        .where(*of_key(baselines, key))
    ).one_or_none()
    if known is not None and known.job == trial.job and known.number < trial.number:
        return
    values = {"trial": trial.id, "number": trial.number, "seconds": seconds, "bound": bound}
    workload, target, hardware = key
    statement = upsert(conn, baselines).values(workload=workload, target=target, hardware=hardware, **values)
    conn.execute(
        statement.on_conflict_do_update(index_elements=["workload", "target", "hardware"], set_=values)
    )


def _limit(detail: str) -> float | None:
    said = json.loads(detail)
    limit = said.get("limit") if isinstance(said, dict) else None
    return float(limit) if isinstance(limit, int | float) and limit > 0 else None


def _put_first(conn: Connection, row: Row[Any], key: Key, now: float) -> bool:
    """Make a trial the first that is known for its key; False where one is."""
    workload, target, hardware = key
    values = {"workload": workload, "target": target, "hardware": hardware, "updated_at": now}
    statement = upsert(conn, schedules).values(trial=row.id, seconds=row.seconds, **values)
    first = statement.on_conflict_do_nothing(index_elements=["workload", "target", "hardware"])
    return conn.execute(first.returning(schedules.c.trial)).first() is not None


def _trials_with_keys() -> Select[Any]:
    columns = (
        trials.c.id,
        trials.c.job,
        trials.c.candidate_key,
        trials.c.seconds,
        jobs.c.workload,
        jobs.c.target,
        jobs.c.hardware,
    )
    return select(*columns).join_from(trials, jobs, trials.c.job == jobs.c.id)


_FASTER = (
    select(trials.c.id)
    .join_from(trials, jobs, trials.c.job == jobs.c.id)
    .outerjoin(schedules, same_key(schedules, jobs))
    .where(trials.c.id.in_(bindparam("ids", expanding=True)), *SERVABLE)
    .where(or_(schedules.c.seconds.is_(None), trials.c.seconds < schedules.c.seconds))
    .order_by(trials.c.seconds, trials.c.number)
)
