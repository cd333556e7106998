"""How a lease ends before its trials are settled: who is blamed, and what goes back to the queue."""

from collections import Counter
from typing import Any

from sqlalchemy import ColumnElement, Connection, Row, Select, bindparam, delete, exists, func, select, update

from ..fleet_records import LostLease
from ..fleet_store import MAX_ATTEMPTS, MAX_LOSSES
from ..records import Settlement
from ..words import OPEN_OUTCOMES
from .clock import epoch_began, now_of
from .job_rows import is_over
from .locks import lock_jobs_of_lease
from .part import upsert
from .retimings import close_retiming, due_retiming, is_wanted_again, wanting_job
from .silence import mark_lost_worker
from .tables import attempts, crashes, jobs, leases, retimings, trials, workers
from .trial_rows import fail_trial
from .turns import refund

OPEN_ATTEMPTS = ("granted", "started", "ran")
_IS_OPEN = leases.c.closed_at.is_(None)
_HELD = select(leases).where(leases.c.worker == bindparam("by"), _IS_OPEN).with_for_update(key_share=True)


def expired_leases(conn: Connection) -> list[tuple[str, str]]:
    """Ids and workers of open leases that have expired, the longest expired first."""
    query = select(leases.c.id, leases.c.worker).where(_IS_OPEN, leases.c.expires_at <= now_of(conn))
    rows = conn.execute(query.order_by(leases.c.expires_at, leases.c.id)).all()
    return [(row.id, row.worker) for row in rows]


def has_expired() -> ColumnElement[bool]:
    """Whether any open lease has expired."""
    return exists().where(_IS_OPEN, leases.c.expires_at <= epoch_began())


def end_expired(conn: Connection, lease_id: str, worker: str) -> LostLease | None:
    """End a lease if it has expired, and note that its worker is gone; None where another call is at it."""
    of_worker = select(workers.c.id).where(workers.c.id == worker)
    if conn.execute(of_worker.with_for_update(skip_locked=True, key_share=True)).one_or_none() is None:
        return None
    query = select(leases).where(leases.c.id == lease_id, _IS_OPEN)
    row = conn.execute(query.with_for_update(skip_locked=True, key_share=True)).one_or_none()
    now = now_of(conn)
    if row is None or row.expires_at > now:
        return None
    mark_lost_worker(conn, row, now)
    return end_lease(conn, row, "expired", now)


def end_open_lease(conn: Connection, worker_id: str, ending: str, now: float) -> None:
    """End the lease that a worker holds, if it holds one."""
    row = conn.execute(_HELD, {"by": worker_id}).one_or_none()
    if row is not None:
        end_lease(conn, row, ending, now)


def end_lease(conn: Connection, lease: Row[Any], ending: str, now: float) -> LostLease:
    """Close a lease. The trial that was running is blamed, unless the lease was `released`."""
    fates: dict[str, list[str]] = {"blamed": [], "poisoned": [], "returned": [], "cancelled": []}
    lock_jobs_of_lease(conn, lease.id)
    rows = conn.execute(_unsettled(lease.id)).all()
    for row in rows:
        blamed = row.attempt_state == "started" and ending != "released"
        _close_attempt(conn, row, "lost" if blamed else "returned", now)
        fates[_fate(conn, row, lease, blamed, now)].append(row.id)
    untouched = Counter(row.job for row in rows if row.attempt_state == "granted")
    for job, count in untouched.items():
        refund(conn, job, count)
    close_lease(conn, lease.id, ending, now)
    return LostLease(lease=lease.id, worker=lease.worker, **{fate: tuple(ids) for fate, ids in fates.items()})


def close_lease(conn: Connection, lease_id: str, ending: str, now: float) -> None:
    conn.execute(update(leases).where(leases.c.id == lease_id).values(closed_at=now, ending=ending))


def forgive(conn: Connection, candidate_key: str, hardware: str) -> None:
    """Take one loss back: the worker that was thought lost has delivered."""
    of_candidate = crashes.c.candidate_key == candidate_key, crashes.c.hardware == hardware
    conn.execute(update(crashes).where(*of_candidate).values(losses=crashes.c.losses - 1))
    conn.execute(delete(crashes).where(*of_candidate, crashes.c.losses <= 0))


