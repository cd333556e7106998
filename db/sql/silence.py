"""Those not heard of for long: workers, and processes that tune by themselves."""

from typing import Any

from sqlalchemy import Connection, Row, select, update

from ..words import JOB_STATES
from .job_rows import is_over
from .jobs import end_job
from .tables import jobs, workers

TOUCH_SECONDS = 2.0
"""A worker that is heard of all the time is noted as often as this."""

_UNFINISHED = tuple(state for state in JOB_STATES if not is_over(state))


def mark_silent_workers(conn: Connection, before: float) -> None:
    silent = workers.c.state.in_(("online", "draining")), workers.c.seen_at < before
    conn.execute(update(workers).where(*silent).values(state="offline", reason=""))


def mark_lost_worker(conn: Connection, lease: Row[Any], now: float) -> None:
    """The worker of a lease that expired, unless it was heard of since: it would have renewed."""
    silent = workers.c.seen_at <= now - max(lease.ttl, TOUCH_SECONDS)
    lost = workers.c.id == lease.worker, workers.c.state.in_(("online", "draining")), silent
    conn.execute(update(workers).where(*lost).values(state="offline", reason=""))


def fail_silent_jobs(conn: Connection, before: float) -> None:
    """A local job is ended by the process that runs it; where that one was killed, nobody else would."""
    silent = jobs.c.origin == "local", jobs.c.state.in_(_UNFINISHED), jobs.c.active_at < before
    for row in conn.execute(select(jobs).where(*silent).with_for_update(skip_locked=True)).all():
        end_job(
            conn, row, "failed", "the process that was tuning has ended, or has written nothing for too long"
        )
