"""Rows of jobs: reading them, and the rules of who may write to them."""

from dataclasses import fields
from typing import Any

from sqlalchemy import ColumnElement, Connection, Row, Select, literal_column, select

from ..errors import JobOver, NotFound, StaleSearch
from ..records import Job
from ..words import FINAL_JOB_STATES, JOB_STATES
from .tables import jobs

REASON = 64 << 10
"""The longest text of a job's reason."""

_UNFINISHED = jobs.alias("unfinished")
JOB_COLUMNS = tuple(jobs.c[field.name] for field in fields(Job))


def job_of(row: Row[Any]) -> Job:
    """The record of a row that holds JOB_COLUMNS and perhaps more."""
    return Job(**{column.name: row._mapping[column] for column in JOB_COLUMNS})


def job_row(conn: Connection, job_id: str) -> Row[Any]:
    """The job as it is; NotFound."""
    return _job_row(conn, job_id, select(jobs))


def lock_job(conn: Connection, job_id: str) -> Row[Any]:
    """The job, which nobody else writes until this transaction ends; NotFound."""
    return _job_row(conn, job_id, select(jobs).with_for_update())


def _job_row(conn: Connection, job_id: str, query: Select[Any]) -> Row[Any]:
    row = conn.execute(query.where(jobs.c.id == job_id)).one_or_none()
    if row is None:
        raise NotFound("job", job_id)
    return row


def searched_row(conn: Connection, job_id: str, epoch: int) -> Row[Any]:
    """The job, for a write of the search of this epoch: StaleSearch if it is not the newest, JobOver."""
    row = lock_job(conn, job_id)
    refuse_stale(row, epoch)
    if is_over(row.state):
        raise JobOver(f"job {job_id} is {row.state} and takes no more trials")
    return row


def refuse_stale(row: Row[Any], epoch: int) -> None:
    if epoch != row.epoch:
        raise StaleSearch(f"job {row.id} is searched by epoch {row.epoch} now, not {epoch}")


def is_over(state: str) -> bool:
    return state in FINAL_JOB_STATES


def is_unfinished() -> ColumnElement[bool]:
    """Jobs that are not over, found by the index of those: statistics say of a state that it is as frequent
    as any other, and a plan that believes it looks at all jobs."""
    states = ", ".join(f"'{state}'" for state in JOB_STATES if not is_over(state))
    return jobs.c.seq.in_(select(_UNFINISHED.c.seq).where(literal_column(f"unfinished.state IN ({states})")))
