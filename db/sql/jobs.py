"""Jobs and the changes of their states."""

import json
from typing import Any

from sqlalchemy import Connection, Row, insert, select, update

from ..checks import check_job, check_limit, check_text, check_word
from ..errors import Conflict, InvalidValue, JobOver
from ..records import Job, NewJob, Page
from ..words import FINAL_JOB_STATES, JOB_STATES, OPEN_OUTCOMES, ORIGINS, FinalJobState, JobState, Origin
from .catalog import require, require_hardware
from .clock import epoch_now, now_of
from .events import append_event
from .job_rows import JOB_COLUMNS, REASON, is_over, is_unfinished, job_of, job_row, lock_job, refuse_stale
from .offers import take_unrivalled
from .part import Part, new_id
from .tables import jobs, targets, trials, workloads
from .turns import enter, put_labels

_CANCELLED = {False: ("pending",), True: OPEN_OUTCOMES}


class JobPart(Part):
    def create_job(self, job: NewJob) -> Job:
        check_job(job)
        with self._database.write() as conn:
            require(conn, workloads, "workload", job.workload)
            require(conn, targets, "target", job.target)
            if job.hardware is not None:
                require_hardware(conn, job.hardware)
            now = now_of(conn)
            values = {name: getattr(job, name) for name in NewJob.__slots__}
            row = conn.execute(
                insert(jobs)
                .values(id=new_id("job"), state="queued", reason="", epoch=0, done=0, **values)
                .values(created_at=now, active_at=now)
                .returning(*JOB_COLUMNS)
            ).one()
            put_labels(conn, row.id, job.labels)
            _tell(conn, row.id, "queued", "", now)
            return job_of(row)

    def job(self, job_id: str) -> Job:
        with self._database.read() as conn:
            return job_of(job_row(conn, job_id))

    def jobs(self, state: JobState | None = None, after: str | None = None, limit: int = 50) -> Page[Job]:
        check_limit(limit)
        query = select(*JOB_COLUMNS).order_by(jobs.c.seq.desc()).limit(limit + 1)
        if state is not None:
            check_word("state", state, JOB_STATES)
            query = query.where(jobs.c.state == state)
        with self._database.read() as conn:
            if after is not None:
                seq = conn.execute(select(jobs.c.seq).where(jobs.c.id == after)).scalar_one_or_none()
                if seq is None:
                    raise InvalidValue("after", f"{after!r} is not the end of a page")
                query = query.where(jobs.c.seq < seq)
            found = tuple(job_of(row) for row in conn.execute(query))
        items = found[:limit]
        return Page(items=items, next=items[-1].id if len(found) > limit else None)

    def unfinished_jobs(self, origin: Origin | None = None) -> list[Job]:
        query = select(*JOB_COLUMNS).where(is_unfinished()).order_by(jobs.c.seq)
        if origin is not None:
            check_word("origin", origin, ORIGINS)
            query = query.where(jobs.c.origin == origin)
        with self._database.read() as conn:
            return [job_of(row) for row in conn.execute(query)]

    def overdue_jobs(self) -> list[Job]:
        overdue = jobs.c.waiting_since + jobs.c.worker_wait < epoch_now()
        query = select(*JOB_COLUMNS).where(jobs.c.state == "waiting", overdue).order_by(jobs.c.seq)
        with self._database.read() as conn:
            return [job_of(row) for row in conn.execute(query)]

    def bind_hardware(self, job_id: str, hardware: str) -> Job:
        with self._database.write() as conn:
            row = lock_job(conn, job_id)
            require_hardware(conn, hardware)
            if row.hardware not in (None, hardware):
                raise Conflict(f"job {job_id} is bound to hardware {row.hardware}")
            job = write_job(conn, job_id, hardware=hardware)
            if row.hardware is None:
                enter(conn, lock_job(conn, job_id))
            return job

    def begin_search(self, job_id: str, process: str = "") -> int:
        check_text("process", process, empty=True)
        with self._database.write() as conn:
            row = lock_job(conn, job_id)
            if is_over(row.state):
                raise JobOver(f"job {job_id} is {row.state}")
            if row.state == "paused":
                raise Conflict(f"job {job_id} is paused")
            return begin(conn, row, process, now_of(conn))

    def set_waiting(self, job_id: str, reason: str) -> Job:
        check_text("reason", reason, REASON)
        with self._database.write() as conn:
            row = lock_job(conn, job_id)
            if row.state not in ("queued", "running", "waiting"):
                return job_of(row)
            return change_state(conn, row, "waiting", reason, now_of(conn))

    def set_running(self, job_id: str) -> Job:
        with self._database.write() as conn:
            row = lock_job(conn, job_id)
            if row.state != "waiting":
                return job_of(row)
            return change_state(conn, row, "running", "", now_of(conn))

    def note(self, job_id: str, reason: str) -> Job:
        check_text("reason", reason, REASON, empty=True)
        with self._database.write() as conn:
            row = lock_job(conn, job_id)
            if row.state not in ("queued", "running"):
                return job_of(row)
            return change_state(conn, row, row.state, reason, now_of(conn))

    def finish_job(self, job_id: str, epoch: int | None, state: FinalJobState, reason: str) -> Job:
        check_word("state", state, FINAL_JOB_STATES)
        check_text("reason", reason, REASON, empty=True)
        with self._database.write() as conn:
            row = lock_job(conn, job_id)
            if epoch is not None:
                refuse_stale(row, epoch)
            return end_job(conn, row, state, reason)

    def cancel_job(self, job_id: str) -> Job:
        with self._database.write() as conn:
            return end_job(conn, lock_job(conn, job_id), "cancelled", "cancelled")


