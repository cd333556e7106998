"""Forgetting what is old and what nothing rests on."""

import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from sqlalchemy import ColumnElement, Connection, ForeignKey, Table, delete, exists, func, select

from ..checks import check_seconds
from ..retention_store import KEPT_FASTEST, KEPT_FIRST, KEPT_JOBS
from ..upkeep import Pruned
from ..words import FINAL_JOB_STATES
from .clock import now_of
from .part import Part
from .tables import (
    attempts,
    events,
    holdings,
    jobs,
    leases,
    metadata,
    retimings,
    schedules,
    trials,
    warm_starts,
)

_OF_A_TRIAL = (attempts, retimings, holdings)
"""Rows that are part of a trial and go with it; a row of any other table keeps the trial it refers to."""

_OF_A_JOB = (events, warm_starts)
_AT_ONCE = 500


class PruningPart(Part):
    def prune(self, older_than: float, dry_run: bool = False) -> Pruned:
        check_seconds("older_than", older_than, zero=True)
        with self._database.read() as conn:
            before = now_of(conn) - older_than
            old = list(conn.execute(select(jobs.c.id).where(*_ended(before)).order_by(jobs.c.seq)).scalars())
        total = Pruned(0, 0, 0, 0)
        for job in old:
            total = _sum(total, self._prune_job(job, before, dry_run))
        return _sum(total, self._prune_leases(before, dry_run))

    def _prune_job(self, job: str, before: float, dry_run: bool) -> Pruned:
        with self._database.read() as conn:
            of_job = select(trials.c.id).where(trials.c.job == job)
            kept = set(conn.execute(of_job.where(_is_needed())).scalars()) | _for_warm_starts(conn, job)
            gone = [trial for trial in conn.execute(of_job).scalars() if trial not in kept]
            told = conn.execute(select(func.count()).where(events.c.job == job)).scalar_one()
            whole = not kept and not _is_referred_to(conn, job)
        if dry_run:
            return Pruned(int(whole), len(gone), told, 0)
        if not (gone or told or whole):
            return Pruned(0, 0, 0, 0)
        return self._forget(job, gone, before)

    def _forget(self, job: str, gone: Sequence[str], before: float) -> Pruned:
        """These trials, the events, and the job where nothing of it remains; nothing more from when it is
        taken up again."""
        forgotten = told = 0
        for start in range(0, len(gone), _AT_ONCE):
            with self._turn() as conn:
                if not _is_over_still(conn, job, before):
                    return Pruned(0, forgotten, 0, 0)
                forgotten += _forget_trials(conn, gone[start : start + _AT_ONCE])
        while True:
            with self._turn() as conn:
                if not _is_over_still(conn, job, before):
                    return Pruned(0, forgotten, told, 0)
                some = _forget_events(conn, job)
                told += some
                if some < _AT_ONCE:
                    return Pruned(int(_forget_empty(conn, job)), forgotten, told, 0)

    def _prune_leases(self, before: float, dry_run: bool) -> Pruned:
        unused = [leases.c.closed_at < before, *(~_refers(key) for key in _references_to(leases))]
        query = select(leases.c.id).where(*unused).order_by(leases.c.id)
        if dry_run:
            with self._database.read() as conn:
                return Pruned(0, 0, 0, len(conn.execute(query).all()))
        last, forgotten = "", 0
        while True:
            # Found by a reader, which nobody waits for: most leases are used, and all are looked at.
            with self._database.read() as conn:
                found = conn.execute(query.where(leases.c.id > last).limit(_AT_ONCE)).scalars().all()
            if not found:
                return Pruned(0, 0, 0, forgotten)
            with self._turn() as conn:
                free = query.where(leases.c.id.in_(found)).with_for_update(skip_locked=True)
                ids = conn.execute(free).scalars().all()
                forgotten += conn.execute(delete(leases).where(leases.c.id.in_(ids), *unused)).rowcount
            last = found[-1]

    @contextmanager
    def _turn(self) -> Iterator[Connection]:
        """A small transaction, after which others have a turn that is as long: whoever waits for the lock of
        SQLite looks for it now and then, and would seldom find it free."""
        with self._database.write() as conn:
            begun = time.monotonic()
            yield conn
        time.sleep(time.monotonic() - begun)


