"""Granting queued trials to a worker."""

from collections.abc import Sequence
from typing import Any

from sqlalchemy import Connection, Row, Select, bindparam, exists, func, insert, null, select, update

from ..fleet_records import Lease, LeaseItem
from ..fleet_store import MAX_LEASE_ITEMS, MAX_LOSSES
from .belief import is_doubted
from .job_rows import job_row
from .jobs import change_state
from .lease_ends import poison
from .part import new_id
from .run_only import built, fail_unbuildable
from .tables import attempts, crashes, jobs, leases, retimings, targets, trials, workloads

_ITEM = (
    trials.c.id.label("trial"),
    (trials.c.attempt + 1).label("attempt"),
    jobs.c.id.label("job"),
    trials.c.number,
    jobs.c.workload,
    workloads.c.program,
    jobs.c.target,
    targets.c.description,
    trials.c.trace,
    trials.c.input_seed,
)


def grant(conn: Connection, worker: Row[Any], count: int, ttl: float, now: float) -> Lease | None:
    """Lease up to `count` queued trials of the worker's hardware to it; None where nothing is queued."""
    _poison_queued(conn, worker.hardware, now)
    again, queued = _wanted_again(worker), _queued_items(worker.hardware)
    if worker.run_only:
        fail_unbuildable(conn, jobs.c.hardware == worker.hardware, now)
        again, queued = built(again), built(queued)
    rows = conn.execute(again.limit(count)).all()
    rows = rows or conn.execute(queued.limit(count)).all()
    if not rows:
        return None
    lease_id = new_id("lease")
    _insert_lease(conn, lease_id, worker, ttl, now)
    _hand_over(conn, lease_id, worker, rows, now)
    for job in {row.job: None for row in rows}:
        _wake(conn, job, now)
    items = tuple(LeaseItem(**row._mapping) for row in rows)
    return Lease(id=lease_id, worker=worker.id, ttl=ttl, items=items)


def _is_free(hardware: str) -> Any:
    return (
        (jobs.c.hardware == hardware)
        & (jobs.c.origin == "http")
        & jobs.c.state.in_(("running", "waiting"))
        & trials.c.lease.is_(None)
    )


def _is_queued(hardware: str) -> Any:
    return _is_free(hardware) & (trials.c.outcome == "pending")


def _wanted_again(worker: Row[Any]) -> Select[Any]:
    """Settled trials that are to be timed once more, by this worker: alone, with nothing to beat. They may be
    of another job than the one that wants it."""
    return (
        select(*_ITEM, null().label("best_seconds"))
        .join_from(retimings, trials, retimings.c.trial == trials.c.id)
        .join(jobs, jobs.c.id == func.coalesce(retimings.c.job, trials.c.job))
        .join(workloads, jobs.c.workload == workloads.c.key)
        .join(targets, jobs.c.target == targets.c.key)
        .where(_is_free(worker.hardware), retimings.c.outcome == "pending")
        .where(retimings.c.device.is_(None) | (retimings.c.device == worker.id))
        .order_by(jobs.c.seq, retimings.c.place)
        .with_for_update(skip_locked=True, of=trials)
    )


def _queued_items(hardware: str) -> Select[Any]:
    earlier = trials.alias()
    best = select(func.min(earlier.c.seconds)).where(
        earlier.c.job == trials.c.job, earlier.c.outcome == "ok", ~is_doubted(earlier)
    )
    return (
        select(*_ITEM, best.scalar_subquery().label("best_seconds"))
        .join_from(trials, jobs, trials.c.job == jobs.c.id)
        .join(workloads, jobs.c.workload == workloads.c.key)
        .join(targets, jobs.c.target == targets.c.key)
        .where(_is_queued(hardware))
        .order_by(jobs.c.seq, trials.c.number)
        .with_for_update(skip_locked=True, of=trials)
    )


def _poison_queued(conn: Connection, hardware: str, now: float) -> None:
    """Settle queued trials whose candidate has crashed this kind of hardware in an earlier trial or job."""
    crashing = crashes.c.hardware == hardware, crashes.c.losses >= MAX_LOSSES
    if not conn.execute(select(exists().where(*crashing))).scalar_one():
        return
    again = exists().where(retimings.c.trial == trials.c.id, retimings.c.outcome == "pending")
    query = (
        select(trials, crashes.c.losses)
        .join_from(trials, jobs, trials.c.job == jobs.c.id)
        .join(crashes, crashes.c.candidate_key == trials.c.candidate_key)
        .where(_is_free(hardware), (trials.c.outcome == "pending") | again, *crashing)
        .limit(MAX_LEASE_ITEMS)
        .with_for_update(skip_locked=True, of=trials)
    )
    while rows := conn.execute(query).all():
        for row in rows:
            poison(conn, row, row.losses, now)


def _insert_lease(conn: Connection, lease_id: str, worker: Row[Any], ttl: float, now: float) -> None:
    conn.execute(
        insert(leases).values(
            id=lease_id,
            worker=worker.id,
            session=worker.session,
            hardware=worker.hardware,
            codegen_version=worker.codegen_version,
            ttl=ttl,
            granted_at=now,
            expires_at=now + ttl,
        )
    )


def _hand_over(
    conn: Connection, lease_id: str, worker: Row[Any], rows: Sequence[Row[Any]], now: float
) -> None:
    granted = {"lease": lease_id, "worker": worker.id, "state": "granted", "granted_at": now}
    conn.execute(insert(attempts), [{"trial": row.trial, "attempt": row.attempt, **granted} for row in rows])
    taken = update(trials).where(trials.c.id == bindparam("taken"))
    conn.execute(
        taken.values(lease=lease_id, attempt=bindparam("granted")),
        [{"taken": row.trial, "granted": row.attempt} for row in rows],
    )


def _wake(conn: Connection, job_id: str, now: float) -> None:
    """A job whose trials are given out does not wait for a worker any more."""
    job = job_row(conn, job_id)
    if job.state == "waiting":
        change_state(conn, job, "running", "", now)
