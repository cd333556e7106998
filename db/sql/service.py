"""Calls that are stored together, answers to repeat, quotas, the audit log, and a census."""

from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import Any

from sqlalchemy import Connection, Row, case, delete, func, insert, select

from ..checks import check_int, check_limit, check_seconds, check_text
from ..errors import QuotaExceeded
from ..records import Page
from ..service_records import AuditEntry, Census, NewAudit, StoredAnswer
from ..words import FINAL_JOB_STATES, JOB_STATES, WORKER_STATES
from .clock import epoch_now, now_of
from .part import Part
from .tables import answers, audit, jobs, leases, trials, workers

_SHORT = 256
_FORGOTTEN = 100
"""So many expired answers go with each that is kept, so that none stays for long and no call takes long."""
_QUOTAS = 0x7177  # of the locks of PostgreSQL that programs name by numbers, those of quotas
_unfinished = jobs.c.state.not_in(FINAL_JOB_STATES)


class ServicePart(Part):
    def together(self) -> AbstractContextManager[None]:
        return self._database.together()

    def watch(self, observer: Callable[[str, float], None]) -> None:
        self._database.observer = observer

    def answer(self, key: str) -> StoredAnswer | None:
        alive = answers.c.key == key, answers.c.expires_at > epoch_now()
        query = select(answers.c.request, answers.c.status, answers.c.headers, answers.c.body)
        with self._database.read() as conn:
            row = conn.execute(query.where(*alive)).one_or_none()
        return None if row is None else StoredAnswer(row.request, row.status, row.headers, row.body)

    def keep_answer(self, key: str, answer: StoredAnswer, seconds: float) -> None:
        check_text("key", key)
        check_seconds("seconds", seconds)
        with self._database.write() as conn:
            now = now_of(conn)
            old = select(answers.c.key).where(answers.c.expires_at <= now)
            old = old.order_by(answers.c.expires_at).limit(_FORGOTTEN).with_for_update(skip_locked=True)
            conn.execute(delete(answers).where(answers.c.key.in_(old.scalar_subquery())))
            conn.execute(delete(answers).where(answers.c.key == key, answers.c.expires_at <= now))
            kept = {"request": answer.request, "status": answer.status, "headers": answer.headers}
            times = {"created_at": now, "expires_at": now + seconds}
            conn.execute(insert(answers).values(key=key, body=answer.body, **kept, **times))

    def refuse_over_quota(self, owner: str | None, max_jobs: int | None, max_trials: int | None) -> None:
        with self._database.write() as conn:
            if conn.dialect.name == "postgresql":
                conn.execute(select(func.pg_advisory_xact_lock(_QUOTAS, func.hashtext(owner or ""))))
            unmeasured = func.coalesce(func.sum(jobs.c.trials - jobs.c.done), 0)
            mine = jobs.c.owner == owner if owner is not None else jobs.c.owner.is_(None)
            query = select(func.count(), unmeasured).where(mine, _unfinished, jobs.c.origin != "local")
            count, trials_left = conn.execute(query).one()
            if max_jobs is not None and count > max_jobs:
                raise QuotaExceeded("unfinished jobs", int(count), max_jobs)
            if max_trials is not None and trials_left > max_trials:
                raise QuotaExceeded("trials without a result", int(trials_left), max_trials)

    def add_audit(self, entry: NewAudit) -> None:
        said = {name: getattr(entry, name)[:_SHORT] for name in NewAudit.__slots__}
        for name, value in said.items():
            check_text(name, value, empty=True)
        with self._database.write() as conn:
            conn.execute(insert(audit).values(at=now_of(conn), **said))

    def audit(self, actor: str | None = None, after: int | None = None, limit: int = 50) -> Page[AuditEntry]:
        check_limit(limit)
        query = select(audit).order_by(audit.c.seq.desc()).limit(limit + 1)
        if actor is not None:
            query = query.where(audit.c.actor == actor)
        if after is not None:
            check_int("after", after, 0)
            query = query.where(audit.c.seq < after)
        with self._database.read() as conn:
            found = tuple(_entry_of(row) for row in conn.execute(query))
        items = found[:limit]
        return Page(items=items, next=str(items[-1].seq) if len(found) > limit else None)

    def census(self) -> Census:
        with self._database.read() as conn:
            queued, started, oldest = _open_trials(conn)
            passed = jobs.c.finished_at - jobs.c.started_at - jobs.c.paused_seconds
            ended = select(func.count(), func.coalesce(func.sum(passed), 0.0)).where(
                jobs.c.state.in_(FINAL_JOB_STATES), jobs.c.started_at.is_not(None)
            )
            searches, seconds = conn.execute(ended).one()
            now = now_of(conn)
            open_leases = select(func.count()).where(leases.c.closed_at.is_(None), leases.c.expires_at > now)
            return Census(
                jobs=_counted(conn, jobs.c.state, JOB_STATES),
                workers=_counted(conn, workers.c.state, WORKER_STATES),
                leases=int(conn.execute(open_leases.select_from(leases)).scalar_one()),
                queued=queued,
                started=started,
                oldest_queued=0.0 if oldest is None else max(0.0, now - oldest),
                searches=int(searches),
                search_seconds=float(seconds),
            )


def _open_trials(conn: Connection) -> tuple[int, int, float | None]:
    """Trials of unfinished jobs that wait or run, and when the oldest job with a waiting one was made."""
    waits = trials.c.outcome == "pending"
    query = (
        select(
            func.coalesce(func.sum(case((waits, 1), else_=0)), 0),
            func.coalesce(func.sum(case((waits, 0), else_=1)), 0),
            func.min(case((waits, jobs.c.created_at))),
        )
        .join_from(jobs, trials, trials.c.job == jobs.c.id)
        .where(_unfinished, trials.c.outcome.in_(("pending", "started")))
    )
    queued, started, oldest = conn.execute(query).one()
    return int(queued), int(started), oldest


def _counted(conn: Connection, column: Any, words: tuple[str, ...]) -> dict[str, int]:
    found = {row[0]: int(row[1]) for row in conn.execute(select(column, func.count()).group_by(column))}
    return {word: found.get(word, 0) for word in words}


def _entry_of(row: Row[Any]) -> AuditEntry:
    return AuditEntry(**{name: row._mapping[name] for name in AuditEntry.__slots__})