def _ended(before: float) -> tuple[ColumnElement[bool], ...]:
    return jobs.c.state.in_(FINAL_JOB_STATES), jobs.c.finished_at < before


def _is_over_still(conn: Connection, job: str, before: float) -> bool:
    """Whether a job, which is locked by this, was not taken up again."""
    query = select(jobs.c.id).where(jobs.c.id == job, *_ended(before)).with_for_update()
    return conn.execute(query).one_or_none() is not None


def _references_to(table: Table) -> list[ForeignKey]:
    """Every column of another table that refers to this one, those of later schemas included."""
    return [
        key
        for other in metadata.sorted_tables
        if other is not table
        for key in sorted(other.foreign_keys, key=lambda key: key.parent.name)
        if key.column.table is table
    ]


def _refers(key: ForeignKey) -> ColumnElement[bool]:
    return exists().where(key.parent == key.column)


def _is_needed() -> ColumnElement[bool]:
    """Whether a row of another table keeps a trial."""
    keys = [key for key in _references_to(trials) if key.parent.table not in _OF_A_TRIAL]
    found: ColumnElement[bool] = exists().where(schedules.c.challenger == trials.c.id)
    for key in keys:
        found = found | _refers(key)
    return found


def _is_referred_to(conn: Connection, job: str) -> bool:
    """Whether a job is named by a row that is neither part of it nor one of its trials."""
    parts = (*_OF_A_JOB, holdings, trials)
    keys = [key for key in _references_to(jobs) if key.parent.table not in parts]
    return any(conn.execute(select(key.parent).where(key.parent == job).limit(1)).first() for key in keys)


def _for_warm_starts(conn: Connection, job: str) -> set[str]:
    """The trials of a job that a later search of its key, or of one like it, may begin with."""
    row = conn.execute(select(jobs.c.workload, jobs.c.target, jobs.c.hardware).where(jobs.c.id == job)).one()
    key = jobs.c.workload == row.workload, jobs.c.target == row.target, jobs.c.hardware == row.hardware
    newest = select(jobs.c.id).where(*key, jobs.c.done > 0).order_by(jobs.c.seq.desc()).limit(KEPT_JOBS)
    if job not in set(conn.execute(newest).scalars()):
        return set()
    of_job = select(trials.c.id).where(trials.c.job == job)
    timed = of_job.where(trials.c.outcome == "ok").order_by(trials.c.seconds, trials.c.number)
    first = of_job.where(trials.c.number < KEPT_FIRST)
    fastest = conn.execute(timed.limit(KEPT_FASTEST)).scalars()
    return {*fastest, *conn.execute(first).scalars()}


def _forget_trials(conn: Connection, ids: Sequence[str]) -> int:
    """Of these, what nothing has come to rest on since."""
    free = list(conn.execute(select(trials.c.id).where(trials.c.id.in_(ids), ~_is_needed())).scalars())
    for table in _OF_A_TRIAL:
        conn.execute(delete(table).where(table.c.trial.in_(free)))
    return conn.execute(delete(trials).where(trials.c.id.in_(free))).rowcount


def _forget_events(conn: Connection, job: str) -> int:
    """The oldest of a job, _AT_ONCE of them."""
    some = select(events.c.seq).where(events.c.job == job).order_by(events.c.seq).limit(_AT_ONCE)
    return conn.execute(delete(events).where(events.c.job == job, events.c.seq.in_(some))).rowcount


def _forget_empty(conn: Connection, job: str) -> bool:
    """A job without events, if it has no trials either and nothing refers to it."""
    left = conn.execute(select(trials.c.id).where(trials.c.job == job).limit(1)).first()
    if left is not None or _is_referred_to(conn, job):
        return False
    conn.execute(delete(warm_starts).where(warm_starts.c.job == job))
    conn.execute(delete(jobs).where(jobs.c.id == job))
    return True


def _sum(a: Pruned, b: Pruned) -> Pruned:
    pairs: Iterable[Any] = ((getattr(a, name), getattr(b, name)) for name in Pruned.__slots__)
    return Pruned(*(one + other for one, other in pairs))
