"""Whose turn it is: fair shares of the trials that workers are given, without starvation.

Start-time fair queueing (P. Goyal, H. M. Vin, H. Cheng, "Start-time Fair Queueing", SIGCOMM 1996) on two
levels. On each kind of hardware the account that was given the fewest trials comes first, and among its jobs
the one that was given the fewest by its weight, 2 to the power of its priority. What is given is added to the
share of both. Who had nothing to measure and has something again begins where those are who were served
meanwhile: nobody saves up, and nobody who comes late waits for the others or they for him.
"""

from collections.abc import Collection
from typing import Any

from sqlalchemy import (
    Connection,
    Row,
    Select,
    bindparam,
    exists,
    func,
    insert,
    literal_column,
    select,
    update,
)

from ..fleet_records import labels_of
from ..words import MEASURED_STATES
from .part import upsert
from .tables import job_labels, jobs, retimings, shares, trials


def measurable(hardware: str) -> Any:
    """Jobs of this hardware whose trials are leased."""
    return (jobs.c.hardware == hardware) & is_leased()


def is_leased() -> Any:
    """Jobs whose trials are leased, as the index of turns says it."""
    states = ", ".join(f"'{state}'" for state in MEASURED_STATES)
    return (jobs.c.origin == literal_column("'http'")) & literal_column(f"jobs.state IN ({states})")


def serves(worker: Row[Any]) -> Any:
    """Jobs that this worker may measure: of its pool or of none, with no label that it lacks."""
    has = sorted(labels_of(worker.labels))
    lacks = exists().where(job_labels.c.job == jobs.c.id, job_labels.c.label.not_in(has))
    return (jobs.c.pool.is_(None) | (jobs.c.pool == worker.pool)) & ~lacks


def has_queued() -> Any:
    """Whether trials of a job wait for a worker."""
    queued = trials.c.job == jobs.c.id, trials.c.outcome == "pending", trials.c.lease.is_(None)
    return _is_any(select(trials.c.job).where(*queued).correlate_except(trials))


def _is_any(query: Select[Any]) -> Any:
    """As EXISTS, but looked up for each row that needs it. PostgreSQL makes a join of EXISTS, or reads
    all that may be in it: its statistics do not say how few trials wait, and of which jobs."""
    return query.limit(1).scalar_subquery().is_not(None)


def has_due(worker: Row[Any] | None = None) -> Any:
    """Whether a job wants trials timed once more, its own or another's, by this worker or by any: those are
    few, and are found first."""
    due = [retimings.c.outcome == literal_column("'pending'")]
    due += [] if worker is None else [timed_by(worker)]
    # A subquery for each row, so that no plan begins with all trials.
    free = select(func.coalesce(retimings.c.job, trials.c.job))
    free = free.where(trials.c.id == retimings.c.trial, trials.c.lease.is_(None))
    wanting = free.correlate(retimings).scalar_subquery()
    return jobs.c.id.in_(select(wanting).select_from(retimings).where(*due))


def timed_by(worker: Row[Any]) -> Any:
    """Of retimings: those that this worker may do."""
    return retimings.c.device.is_(None) | (retimings.c.device == worker.id)


def next_job(conn: Connection, worker: Row[Any], but: Collection[str] = ()) -> Row[Any] | None:
    """The job whose turn it is of those that a worker may measure, other than `but`; None where none has
    queued trials."""
    while (account := conn.execute(account_query(worker, but)).scalar_one_or_none()) is not None:
        found = conn.execute(turn_query(worker, account, but)).one_or_none()
        if found is not None:
            return found  # else another call has taken the account's last ones since
    return None


def account_query(worker: Row[Any], but: Collection[str] = ()) -> Select[Any]:
    """The account whose turn it is of those with such jobs: the index has the order of their shares."""
    has_jobs = _is_any(_of_account(worker, shares.c.account, but).with_only_columns(jobs.c.id))
    query = select(shares.c.account).where(shares.c.hardware == worker.hardware, has_jobs)
    return query.order_by(shares.c.share, shares.c.account).limit(1)


