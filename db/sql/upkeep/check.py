"""What must hold in every database, beyond what its tables refuse by themselves."""

import json
from collections.abc import Callable, Iterator
from typing import Any

from sqlalchemy import Column, Connection, Select, String, Table, and_, cast, func, inspect, or_, select

from ...errors import SchemaError
from ...upkeep import Problem
from ...words import FINAL_JOB_STATES, UNMEASURED_OUTCOMES
from ..database import Database
from ..databases import database_of
from ..lease_ends import OPEN_ATTEMPTS
from ..schema import SCHEMA
from ..tables import (
    attempts,
    events,
    jobs,
    leases,
    metadata,
    retimings,
    schedules,
    trials,
    workers,
    workloads,
)

_MOST = 20
"""So many rows are named for each rule, and then how many more there are."""

_JSON = {
    "jobs": ("spec",),
    "trials": ("trace", "samples", "failure_detail"),
    "events": ("data",),
    "targets": ("description",),
    "hardware": ("facts",),
    "workloads": ("program",),
}


def check(url: str, key_of: Callable[[str], str] | None) -> list[Problem]:
    """See `tilewright.db.check`."""
    database = database_of(url, create=False)
    try:
        if SCHEMA.check(database) is None:
            raise SchemaError(f"{database.name} is empty: run `tilewright db upgrade`")
        with database.read() as conn:
            database.take_time(conn)
            return list(_problems(database, conn, key_of))
    finally:
        database.close()


def _problems(database: Database, conn: Connection, key_of: Callable[[str], str] | None) -> Iterator[Problem]:
    yield from (Problem("the database is intact", said) for said in database.damages(conn))
    yield from _misses(conn)
    for rule, query in _RULES.items():
        yield from _broken(conn, rule, query())
    for name, columns in _JSON.items():
        yield from _unreadable(conn, metadata.tables[name], columns)
    if key_of is not None:
        yield from _foreign(conn, key_of)


def _misses(conn: Connection) -> Iterator[Problem]:
    """Tables and columns that this program uses and the database has not."""
    found = inspect(conn)
    there = set(found.get_table_names())
    for table in metadata.sorted_tables:
        if table.name not in there:
            yield Problem("every table is there", f"{table.name} is missing")
            continue
        columns = {column["name"] for column in found.get_columns(table.name)}
        for name in table.columns.keys():  # noqa: SIM118 - a collection, not a dictionary
            if name not in columns:
                yield Problem("every column is there", f"{table.name}.{name} is missing")


def _broken(conn: Connection, rule: str, query: Select[Any]) -> Iterator[Problem]:
    rows = conn.execute(query).all()
    for row in rows[:_MOST]:
        yield Problem(rule, " ".join(str(value) for value in row))
    if len(rows) > _MOST:
        yield Problem(rule, f"and {len(rows) - _MOST} more")


def _unreadable(conn: Connection, table: Table, columns: tuple[str, ...]) -> Iterator[Problem]:
    (key, *rest) = table.primary_key.columns if "id" not in table.c else [table.c.id]
    names: list[Column[Any]] = [key, *rest]
    query = select(*names, *(table.c[name] for name in columns))
    for row in conn.execute(query, execution_options={"yield_per": 1_000}):
        for name in columns:
            try:
                json.loads(row._mapping[name])
            except (ValueError, TypeError, RecursionError):
                place = " ".join(str(row._mapping[column]) for column in names)
                yield Problem(f"{table.name}.{name} is JSON", place)


def _foreign(conn: Connection, key_of: Callable[[str], str]) -> Iterator[Problem]:
    """Programs that are not what their key says."""
    for key, program in conn.execute(select(workloads.c.key, workloads.c.program)):
        try:
            found = key_of(program)
        except ValueError as error:
            yield Problem("a workload is a program", f"{key}: {error}")
            continue
        if found != key:
            yield Problem("a workload's key is that of its program", f"{key} should be {found}")


def _best_of_other_trials() -> Select[Any]:
    wrong = or_(
        trials.c.outcome != "ok",
        jobs.c.workload != schedules.c.workload,
        jobs.c.target != schedules.c.target,
        jobs.c.hardware != schedules.c.hardware,
    )
    return (
        select(schedules.c.workload, schedules.c.target, schedules.c.hardware, schedules.c.trial)
        .join_from(schedules, trials, schedules.c.trial == trials.c.id)
        .join(jobs, trials.c.job == jobs.c.id)
        .where(wrong)
    )


