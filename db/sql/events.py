"""Events of jobs, numbered without gaps."""

from sqlalchemy import Connection, func, insert, select, update

from ..checks import check_int, check_json, check_limit, check_text
from ..records import Event
from .clock import now_of
from .job_rows import job_row, lock_job, refuse_stale
from .part import Part
from .tables import events, jobs


class EventPart(Part):
    def add_event(self, job_id: str, kind: str, data: str, epoch: int | None = None) -> int:
        check_text("kind", kind)
        check_json("data", data)
        with self._database.write() as conn:
            row = lock_job(conn, job_id)
            if epoch is not None:
                refuse_stale(row, epoch)
            now = now_of(conn)
            conn.execute(update(jobs).where(jobs.c.id == job_id).values(active_at=now))
            return append_event(conn, job_id, kind, data, now)

    def events(self, job_id: str, after: int = 0, limit: int = 500) -> list[Event]:
        check_int("after", after, 0)
        check_limit(limit)
        with self._database.read() as conn:
            job_row(conn, job_id)
            query = select(events).where(events.c.job == job_id, events.c.seq > after)
            rows = conn.execute(query.order_by(events.c.seq).limit(limit))
            return [Event(**row._mapping) for row in rows]

    def last_event(self, job_id: str, kind: str) -> Event | None:
        check_text("kind", kind)
        with self._database.read() as conn:
            job_row(conn, job_id)
            query = select(events).where(events.c.job == job_id, events.c.kind == kind)
            row = conn.execute(query.order_by(events.c.seq.desc()).limit(1)).one_or_none()
            return None if row is None else Event(**row._mapping)


def append_event(conn: Connection, job_id: str, kind: str, data: str, now: float) -> int:
    """Write the next event of a job whose row this transaction has locked; returns its number."""
    last = conn.execute(select(func.max(events.c.seq)).where(events.c.job == job_id)).scalar_one()
    seq = int(last or 0) + 1
    conn.execute(insert(events).values(job=job_id, seq=seq, kind=kind, data=data, at=now))
    return seq