def begin(conn: Connection, row: Row[Any], process: str, now: float) -> int:
    """The next epoch of a job that is neither paused nor over."""
    if row.state in ("queued", "running"):
        change_state(conn, row, "running", "", now)
    epoch = int(row.epoch) + 1
    started = now if row.started_at is None else row.started_at
    write_job(conn, row.id, epoch=epoch, started_at=started, active_at=now, process=process)
    return epoch


def change_state(
    conn: Connection,
    row: Row[Any],
    state: JobState,
    reason: str,
    now: float,
    still_since: float | None = None,
) -> Job:
    """Write a job's state and tell it as an event; no event where nothing changes.

    One that is paused or ends stands still from now on, or from `still_since`; one that did stand still keeps
    the time at which that began.
    """
    if (row.state, row.reason) == (state, reason):
        return job_of(row)
    still = state == "paused" or is_over(state)
    before = row.finished_at if row.paused_at is None else row.paused_at
    since = before if before is not None else now if still_since is None else still_since
    _tell(conn, row.id, state, reason, now)
    return write_job(
        conn,
        row.id,
        state=state,
        reason=reason,
        waiting_since=(row.waiting_since or now) if state == "waiting" else None,
        finished_at=now if is_over(state) else None,
        paused_at=since if still else None,
    )


def end_job(conn: Connection, row: Row[Any], state: FinalJobState, reason: str) -> Job:
    """Bring a job into a final state and cancel its trials that nobody has started, or that nobody has a
    lease on; once only."""
    if is_over(row.state):
        return job_of(row)
    now = now_of(conn)
    conn.execute(
        update(trials)
        .where(trials.c.job == row.id, trials.c.outcome.in_(_CANCELLED[row.origin == "outside"]))
        .values(
            outcome="cancelled",
            failure_kind="cancelled",
            failure_message=f"the job is {state}",
            settled_at=now,
        )
    )
    if row.origin == "outside":
        take_unrivalled(conn, row, now)
    return change_state(conn, row, state, reason, now)


def _tell(conn: Connection, job_id: str, state: JobState, reason: str, now: float) -> None:
    append_event(conn, job_id, "state", json.dumps({"state": state, "reason": reason}), now)


def write_job(conn: Connection, job_id: str, **values: Any) -> Job:
    """Set columns of a job, and nothing else: a state is changed by `change_state`."""
    return job_of(
        conn.execute(update(jobs).where(jobs.c.id == job_id).values(**values).returning(*JOB_COLUMNS)).one()
    )
