"""Pausing jobs, letting them go on, and giving them more to use."""

import json
from collections.abc import Collection
from typing import Any

from sqlalchemy import Connection, Row, exists, func, select, update

from ..checks import check_budget, check_text, check_word
from ..errors import AlreadyComplete, Conflict, InvalidValue, JobOver
from ..process_identity import ProcessIdentity
from ..records import Job
from ..words import LIMITS
from .clock import now_of
from .events import append_event
from .job_rows import REASON, is_over, job_of, lock_job, refuse_stale
from .jobs import begin, change_state, write_job
from .part import Part
from .tables import attempts, trials
from .turns import enter


class JobControlPart(Part):
    def pause_job(self, job_id: str, reason: str = "paused", epoch: int | None = None) -> Job:
        check_text("reason", reason, REASON)
        with self._database.write() as conn:
            row = lock_job(conn, job_id)
            if epoch is not None:
                refuse_stale(row, epoch)
            if is_over(row.state):
                raise JobOver(f"job {job_id} is {row.state}: there is nothing to pause")
            if row.state == "paused":
                return job_of(row)
            return change_state(conn, row, "paused", reason, now_of(conn))

    def resume_job(self, job_id: str) -> Job:
        with self._database.write() as conn:
            row = lock_job(conn, job_id)
            _refuse_complete(row)
            if row.state != "paused" and not is_over(row.state):
                return job_of(row)
            return _go_on(conn, row, now_of(conn))

    def resume_local(self, job_id: str, process: str) -> int:
        check_text("process", process)
        with self._database.write() as conn:
            row = lock_job(conn, job_id)
            if row.origin != "local":
                raise Conflict(f"job {job_id} is searched by the service: resume it there")
            _refuse_complete(row)
            _refuse_tuned(row, but=process)
            now = now_of(conn)
            if row.state == "paused" or is_over(row.state):
                _go_on(conn, row, now)
            return begin(conn, lock_job(conn, job_id), process, now)

    def extend_job(
        self,
        job_id: str,
        trials: int | None = None,
        seconds: float | None = None,
        target_seconds: float | None = None,
        patience: int | None = None,
        lift: Collection[str] = (),
    ) -> Job:
        check_budget(trials, seconds, target_seconds, patience)
        for name in lift:
            check_word("lift", name, LIMITS)
        asked = {
            "trials": trials,
            "seconds": seconds,
            "target_seconds": target_seconds,
            "patience": patience,
        }
        if both := [name for name in lift if asked[name] is not None]:
            raise InvalidValue(both[0], "is given and lifted at once")
        if not lift and all(value is None for value in asked.values()):
            raise InvalidValue("budget", "names nothing that is to be extended")
        with self._database.write() as conn:
            row = lock_job(conn, job_id)
            _refuse_imported(row)
            budget = {name: _extended(row, name, asked[name], name in lift) for name in asked}
            if all(getattr(row, name) == value for name, value in budget.items()):
                _refuse_complete(row)
                if is_over(row.state):
                    raise JobOver(
                        f"job {job_id} is {row.state} and this is the budget that it has: resume it"
                    )
                return job_of(row)
            return _extend(conn, row, budget, now_of(conn))


def _extended(row: Row[Any], name: str, asked: float | None, lifted: bool) -> float | None:
    """The new value of one limit; InvalidValue where it would stop the job earlier than the old one."""
    has: float | None = getattr(row, name)
    if lifted:
        return None
    if asked is None:
        return has
    if has is None:
        raise InvalidValue(name, "is no limit of this job, which can be extended but not cut")
    less = asked > has if name == "target_seconds" else asked < has
    if less:
        bound = "at most" if name == "target_seconds" else "at least"
        raise InvalidValue(name, f"must be {bound} {has:g}, not {asked:g}: a job is extended, not cut")
    return asked


def _extend(conn: Connection, row: Row[Any], budget: dict[str, float | None], now: float) -> Job:
    if row.origin == "local" and row.state != "paused" and not is_over(row.state):
        _refuse_tuned(row)
    append_event(conn, row.id, "extended", json.dumps(budget), now)
    # The search that runs proposes within the old budget: it is fenced off, and another one begins.
    job = write_job(conn, row.id, epoch=row.epoch + min(row.epoch, 1), **budget)
    if not is_over(row.state):
        return job
    if row.origin == "local":
        _queue_again(conn, row)
        return change_state(conn, lock_job(conn, row.id), "paused", "extended, and not resumed yet", now)
    return _go_on(conn, lock_job(conn, row.id), now)


def _go_on(conn: Connection, row: Row[Any], now: float) -> Job:
    """Take a paused or ended job up again, with all its unmeasured trials in the queue."""
    enter(conn, row)
    _queue_again(conn, row)
    since = row.finished_at if row.paused_at is None else row.paused_at
    first = row.started_at if row.origin == "local" else _first_measured(conn, row)
    stood = 0.0 if first is None else max(0.0, now - max(first, since))
    write_job(conn, row.id, paused_seconds=row.paused_seconds + stood)
    return change_state(conn, row, "queued" if row.epoch == 0 else "running", "", now)


def _queue_again(conn: Connection, row: Row[Any]) -> None:
    """Trials that were cancelled with their job wait again; one in somebody's lease, until that ends."""
    settled = exists().where(attempts.c.trial == trials.c.id, attempts.c.state == "settled")
    conn.execute(
        update(trials)
        .where(trials.c.job == row.id, trials.c.outcome == "cancelled", ~settled)
        .values(outcome="pending", failure_kind=None, failure_message="", started_at=None, settled_at=None)
    )


def _first_measured(conn: Connection, row: Row[Any]) -> float | None:
    """When the time of a job of the service began to count."""
    query = select(func.min(trials.c.started_at)).where(trials.c.job == row.id)
    first: float | None = conn.execute(query).scalar_one()
    return first


def _refuse_complete(row: Row[Any]) -> None:
    _refuse_imported(row)
    if row.state in ("completed", "exhausted"):
        raise AlreadyComplete(
            f"job {row.id} is already complete ({row.reason or row.state}): extend its budget to search on"
        )


def _refuse_imported(row: Row[Any]) -> None:
    if row.origin == "imported":
        raise AlreadyComplete(f"job {row.id} is a record of another store: there is nothing to go on with")


def _refuse_tuned(row: Row[Any], but: str = "") -> None:
    """Conflict while the process that tunes a local job is there, or cannot be known to be gone."""
    process = ProcessIdentity.read(row.process)
    if row.state == "paused" or is_over(row.state) or process is None or row.process == but:
        return
    if not process.gone:
        raise Conflict(f"job {row.id} is being tuned by {process}: pause it first")
