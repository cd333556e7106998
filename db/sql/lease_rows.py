"""Rows of leases: reading them, who may still write, and what a worker is told."""

import hmac
from typing import Any

from sqlalchemy import Connection, Row, func, literal, or_, select, update

from ..errors import LeaseLost, NotFound, Superseded
from ..fleet_records import LeaseState
from ..words import FINAL_JOB_STATES
from .clock import now_of
from .lease_ends import OPEN_ATTEMPTS
from .retimings import due_retiming, wanting_job
from .silence import TOUCH_SECONDS
from .tables import attempts, jobs, leases, retimings, trials, workers
from .worker_rows import lock_worker

_ENDINGS = {
    "expired": "has expired",
    "released": "was released",
    "settled": "was settled to its last trial",
    "superseded": "belonged to an older session of its worker",
}


def find_lease(conn: Connection, lease_id: str, session: str | None = None) -> Row[Any]:
    """The lease, locked, with `live_session`, `worker_state` and `seen_at` of its worker; NotFound, also
    where it is another session's than the given one."""
    row = conn.execute(
        select(leases, workers.c.session.label("live_session"), workers.c.state.label("worker_state"))
        .add_columns(workers.c.seen_at)
        .join_from(leases, workers, leases.c.worker == workers.c.id)
        .where(leases.c.id == lease_id)
        .with_for_update(of=leases, key_share=True)
    ).one_or_none()
    if row is None or not (session is None or hmac.compare_digest(row.session.encode(), session.encode())):
        raise NotFound("lease", lease_id)
    return row


def live_lease(conn: Connection, lease_id: str, session: str | None = None) -> tuple[Row[Any], float]:
    """The lease of a session that is not superseded, and the time; its worker has been heard of."""
    row = find_lease(conn, lease_id, session)
    now = now_of(conn)
    if row.session != row.live_session:
        raise Superseded(f"a newer session of worker {row.worker} has registered")
    touch_worker(conn, row.worker, row.worker_state, row.seen_at, now)
    return row, now


def settling_lease(conn: Connection, lease_id: str, session: str | None = None) -> tuple[Row[Any], float]:
    """`live_lease` of a call that counts in its worker's row, which is locked first."""
    query = select(leases.c.worker).where(leases.c.id == lease_id)
    worker = conn.execute(query).scalar_one_or_none()
    if worker is not None:
        lock_worker(conn, worker)
    return live_lease(conn, lease_id, session)


def refuse_lost(lease: Row[Any], now: float) -> None:
    if is_lost(lease, now):
        raise LeaseLost(f"lease {lease.id} {_ENDINGS[lease.ending or 'expired']}")


def is_lost(lease: Row[Any], now: float) -> bool:
    return lease.closed_at is not None or bool(lease.expires_at <= now)


def touch_worker(conn: Connection, worker: str, state: str, seen_at: float, now: float) -> None:
    """Note that a worker was heard of; often is not always, for every write waits for the disk."""
    if state != "offline" and now - seen_at < TOUCH_SECONDS:
        return
    values: dict[str, Any] = {"seen_at": now}
    if state == "offline":
        values |= {"state": "online", "reason": "", "state_at": now}
    own = select(workers.c.id).where(workers.c.id == worker)
    free = workers.c.id.in_(own.with_for_update(skip_locked=True, key_share=True))
    conn.execute(update(workers).where(free, workers.c.state == state).values(**values))


def open_attempts(conn: Connection, lease_id: str) -> int:
    """How many trials the lease still answers for."""
    query = select(func.count()).where(attempts.c.lease == lease_id, attempts.c.state.in_(OPEN_ATTEMPTS))
    return int(conn.execute(query).scalar_one())


def lease_state(conn: Connection, lease: Row[Any], ttl: float) -> LeaseState:
    """What the worker is told; with a ttl of 0, that all it has not settled is somebody else's."""
    unwanted = attempts.c.state != "settled"
    held_back = literal(lease.worker_state in ("paused", "quarantined"))
    if ttl > 0:
        unwanted = attempts.c.state.in_(OPEN_ATTEMPTS) & or_(
            jobs.c.state.in_(FINAL_JOB_STATES),
            trials.c.outcome == "cancelled",
            ((jobs.c.state == "paused") | held_back) & (attempts.c.state == "granted"),
        )
    rows = conn.execute(
        select(trials.c.id)
        .join_from(attempts, trials, attempts.c.trial == trials.c.id)
        .outerjoin(retimings, due_retiming())
        .join(jobs, jobs.c.id == wanting_job())
        .where(attempts.c.lease == lease.id, unwanted)
        .order_by(jobs.c.seq, trials.c.number)
    )
    return LeaseState(cancelled=tuple(rows.scalars()), drain=lease.worker_state == "draining", ttl=ttl)