def _best_with_other_seconds() -> Select[Any]:
    return (
        select(schedules.c.trial)
        .join_from(schedules, trials, schedules.c.trial == trials.c.id)
        .where(schedules.c.seconds != trials.c.seconds)
    )


def _open_attempts_of_closed_leases() -> Select[Any]:
    return (
        select(attempts.c.trial, attempts.c.attempt, attempts.c.lease)
        .join_from(attempts, leases, attempts.c.lease == leases.c.id)
        .where(attempts.c.state.in_(OPEN_ATTEMPTS), leases.c.closed_at.is_not(None))
    )


def _trials_of_closed_leases() -> Select[Any]:
    query = select(trials.c.id, trials.c.lease).join_from(trials, leases, trials.c.lease == leases.c.id)
    return query.where(leases.c.closed_at.is_not(None))


def _trials_started_by_nobody() -> Select[Any]:
    held = select(attempts.c.trial).where(
        attempts.c.trial == trials.c.id, attempts.c.state.in_(OPEN_ATTEMPTS)
    )
    return select(trials.c.id).where(trials.c.outcome == "started", ~held.exists())


def _successes_without_evidence() -> Select[Any]:
    """The attempts of an imported trial stayed in the store that it comes from."""
    settled = attempts.c.trial == trials.c.id, attempts.c.state == "settled"
    return select(trials.c.id).where(
        trials.c.outcome.in_(("ok", "censored")),
        trials.c.origin != "imported",
        ~select(attempts.c.trial).where(*settled).exists(),
    )


def _jobs_that_count_wrongly() -> Select[Any]:
    """What is over may have fewer trials than it had: old ones are forgotten."""
    measured = func.count().filter(trials.c.outcome.not_in(UNMEASURED_OUTCOMES))
    over = jobs.c.state.in_(FINAL_JOB_STATES)
    return (
        select(jobs.c.id, jobs.c.done, measured)
        .join_from(jobs, trials, trials.c.job == jobs.c.id)
        .group_by(jobs.c.id, jobs.c.done, jobs.c.state)
        .having(or_(and_(~over, jobs.c.done != measured), and_(over, jobs.c.done < measured)))
    )


def _events_with_gaps() -> Select[Any]:
    first, last = func.min(events.c.seq), func.max(events.c.seq)
    query = select(events.c.job, first, last, func.count()).group_by(events.c.job)
    return query.having(last - first + 1 != func.count())


def _open_jobs_without_their_first_event() -> Select[Any]:
    query = select(jobs.c.id).join_from(jobs, events, events.c.job == jobs.c.id)
    return (
        query.where(jobs.c.state.not_in(FINAL_JOB_STATES))
        .group_by(jobs.c.id)
        .having(func.min(events.c.seq) != 1)
    )


def _leases_of_retired_workers() -> Select[Any]:
    query = select(leases.c.id, workers.c.name).join_from(leases, workers, leases.c.worker == workers.c.id)
    return query.where(leases.c.closed_at.is_(None), workers.c.state == "retired")


def _times_again_of_trials_without_a_time() -> Select[Any]:
    query = select(retimings.c.trial).join_from(retimings, trials, retimings.c.trial == trials.c.id)
    return query.where(trials.c.seconds.is_(None))


def _numbers_that_ids_do_not_name() -> Select[Any]:
    return select(trials.c.id).where(trials.c.id != trials.c.job + "." + cast(trials.c.number, String))


_RULES: dict[str, Callable[[], Select[Any]]] = {
    "a best-known schedule rests on a checked trial of its key": _best_of_other_trials,
    "a best-known schedule has its trial's seconds": _best_with_other_seconds,
    "an attempt that is not over has an open lease": _open_attempts_of_closed_leases,
    "a trial that is leased has an open lease": _trials_of_closed_leases,
    "a started trial has an attempt that is not over": _trials_started_by_nobody,
    "a success has the attempt that settled it": _successes_without_evidence,
    "a job has counted its measured trials": _jobs_that_count_wrongly,
    "events of a job have no gaps": _events_with_gaps,
    "a job that is not over has all its events": _open_jobs_without_their_first_event,
    "a retired worker holds no lease": _leases_of_retired_workers,
    "a trial that is timed again has a time": _times_again_of_trials_without_a_time,
    "a trial's id names its job and number": _numbers_that_ids_do_not_name,
}
