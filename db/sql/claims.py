"""Granting queued trials to a worker."""

from collections.abc import Sequence
from typing import Any

from sqlalchemy import (
    ColumnElement,
    Connection,
    Double,
    Row,
    Select,
    Table,
    bindparam,
    cast,
    exists,
    func,
    insert,
    literal_column,
    null,
    select,
    update,
)

from ..fleet_records import Lease, LeaseItem
from ..fleet_store import MAX_LOSSES
from ..words import MEASURED_STATES
from .belief import is_doubted
from .job_rows import job_row
from .jobs import change_state
from .lease_ends import poison
from .locks import lock_jobs
from .part import new_id
from .portions import portion
from .run_only import built, fail_unbuildable
from .tables import attempts, crashes, jobs, leases, retimings, targets, trials, workloads
from .turns import charge, has_due, measurable, next_job, serves, timed_by

_MOST_PASSED = 16
# Made once: every claim makes them.
_BEST_SECONDS = (
    select(trials.c.seconds)
    .where(trials.c.job == bindparam("which"), trials.c.outcome == "ok", ~is_doubted())
    .order_by(trials.c.seconds)
    .limit(1)
)
_TAKEN = (
    update(trials)
    .where(trials.c.id == bindparam("taken"))
    .values(lease=bindparam("by"), attempt=bindparam("granted"))
)
_KEPT = (
    select(jobs)
    .where(jobs.c.id == bindparam("which"), jobs.c.state.in_(MEASURED_STATES))
    .with_for_update(key_share=True)
)

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
    jobs.c.trace_id,
)


def grant(conn: Connection, worker: Row[Any], count: int, ttl: float, now: float) -> Lease | None:
    """Lease a worker up to `count` trials of one job that it may measure: those to be timed again first, else
    of the job whose turn it is, as many as are its part. None where nothing is queued."""
    if worker.run_only:
        fail_unbuildable(conn, jobs.c.hardware == worker.hardware, now)
    found = _due_items(conn, worker, count) or _queued_items(conn, worker, count, now)
    if found is None:
        return None
    job, rows = found
    lease_id = new_id("lease")
    _insert_lease(conn, lease_id, worker, ttl, now)
    _hand_over(conn, lease_id, worker, rows, now)
    charge(conn, job, len(rows))
    if job.state == "waiting":
        change_state(conn, job_row(conn, job.id), "running", "", now)
    items = tuple(LeaseItem(**row._mapping) for row in rows)
    return Lease(id=lease_id, worker=worker.id, ttl=ttl, items=items)


_Found = tuple[Row[Any], Sequence[Row[Any]]]


def _is_free(hardware: str) -> Any:
    return measurable(hardware) & trials.c.lease.is_(None)


def _due_items(conn: Connection, worker: Row[Any], count: int) -> _Found | None:
    """Settled trials of the oldest job that are to be timed once more: alone, with nothing to beat."""
    due = retimings.c.outcome == literal_column("'pending'")
    wanted = measurable(worker.hardware), serves(worker), has_due(worker)
    first = conn.execute(select(jobs).where(*wanted).order_by(jobs.c.seq).limit(1)).one_or_none()
    if first is None or (first := _kept(conn, first.id)) is None:
        return None
    query = (
        _items(null(), again=True)
        .where(jobs.c.id == first.id, trials.c.lease.is_(None), due, timed_by(worker))
        .order_by(retimings.c.place)
        .limit(count)
    )
    rows = _locked(conn, worker, query, trials, retimings)
    return (first, rows) if rows else None


def _queued_items(conn: Connection, worker: Row[Any], most: int, now: float) -> _Found | None:
    # Others hold all that these have and have not committed yet, or nothing of theirs is built.
    passed: list[str] = []
    count: int | None = None
    while len(passed) < _MOST_PASSED and (job := next_job(conn, worker, passed)) is not None:
        count = portion(conn, worker, job.pool, most, now) if count is None else count
        kept = _kept(conn, job.id)
        if kept is not None and (rows := _first_queued(conn, worker, job.id, count)):
            return kept, rows
        passed.append(job.id)
    return None


def _first_queued(conn: Connection, worker: Row[Any], job: str, count: int) -> Sequence[Row[Any]]:
    free = trials.c.job == job, trials.c.outcome == "pending", trials.c.lease.is_(None)
    query = _items(cast(_best_seconds(conn, job), Double())).where(*free)
    if not worker.run_only:
        # Found by their numbers alone, so that nothing sorts the traces of all that waits.
        first = conn.execute(select(trials.c.id).where(*free).order_by(trials.c.number).limit(count))
        query = query.where(trials.c.id.in_(first.scalars().all()))
    return _locked(conn, worker, query.order_by(trials.c.number).limit(count), trials)


def _kept(conn: Connection, job: str) -> Row[Any] | None:
    """A job whose state and share nobody changes meanwhile, if its trials are still to be measured."""
    return conn.execute(_KEPT, {"which": job}).one_or_none()


def _locked(conn: Connection, worker: Row[Any], query: Select[Any], *of: Table) -> Sequence[Row[Any]]:
    """What of a query's trials nobody else is granted; never more than its limit."""
    query = built(query) if worker.run_only else query
    return conn.execute(query.with_for_update(skip_locked=True, of=of, key_share=True)).all()


def _items(best_seconds: ColumnElement[Any], again: bool = False) -> Select[Any]:
    """Trials with what a worker needs to measure them; `again`: for the jobs that want them timed once more,
    which may be others than their own."""
    wanting = func.coalesce(retimings.c.job, trials.c.job) if again else trials.c.job
    timed = trials.join(retimings, retimings.c.trial == trials.c.id) if again else trials
    return (
        select(*_ITEM, best_seconds.label("best_seconds"))
        .select_from(timed)
        .join(jobs, jobs.c.id == wanting)
        .join(workloads, jobs.c.workload == workloads.c.key)
        .join(targets, jobs.c.target == targets.c.key)
    )


def _best_seconds(conn: Connection, job: str) -> float | None:
    """The fastest believed time of a job so far."""
    found: float | None = conn.execute(_BEST_SECONDS, {"which": job}).scalar_one_or_none()
    return found


def has_poisoned(hardware: Any) -> ColumnElement[bool]:
    """Whether any candidate is not to be run on this kind of hardware."""
    return exists().where(*_crashing(hardware))


def settle_poisoned(conn: Connection, hardware: str, now: float) -> None:
    """Settle queued trials whose candidate has crashed this kind of hardware in an earlier trial or job."""
    again = exists().where(retimings.c.trial == trials.c.id, retimings.c.outcome == "pending")
    query = (
        select(trials, crashes.c.losses)
        .join_from(trials, jobs, trials.c.job == jobs.c.id)
        .join(crashes, crashes.c.candidate_key == trials.c.candidate_key)
        .where(_is_free(hardware), (trials.c.outcome == "pending") | again, *_crashing(hardware))
        .order_by(jobs.c.seq, trials.c.number)
    )
    found = {row.job for row in conn.execute(query.with_only_columns(trials.c.job)).all()}
    lock_jobs(conn, found)
    of_jobs = query.where(trials.c.job.in_(found)).with_for_update(of=trials, key_share=True)
    for row in conn.execute(of_jobs).all() if found else ():
        poison(conn, row, row.losses, now)


def _crashing(hardware: Any) -> tuple[ColumnElement[bool], ...]:
    return crashes.c.hardware == hardware, crashes.c.losses >= MAX_LOSSES


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
    conn.execute(_TAKEN, [{"taken": row.trial, "granted": row.attempt, "by": lease_id} for row in rows])