def poison(conn: Connection, trial: Row[Any], losses: int, now: float) -> None:
    """Settle a trial whose candidate has crashed this kind of hardware too often."""
    if trial.outcome not in OPEN_OUTCOMES:  # it has a result that stays, and was timed again
        close_retiming(conn, trial.id, "crashes_device", now)
        return
    message = f"{losses} workers on this kind of hardware were lost while they ran this candidate"
    failure = Settlement(failure_kind="crashes_device", failure_message=message)
    fail_trial(conn, trial, failure, now)


def _unsettled(lease_id: str) -> Select[Any]:
    """The trials of a lease that it still answers for, with their jobs, by number."""
    return (
        select(
            trials,
            attempts.c.attempt.label("granted"),
            attempts.c.state.label("attempt_state"),
            jobs.c.state.label("job_state"),
        )
        .join_from(attempts, trials, attempts.c.trial == trials.c.id)
        .outerjoin(retimings, due_retiming())
        .join(jobs, jobs.c.id == wanting_job())
        .where(attempts.c.lease == lease_id, attempts.c.state.in_(OPEN_ATTEMPTS))
        .order_by(jobs.c.seq, trials.c.number)
        .with_for_update(of=(trials, attempts), key_share=True)
    )


def _close_attempt(conn: Connection, row: Row[Any], state: str, now: float) -> None:
    own = attempts.c.trial == row.id, attempts.c.attempt == row.granted
    conn.execute(update(attempts).where(*own).values(state=state, ended_at=now))


def _fate(conn: Connection, row: Row[Any], lease: Row[Any], blamed: bool, now: float) -> str:
    """Decide what becomes of a trial, write it, and name it."""
    losses = _count_loss(conn, row, lease.hardware, now) if blamed else 0
    conn.execute(update(trials).where(trials.c.id == row.id).values(lease=None))
    again = is_wanted_again(conn, row.id, row.outcome)
    if is_over(row.job_state) or (row.outcome not in OPEN_OUTCOMES and not again):
        _cancel(conn, row, now)
        return "cancelled"
    if losses >= MAX_LOSSES:
        poison(conn, row, losses, now)
        return "poisoned"
    if not again and blamed and not may_try_again(conn, row):
        message = f"{MAX_ATTEMPTS} attempts to measure it were lost with their workers"
        fail_trial(conn, row, Settlement(failure_kind="worker_lost", failure_message=message), now)
        return "poisoned"
    if not again:
        requeue(conn, row.id)
    return "blamed" if blamed else "returned"


def is_fault(settlement: Settlement) -> bool:
    """Whether a result says that the worker failed, not the candidate."""
    return settlement.failure_kind == "worker_lost"


def may_try_again(conn: Connection, trial: Row[Any]) -> bool:
    """Whether a trial without a result has attempts left: those that came back untouched do not count."""
    used = select(func.count()).where(attempts.c.trial == trial.id, attempts.c.state.in_(("settled", "lost")))
    return trial.outcome in OPEN_OUTCOMES and conn.execute(used).scalar_one() < MAX_ATTEMPTS


def requeue(conn: Connection, trial_id: str) -> None:
    conn.execute(update(trials).where(trials.c.id == trial_id).values(outcome="pending", started_at=None))


def _count_loss(conn: Connection, row: Row[Any], hardware: str, now: float) -> int:
    statement = upsert(conn, crashes).values(
        candidate_key=row.candidate_key, hardware=hardware, losses=1, last_at=now, trial=row.id
    )
    counted = statement.on_conflict_do_update(
        index_elements=["candidate_key", "hardware"],
        set_={
            "losses": crashes.c.losses + 1,
            "last_at": statement.excluded.last_at,
            "trial": statement.excluded.trial,
        },
    )
    return int(conn.execute(counted.returning(crashes.c.losses)).scalar_one())


def _cancel(conn: Connection, row: Row[Any], now: float) -> None:
    cancelled = {"outcome": "cancelled", "failure_kind": "cancelled", "settled_at": now}
    conn.execute(
        update(trials)
        .where(trials.c.id == row.id, trials.c.outcome.in_(OPEN_OUTCOMES))
        .values(failure_message=f"the job is {row.job_state}", **cancelled)
    )
