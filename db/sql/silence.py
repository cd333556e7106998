"""Those not heard of for long: workers, and processes that tune by themselves."""

from typing import Any

from sqlalchemy import Connection, Row, select

from ..moments import moment
from ..process_identity import ProcessIdentity
from ..words import JOB_STATES
from .job_rows import is_over, is_unfinished
from .jobs import change_state
from .tables import jobs, workers
from .worker_rows import set_state

TOUCH_SECONDS = 15.0
"""A worker that is heard of all the time is noted as often as this."""

ATTACHED = ("registering", "online", "draining")
"""States of a worker whose process is there, as far as is known."""

_RUNNING = tuple(state for state in JOB_STATES if not is_over(state) and state != "paused")


def mark_silent_workers(conn: Connection, before: float, now: float) -> None:
    silent = workers.c.state.in_(ATTACHED), workers.c.seen_at < before
    for row in conn.execute(
        select(workers).where(*silent).with_for_update(skip_locked=True, key_share=True)
    ).all():
        _mark_offline(conn, row, f"not heard of since {moment(row.seen_at)}", now)


def mark_lost_worker(conn: Connection, lease: Row[Any], now: float) -> None:
    """The worker of a lease that expired, unless it was heard of since: it would have renewed."""
    silent = workers.c.seen_at <= now - lease.ttl
    lost = workers.c.id == lease.worker, workers.c.state.in_(ATTACHED), silent
    for row in conn.execute(select(workers).where(*lost)).all():
        said = f"its lease {lease.id} expired, not heard of since {moment(row.seen_at)}"
        _mark_offline(conn, row, said, now)


def _mark_offline(conn: Connection, row: Row[Any], reason: str, now: float) -> None:
    drained = f"{row.reason}; " if row.state == "draining" and row.reason else ""
    set_state(conn, row.id, "offline", drained + reason, now)


def pause_lost_jobs(conn: Connection, before: float, now: float) -> None:
    """A local job is ended by the process that runs it; where that one was killed, nobody else would.

    It stands still since that process last wrote. Where this machine cannot tell whether the process is
    there, it is taken for gone once it has written nothing since `before`.
    """
    running = is_unfinished(), jobs.c.origin == "local", jobs.c.state.in_(_RUNNING)
    for row in conn.execute(select(jobs).where(*running).with_for_update(skip_locked=True)).all():
        process = ProcessIdentity.read(row.process)
        gone = None if process is None else process.gone
        if gone or (gone is None and row.active_at < before):
            who = f"the {process}" if process else "the process"
            said = "has ended" if gone else "has ended, or has written nothing for too long"
            change_state(
                conn,
                row,
                "paused",
                f"{who} that was tuning {said}: resume the job to go on",
                now,
                row.active_at,
            )
