"""Rows of workers: as they are shown, and the end of a pause."""

from dataclasses import fields
from typing import Any

from sqlalchemy import (
    Connection,
    Row,
    Select,
    and_,
    bindparam,
    case,
    literal_column,
    null,
    or_,
    select,
    update,
)

from ..errors import Superseded, UnknownWorker
from ..fleet_records import Worker
from .clock import epoch_now
from .tables import attempts, leases, workers

NO_SESSION = ""
"""The worker has left: a call of it that comes late must not make it online again."""

SILENCE = 60.0
"""A worker not heard of for so many seconds is not there."""

_LOCK = select(workers).where(workers.c.id == bindparam("which")).with_for_update(key_share=True)
_PAUSE_OVER = and_(workers.c.state == "paused", workers.c.until <= epoch_now())
_PRESENT = case(
    (or_(workers.c.session == NO_SESSION, workers.c.seen_at < epoch_now() - SILENCE), "offline"),
    else_="online",
)
_STATE = case((_PAUSE_OVER, _PRESENT), else_=workers.c.state)
_COMPUTED = {
    "state": case((and_(leases.c.id.is_not(None), _STATE == "online"), "busy"), else_=_STATE).label("state"),
    "reason": case((_PAUSE_OVER, ""), else_=workers.c.reason).label("reason"),
    "state_at": case((_PAUSE_OVER, workers.c.until), else_=workers.c.state_at).label("state_at"),
    "until": case((_PAUSE_OVER, null()), else_=workers.c.until).label("until"),
    "lease": leases.c.id.label("lease"),
    "trial": attempts.c.trial.label("trial"),
}
_COLUMNS = tuple(_COMPUTED[f.name] if f.name in _COMPUTED else workers.c[f.name] for f in fields(Worker))


def workers_query() -> Select[Any]:
    """Workers as they are shown: busy while they hold a lease, and a pause that is over has ended."""
    held = (leases.c.worker == workers.c.id) & leases.c.closed_at.is_(None)
    runs = (attempts.c.worker == workers.c.id) & (
        attempts.c.state == literal_column("'started'")
    )  # as the partial index
    return select(*_COLUMNS).select_from(
        workers.join(leases, held, isouter=True).join(attempts, runs, isouter=True)
    )


def read_worker(conn: Connection, worker_id: str) -> Worker:
    row = conn.execute(workers_query().where(workers.c.id == worker_id)).one_or_none()
    if row is None:
        raise unknown_worker(conn, worker_id)
    return Worker(**row._mapping)


def lock_worker(conn: Connection, worker_id: str) -> Row[Any]:
    """The worker as it is stored, which nobody else writes until this transaction ends."""
    row = conn.execute(_LOCK, {"which": worker_id}).one_or_none()
    if row is None:
        raise unknown_worker(conn, worker_id)
    return row


def superseded(worker: Row[Any]) -> Superseded:
    """What an older session of the worker is told; people know it by its name."""
    return Superseded(f"a newer session of worker {worker.name} ({worker.id}) has registered")


def unknown_worker(conn: Connection, key: str) -> UnknownWorker:
    """Names those that are not retired."""
    names = select(workers.c.name).where(workers.c.state != "retired").order_by(workers.c.name).limit(1000)
    return UnknownWorker(key, tuple(conn.execute(names).scalars()))


def set_state(
    conn: Connection, worker_id: str, state: str, reason: str, now: float, until: float | None = None
) -> None:
    values = {"state": state, "reason": reason, "state_at": now, "until": until}
    conn.execute(update(workers).where(workers.c.id == worker_id).values(**values))


def present_state(row: Row[Any], now: float) -> str:
    """What a worker is that nothing holds back."""
    return "offline" if row.session == NO_SESSION or row.seen_at < now - SILENCE else "online"


def end_pauses(conn: Connection) -> None:
    """Write down that the pauses whose time is over have ended; those of workers that are locked, later."""
    over = select(workers.c.id).where(_PAUSE_OVER).with_for_update(skip_locked=True, key_share=True)
    ended = {"state": _PRESENT, "reason": "", "state_at": workers.c.until, "until": None}
    conn.execute(update(workers).where(workers.c.id.in_(over)).values(**ended))
