"""Rows that a transaction keeps to itself, and the one order in which it takes them.

On SQLite there is one writer, and every lock below is had already. On PostgreSQL transactions run beside each
other, so what one decides by must not be changed by another before it commits. Locks are taken in this order,
and of one kind in the order of the job's `seq` and the trial's number, so that no two wait for each other:

    worker > lease > jobs > trials (with attempts and retimings) > crashes > workload (its best)

| who                                              | a job's row                                        |
|--------------------------------------------------|----------------------------------------------------|
| changes a state, a budget, an epoch; adds trials | alone (FOR UPDATE): `job_rows.lock_job`            |
| takes results in, ends a lease                   | with claims beside it (NO KEY UPDATE): `lock_jobs` |
| grants trials                                    | with both beside it (KEY SHARE): `keep_jobs`       |

So a claim waits for a pause and a pause for a claim, but neither claims nor results of other jobs wait for
anything. A claim skips trials that another one has locked. Whoever was heard of is noted without waiting
(SKIP LOCKED), and so are expired leases: another call looks after them. Expired leases and poisoned trials
are ended in transactions of their own before a claim, for they belong to other workers and jobs.

What changes the best schedules of a workload holds the workload's row. Two calls with results for several
workloads may still want these in opposite orders; the server undoes one, and it is made again (`retries`).
"""

from collections.abc import Iterable

from sqlalchemy import Connection, select

from .tables import attempts, jobs, leases, trials, workloads


def lock_lease_of(conn: Connection, worker_id: str) -> None:
    """Wait for the call that settles trials of a worker now, and keep the next one waiting."""
    query = select(leases.c.id).where(leases.c.worker == worker_id, leases.c.closed_at.is_(None))
    conn.execute(query.with_for_update(key_share=True)).all()


def lock_jobs(conn: Connection, ids: Iterable[str]) -> None:
    """Keep others from taking results of these jobs in, and from changing them; trials may be granted."""
    query = select(jobs.c.seq).where(jobs.c.id.in_(sorted(set(ids)))).order_by(jobs.c.seq)
    conn.execute(query.with_for_update(key_share=True)).all()


def lock_jobs_of_lease(conn: Connection, lease_id: str) -> None:
    """`lock_jobs` of all trials that a lease was ever granted."""
    query = (
        select(trials.c.job)
        .join_from(attempts, trials, attempts.c.trial == trials.c.id)
        .where(attempts.c.lease == lease_id)
        .distinct()
    )
    lock_jobs(conn, conn.execute(query).scalars())


def keep_jobs(conn: Connection, ids: Iterable[str]) -> dict[str, str]:
    """Keep the states of these jobs as they are; the states, by id."""
    query = select(jobs.c.id, jobs.c.state).where(jobs.c.id.in_(sorted(set(ids)))).order_by(jobs.c.seq)
    rows = conn.execute(query.with_for_update(read=True, key_share=True)).all()
    return {row.id: row.state for row in rows}


def lock_best(conn: Connection, workload: str) -> None:
    """Keep others from changing what is best-known for a workload, on any target and hardware."""
    query = select(workloads.c.key).where(workloads.c.key == workload)
    conn.execute(query.with_for_update(key_share=True)).all()
