"""Results that are not believed: of which workers, since when, and what is best-known without them."""

from collections.abc import Iterable

from sqlalchemy import ColumnElement, Connection, insert, select, update

from .belief import is_doubted
from .locks import lock_best, lock_lease_of
from .offers import end_doubted_pins, key_of, restore_best
from .tables import attempts, doubts, jobs, leases, schedules, trials

Key = tuple[str, str, str]


def doubt(conn: Connection, worker: str, since: float, reason: str, now: float) -> tuple[int, int]:
    """Believe nothing that a worker settled from `since`, nor what it will settle, until `believe`.

    Returns how many best-known schedules have another trial now, and how many have none.
    """
    lock_lease_of(conn, worker)  # what it settles just now is stored before, and is looked at
    open_doubt = doubts.c.worker == worker, doubts.c.until.is_(None)
    known = conn.execute(select(doubts).where(*open_doubt).limit(1)).one_or_none()
    if known is None:
        conn.execute(insert(doubts).values(worker=worker, since=since, reason=reason, made_at=now))
    else:
        values = {"since": min(since, known.since), "reason": reason, "made_at": now}
        conn.execute(update(doubts).where(doubts.c.seq == known.seq).values(**values))
    end_doubted_pins(conn)
    return _replaced(conn, _keys_doubted(conn), now)


def believe(conn: Connection, worker: str, now: float) -> None:
    """Believe what a worker settles from now on."""
    open_doubt = doubts.c.worker == worker, doubts.c.until.is_(None)
    conn.execute(update(doubts).where(*open_doubt).values(until=now))


def restore(conn: Connection, worker: str, now: float) -> tuple[int, int]:
    """Take all doubts of a worker back, and offer its results again."""
    conn.execute(doubts.delete().where(doubts.c.worker == worker))
    return _replaced(conn, _keys_measured(conn, worker), now)


def _replaced(conn: Connection, keys: Iterable[Key], now: float) -> tuple[int, int]:
    replaced = lost = 0
    for key in keys:
        lock_best(conn, key[0])
        before = _trial_of(conn, key)
        conn.execute(schedules.delete().where(*_is(key)))
        restore_best(conn, *key, now)
        after = _trial_of(conn, key)
        lost += after is None and before is not None
        replaced += after is not None and after != before
    return replaced, lost


def _is(key: Key) -> tuple[ColumnElement[bool], ...]:
    workload, target, hardware = key
    return (
        schedules.c.workload == workload,
        schedules.c.target == target,
        schedules.c.hardware == hardware,
    )


def _trial_of(conn: Connection, key: Key) -> str | None:
    found: str | None = conn.execute(select(schedules.c.trial).where(*_is(key))).scalar_one_or_none()
    return found


def _keys_doubted(conn: Connection) -> list[Key]:
    """The keys whose best-known schedule rests on a result that is not believed: one look at each schedule,
    however many trials there are."""
    rows = conn.execute(
        select(schedules.c.workload, schedules.c.target, schedules.c.hardware)
        .join_from(schedules, trials, schedules.c.trial == trials.c.id)
        .where(is_doubted())
        .order_by(schedules.c.workload, schedules.c.target, schedules.c.hardware)
    )
    return [key_of(row) for row in rows]


def _keys_measured(conn: Connection, worker: str) -> list[Key]:
    """The keys that a worker has measured for, by its leases."""
    rows = conn.execute(
        select(jobs.c.workload, jobs.c.target, jobs.c.hardware)
        .join_from(leases, attempts, attempts.c.lease == leases.c.id)
        .join(trials, attempts.c.trial == trials.c.id)
        .join(jobs, trials.c.job == jobs.c.id)
        .where(leases.c.worker == worker, attempts.c.state == "settled")
        .distinct()
        .order_by(jobs.c.workload, jobs.c.target, jobs.c.hardware)
    )
    return [key_of(row) for row in rows]
