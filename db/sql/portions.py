"""How many trials one lease takes: as many as its worker asks for, but no more than its part of what waits:
none of its fellows stands idle beside a batch that another one holds."""

from typing import Any

from sqlalchemy import Connection, Row, func, select

from ..words import OPEN_OUTCOMES, PRESENT_STATES
from .tables import jobs, trials, workers
from .turns import measurable, serves
from .worker_rows import NO_SESSION, SILENCE


def portion(conn: Connection, worker: Row[Any], pool: str | None, most: int, now: float) -> int:
    """Of what waits for workers of this kind or is with them, the part of each that is there; at least 1.

    `pool`: of the job whose turn it is, which only workers of that pool measure."""
    fellows = _present(conn, worker.hardware, pool, now)
    if most == 1 or fellows <= 1:
        return most
    return max(1, min(most, -(-_open(conn, worker, most * fellows) // fellows)))


def _present(conn: Connection, hardware: str, pool: str | None, now: float) -> int:
    heard = workers.c.session != NO_SESSION, workers.c.seen_at >= now - SILENCE
    of_kind = workers.c.hardware == hardware, workers.c.state.in_(PRESENT_STATES)
    query = select(func.count()).select_from(workers).where(*of_kind, *heard)
    query = query if pool is None else query.where(workers.c.pool == pool)
    found: int = conn.execute(query).scalar_one()
    return found


def _open(conn: Connection, worker: Row[Any], enough: int) -> int:
    """Trials without a result that this worker might be given, not counted beyond `enough`."""
    query = select(trials.c.id).join_from(jobs, trials, trials.c.job == jobs.c.id)
    query = query.where(
        measurable(worker.hardware), serves(worker), trials.c.outcome.in_(OPEN_OUTCOMES)
    ).limit(enough)
    found: int = conn.execute(select(func.count()).select_from(query.subquery())).scalar_one()
    return found
