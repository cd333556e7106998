"""Rows that a transaction keeps to itself, and the one order in which it takes them.

On SQLite there is one writer, and every lock below is had already. On PostgreSQL transactions run beside each
other, so what one decides by must not be changed by another before it commits. Locks are taken in this order,
and of one kind in the order of the job's `seq` and the trial's number, so that no two wait for each other:

    worker > lease > jobs > trials (with attempts and retimings) > crashes > shares > workload (its best)

| who                                               | a job's row                                        |
|---------------------------------------------------|----------------------------------------------------|
| changes a state, a budget, an epoch; adds trials  | alone (FOR UPDATE): `job_rows.lock_job`            |
| grants trials, takes results in, ends a lease     | one at a time (FOR NO KEY UPDATE): `lock_jobs`     |

So what happens to the trials of one job happens in one order, and different jobs do not wait for each other.
A claim skips trials that another one has locked. Whoever was heard of is noted without waiting (SKIP LOCKED),
and so are expired leases: another call looks after them. Expired leases and poisoned trials are ended in
transactions of their own before a claim, for they belong to other workers and jobs.

What changes the best schedules of a workload holds the workload's row. Two calls with results for several
workloads or accounts may still want these in opposite orders; the server undoes one, and it is made again
(`retries`).
"""

from collections.abc import Iterable

from sqlalchemy import Connection, bindparam, select

from .tables import attempts, jobs, leases, trials, workloads

_JOBS_OF_LEASE = (
    select(jobs.c.seq)
    .where(
        jobs.c.id.in_(
            select(trials.c.job)
            .join_from(attempts, trials, attempts.c.trial == trials.c.id)
            .where(attempts.c.lease == bindparam("lease"))
        )
    )
    .order_by(jobs.c.seq)
    .with_for_update(key_share=True)
)


def lock_lease_of(conn: Connection, worker_id: str) -> None:
    """Wait for the call that settles trials of a worker now, and keep the next one waiting."""
    query = select(leases.c.id).where(leases.c.worker == worker_id, leases.c.closed_at.is_(None))
    conn.execute(query.with_for_update(key_share=True)).all()


def lock_jobs(conn: Connection, ids: Iterable[str]) -> None:
    """Keep others from granting trials of these jobs, from taking results in, and from changing them."""
    query = select(jobs.c.seq).where(jobs.c.id.in_(sorted(set(ids)))).order_by(jobs.c.seq)
    conn.execute(query.with_for_update(key_share=True)).all()


def lock_jobs_of_lease(conn: Connection, lease_id: str) -> None:
    """`lock_jobs` of all trials that a lease was ever granted."""
    # SQLite has the lock, and may begin to look with all trials.
    if conn.dialect.name != "sqlite":
        conn.execute(_JOBS_OF_LEASE, {"lease": lease_id}).all()


def lock_best(conn: Connection, workload: str) -> None:
    """Keep others from changing what is best-known for a workload, on any target and hardware."""
    query = select(workloads.c.key).where(workloads.c.key == workload)
    conn.execute(query.with_for_update(key_share=True)).all()
