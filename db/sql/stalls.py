"""Jobs that run and do not get on, and what of their results is not believed."""

from typing import Any

from sqlalchemy import Connection, and_, func, select

from ..checks import check_seconds
from ..fleet_records import Stall
from .belief import is_doubted
from .clock import now_of
from .job_rows import job_row
from .part import Part
from .tables import attempts, doubts, events, trials, workers


class StallPart(Part):
    def stall(self, job_id: str, silence: float) -> Stall | None:
        check_seconds("silence", silence)
        with self._database.read() as conn:
            job = job_row(conn, job_id)
            if job.origin != "http" or job.state != "running":
                return None
            told = select(events.c.at).where(events.c.job == job_id).order_by(events.c.seq.desc()).limit(1)
            since = max(job.active_at, conn.execute(told).scalar_one_or_none() or 0.0)
            if since > now_of(conn) - silence:
                return None
            row = _oldest(conn, job_id)
            if row is None:
                return Stall(since, None, None, False)
            return Stall(since, row.number, row.name, row.outcome == "started")

    def job_doubts(self, job_id: str) -> list[tuple[str, str, int]]:
        with self._database.read() as conn:
            if conn.execute(select(doubts.c.seq).limit(1)).first() is None:
                return []
            newest = select(doubts.c.reason).where(doubts.c.worker == workers.c.id)
            newest = newest.order_by(doubts.c.made_at.desc(), doubts.c.seq.desc()).limit(1)
            rows = conn.execute(
                select(workers.c.name, newest.scalar_subquery().label("reason"))
                .add_columns(func.count().label("results"))
                .join_from(trials, workers, trials.c.worker == workers.c.id)
                .where(trials.c.job == job_id, is_doubted())
                .group_by(workers.c.id, workers.c.name)
                .order_by(workers.c.name)
            )
            return [(row.name, row.reason, row.results) for row in rows]


def _oldest(conn: Connection, job_id: str) -> Any:
    """The trial that has run for longest, else the first one that waits, with the name of who holds it."""
    held = and_(attempts.c.trial == trials.c.id, attempts.c.attempt == trials.c.attempt)
    query = (
        select(trials.c.number, trials.c.outcome, workers.c.name)
        .select_from(
            trials.join(attempts, held & trials.c.lease.is_not(None), isouter=True).join(
                workers, attempts.c.worker == workers.c.id, isouter=True
            )
        )
        .where(trials.c.job == job_id)
        .limit(1)
    )
    runs = query.where(trials.c.outcome == "started").order_by(trials.c.started_at, trials.c.number)
    waits = query.where(trials.c.outcome == "pending").order_by(trials.c.number)
    return conn.execute(runs).one_or_none() or conn.execute(waits).one_or_none()