def turn_query(worker: Row[Any], account: str, but: Collection[str] = ()) -> Select[Any]:
    """The index has the jobs of an account in the order of their shares: the first that fits ends the
    search."""
    return _of_account(worker, account, but).order_by(jobs.c.share, jobs.c.seq).limit(1)


def _of_account(worker: Row[Any], account: Any, but: Collection[str]) -> Select[Any]:
    """Jobs with queued trials that a worker may measure."""
    query = (
        select(jobs.c.id, jobs.c.hardware, jobs.c.account, jobs.c.priority, jobs.c.state, jobs.c.pool)
        .where(measurable(worker.hardware), jobs.c.account == account)
        .where(serves(worker), has_queued())
    )
    return query.where(jobs.c.id.not_in(but)) if but else query


def enter(conn: Connection, job: Row[Any]) -> None:
    """A job that had nothing queued is about to have: it begins where those are who were served meanwhile."""
    if job.origin != "http" or job.hardware is None:
        return
    start = insert_share(conn, job)
    busy = select(jobs.c.id).where(
        measurable(job.hardware), jobs.c.account == job.account, jobs.c.id != job.id, has_queued()
    )
    if conn.execute(busy.limit(1)).first() is None:
        floor = func.max(shares.c.began)
        now = conn.execute(select(floor).where(shares.c.hardware == job.hardware)).scalar_one()
        conn.execute(update(shares).where(*start, shares.c.share < now).values(share=now))
    of_account = jobs.c.hardware == job.hardware, jobs.c.account == job.account
    served = conn.execute(select(func.max(jobs.c.began)).where(*of_account)).scalar_one()
    conn.execute(update(jobs).where(jobs.c.id == job.id, jobs.c.share < served).values(share=served))


def is_idle(conn: Connection, job_id: str) -> bool:
    return not conn.execute(select(exists().where(jobs.c.id == job_id, has_queued()))).scalar_one()


def insert_share(conn: Connection, job: Row[Any]) -> tuple[Any, Any]:
    """Make sure that the account has a share of this hardware; how to find it."""
    first = upsert(conn, shares).values(hardware=job.hardware, account=job.account, began=0.0, share=0.0)
    conn.execute(first.on_conflict_do_nothing())
    return shares.c.hardware == job.hardware, shares.c.account == job.account


_CHARGE = (
    update(jobs)
    .where(jobs.c.id == bindparam("of"))
    .values(began=jobs.c.share, share=jobs.c.share + bindparam("cost"))
)


def charge(conn: Connection, job: Row[Any], count: int) -> None:
    """Add trials that were granted to the shares of a job and its account."""
    conn.execute(_CHARGE, {"of": job.id, "cost": count / 2.0**job.priority})
    first = upsert(conn, shares).values(
        hardware=job.hardware, account=job.account, began=0.0, share=float(count)
    )
    more = {"began": shares.c.share, "share": shares.c.share + first.excluded.share}
    conn.execute(first.on_conflict_do_update(index_elements=["hardware", "account"], set_=more))


def refund(conn: Connection, job_id: str, count: int) -> None:
    """Take back what trials cost that come back unmeasured."""
    row = conn.execute(select(jobs).where(jobs.c.id == job_id)).one()
    cost = count / 2.0**row.priority
    conn.execute(update(jobs).where(jobs.c.id == job_id).values(share=jobs.c.share - cost))
    own = shares.c.hardware == row.hardware, shares.c.account == row.account
    conn.execute(update(shares).where(*own).values(share=shares.c.share - float(count)))


def put_labels(conn: Connection, job_id: str, labels: str) -> None:
    """Keep the labels that a worker needs to measure a job."""
    wanted = [{"job": job_id, "label": label} for label in sorted(labels_of(labels))]
    if wanted:
        conn.execute(insert(job_labels), wanted)
