"""Trials that devices without a compiler measure: they wait for two artifacts, the program of their candidate
and the data of their workload."""

from collections.abc import Collection
from typing import Any

from sqlalchemy import ColumnElement, Connection, Select, and_, exists, or_, select

from ..fleet_store import MAX_LEASE_ITEMS
from ..records import Settlement
from ..words import OPEN_OUTCOMES, PRESENT_STATES
from .retimings import close_retiming
from .tables import artifacts, builds, hardware, jobs, retimings, trials, workers
from .trial_rows import fail_trial

PROGRAM, DATA = builds.alias("program_builds"), builds.alias("data_builds")
_PROGRAMS, _DATA = artifacts.alias("program_artifacts"), artifacts.alias("data_artifacts")


def of_program(build: Any = PROGRAM) -> ColumnElement[bool]:
    """Whether a build is that of a trial's program."""
    of_candidate = build.c.subject == trials.c.candidate_key
    return and_(build.c.kind == "program", of_candidate, build.c.seed == 0)


def of_data(build: Any = DATA) -> ColumnElement[bool]:
    """Whether a build is that of a trial's data."""
    of_workload = build.c.subject == jobs.c.workload
    return and_(build.c.kind == "data", of_workload, build.c.seed == trials.c.input_seed)


def built(query: Select[Any]) -> Select[Any]:
    """Those of a query's trials that can be run, with the digests and sizes of what a device needs."""
    return (
        query.add_columns(
            _PROGRAMS.c.sha256.label("program_sha256"),
            _PROGRAMS.c.size.label("program_bytes"),
            _DATA.c.sha256.label("data_sha256"),
            _DATA.c.size.label("data_bytes"),
        )
        .join(PROGRAM, of_program())
        .join(_PROGRAMS, _PROGRAMS.c.sha256 == PROGRAM.c.artifact)
        .join(DATA, of_data())
        .join(_DATA, _DATA.c.sha256 == DATA.c.artifact)
    )


def wanted(hardware: ColumnElement[bool]) -> ColumnElement[bool]:
    """Whether a trial of a job on such hardware is queued, or to be timed again, and lies in no lease."""
    again = exists().where(retimings.c.trial == trials.c.id, retimings.c.outcome == "pending")
    return (
        hardware
        & (jobs.c.origin == "http")
        & jobs.c.state.in_(("running", "waiting"))
        & trials.c.lease.is_(None)
        & or_(trials.c.outcome == "pending", again)
    )


def runs_only() -> ColumnElement[bool]:
    """Whether a job's hardware is that of a worker that is there and only runs."""
    there = select(workers.c.hardware).where(workers.c.run_only, workers.c.state.in_(PRESENT_STATES))
    return jobs.c.hardware.in_(there)


def built_for(conn: Connection, kinds: Collection[str]) -> set[str]:
    """The kinds of hardware for which a queued trial has its artifacts, or cannot have them."""
    query = _with_builds(select(trials.c.id)).where(
        wanted(jobs.c.hardware == hardware.c.key),
        or_(
            PROGRAM.c.state == "failed",
            DATA.c.state == "failed",
            (PROGRAM.c.state == "done") & (DATA.c.state == "done"),
        ),
    )
    found = select(hardware.c.key).where(hardware.c.key.in_(kinds), query.correlate(hardware).exists())
    return set(conn.execute(found).scalars())


def fail_unbuildable(conn: Connection, hardware: ColumnElement[bool], now: float) -> None:
    """Settle queued trials whose program or data cannot be made, with the failure of its build."""
    for build in (DATA, PROGRAM):
        query = (
            select(
                trials,
                build.c.failure_kind.label("why"),
                build.c.failure_message.label("message"),
                build.c.failure_detail.label("detail"),
                build.c.build_seconds.label("took"),
            )
            .join_from(trials, jobs, trials.c.job == jobs.c.id)
            .join(build, of_data(build) if build is DATA else of_program(build))
            .where(wanted(hardware), build.c.state == "failed")
            .order_by(jobs.c.seq, trials.c.number)
            .limit(MAX_LEASE_ITEMS)
            .with_for_update(skip_locked=True, of=trials)
        )
        while rows := conn.execute(query).all():
            for row in rows:
                if row.outcome not in OPEN_OUTCOMES:  # it has a result that stays, and was timed again
                    close_retiming(conn, row.id, row.why, now)
                    continue
                failure = Settlement(
                    failure_kind=row.why,
                    failure_message=row.message,
                    failure_detail=row.detail,
                    build_seconds=row.took,
                )
                fail_trial(conn, row, failure, now)


def _with_builds(query: Select[Any]) -> Select[Any]:
    return (
        query.join_from(trials, jobs, trials.c.job == jobs.c.id)
        .join(PROGRAM, of_program(), isouter=True)
        .join(DATA, of_data(), isouter=True)
    )
