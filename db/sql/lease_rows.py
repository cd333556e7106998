"""Rows of leases: reading them, who may still write, and what a worker is told."""

import hmac
from collections.abc import Collection, Sequence
from typing import Any

from sqlalchemy import Connection, Row, Select, bindparam, select, update

from ..errors import LeaseLost, NotFound
from ..fleet_records import LeaseState
from .clock import epoch_now, now_of
from .job_rows import is_over
from .lease_ends import OPEN_ATTEMPTS
from .retimings import due_retiming, wanting_job
from .silence import TOUCH_SECONDS
from .tables import attempts, jobs, leases, retimings, trials, workers
from .worker_rows import superseded

_ENDINGS = {
    "expired": "has expired",
    "released": "was released",
    "settled": "was settled to its last trial",
    "superseded": "belonged to an older session of its worker",
}

# Statements that every call of a worker makes are made once: making one takes longer than running it.
_LEASE = (
    select(leases, workers.c.session.label("live_session"), workers.c.state.label("worker_state"))
    .add_columns(workers.c.seen_at)
    .join_from(leases, workers, leases.c.worker == workers.c.id)
    .where(leases.c.id == bindparam("lease"))
)
_FIND = _LEASE.with_for_update(of=leases, key_share=True)
_FIND_WITH_WORKER = _LEASE.with_for_update(of=(workers, leases), key_share=True)
_HELD: Select[Any] = (
    select(
        trials.c.id,
        trials.c.job,
        trials.c.number,
        trials.c.candidate_key,
        trials.c.origin,
        trials.c.outcome,
        trials.c.attempt,
        attempts.c.attempt.label("granted"),
        attempts.c.state.label("attempt_state"),
        attempts.c.digest,
        jobs.c.state.label("job_state"),
        retimings.c.turn.label("due"),
        epoch_now().label("now"),
    )
    .join_from(attempts, trials, attempts.c.trial == trials.c.id)
    .outerjoin(retimings, due_retiming())
    .join(jobs, jobs.c.id == wanting_job())
    .where(attempts.c.lease == bindparam("lease"))
    .order_by(jobs.c.seq, trials.c.number)
)
_EXTEND = (
    update(leases)
    .where(leases.c.id == bindparam("which"))
    .values(ttl=bindparam("to_ttl"), expires_at=bindparam("to_expires"))
)


def find_lease(
    conn: Connection, lease_id: str, session: str | None = None, with_worker: bool = False
) -> Row[Any]:
    """The lease, locked, with `live_session`, `worker_state` and `seen_at` of its worker, whose row is locked
    first if that is asked for; NotFound, also where it is another session's than the given one."""
    query = _FIND_WITH_WORKER if with_worker else _FIND
    row = conn.execute(query, {"lease": lease_id}).one_or_none()
    if row is None or not (session is None or hmac.compare_digest(row.session.encode(), session.encode())):
        raise NotFound("lease", lease_id)
    return row


def live_lease(
    conn: Connection, lease_id: str, session: str | None = None, with_worker: bool = False
) -> Row[Any]:
    """`find_lease` of a session that is not superseded."""
    row = find_lease(conn, lease_id, session, with_worker)
    if row.session != row.live_session:
        raise superseded(conn.execute(select(workers).where(workers.c.id == row.worker)).one())
    return row


def held_rows(conn: Connection, lease: Row[Any]) -> tuple[Sequence[Row[Any]], float]:
    """All trials that a lease was ever granted, in their order, with their attempts and the states of the
    jobs for which they are measured; and the time, after what was waited for."""
    rows: Sequence[Row[Any]] = conn.execute(_HELD, {"lease": lease.id}).all()
    return rows, float(rows[0].now) if rows else now_of(conn)


def refuse_lost(lease: Row[Any], now: float) -> None:
    if is_lost(lease, now):
        raise LeaseLost(f"lease {lease.id} {_ENDINGS[lease.ending or 'expired']}")


def is_lost(lease: Row[Any], now: float) -> bool:
    return lease.closed_at is not None or bool(lease.expires_at <= now)


def extend_lease(conn: Connection, lease_id: str, ttl: float, now: float) -> None:
    """Let it end `ttl` seconds from now."""
    conn.execute(_EXTEND, {"which": lease_id, "to_ttl": ttl, "to_expires": now + ttl})


_ABSENT = ("registering", "offline")
"""A worker in one of these that calls is online."""


def touch_worker(conn: Connection, worker: str, state: str, seen_at: float, ttl: float, now: float) -> None:
    """Note that a worker was heard of that has leases of `ttl` seconds. Often is not always, for every write
    waits for the disk; but so often that a lease does not expire meanwhile."""
    if state not in _ABSENT and now - seen_at < min(TOUCH_SECONDS, ttl / 2):
        return
    values: dict[str, Any] = {"seen_at": now}
    if state in _ABSENT:
        values |= {"state": "online", "reason": "", "state_at": now}
    own = select(workers.c.id).where(workers.c.id == worker)
    free = workers.c.id.in_(own.with_for_update(skip_locked=True, key_share=True))
    conn.execute(update(workers).where(free, workers.c.state == state).values(**values))


def open_attempts(rows: Sequence[Row[Any]], settled: Collection[str] = ()) -> list[Row[Any]]:
    """The trials that a lease still answers for; `settled`: of the rows as they were before these were."""
    return [row for row in rows if row.attempt_state in OPEN_ATTEMPTS and row.id not in settled]


def lease_state(
    lease: Row[Any], rows: Sequence[Row[Any]], ttl: float, settled: Collection[str] = ()
) -> LeaseState:
    """What the worker is told; with a ttl of 0, that all it has not settled is somebody else's."""
    if ttl > 0:
        cancelled = tuple(row.id for row in open_attempts(rows, settled) if _is_unwanted(lease, row))
    else:
        cancelled = tuple(row.id for row in rows if row.attempt_state != "settled" and row.id not in settled)
    return LeaseState(cancelled=cancelled, drain=lease.worker_state == "draining", ttl=ttl)


def _is_unwanted(lease: Row[Any], row: Row[Any]) -> bool:
    if is_over(row.job_state) or row.outcome == "cancelled":
        return True
    held_back = row.job_state == "paused" or lease.worker_state in ("paused", "quarantined")
    return held_back and bool(row.attempt_state == "granted")
