"""Workers: one live session each, or none once it has left."""

from dataclasses import fields
from typing import Any

from sqlalchemy import Connection, Row, case, select, update

from ..checks import check_text, check_word, check_worker
from ..errors import Conflict, InvalidValue, NotFound, Superseded
from ..fleet_records import NewWorker, Worker
from ..words import WORKER_STATES, WorkerState
from .catalog import require_hardware
from .clock import now_of
from .lease_ends import end_open_lease
from .locks import lock_worker
from .part import Part, new_id, upsert
from .tables import leases, workers

_NO_SESSION = ""  # the worker has left: a call of it that comes late must not make it online again
_STICKY = ("paused", "quarantined")
_SHOWN_STATE = case((leases.c.id.is_not(None) & (workers.c.state == "online"), "busy"), else_=workers.c.state)
_COMPUTED = {"state": _SHOWN_STATE.label("state"), "lease": leases.c.id.label("lease")}
_COLUMNS = tuple(_COMPUTED[f.name] if f.name in _COMPUTED else workers.c[f.name] for f in fields(Worker))


class WorkerPart(Part):
    def register_worker(self, worker: NewWorker) -> Worker:
        check_worker(worker)
        with self._database.write() as conn:
            require_hardware(conn, worker.hardware)
            now = now_of(conn)
            if (new := _attach(conn, worker, now)) is not None:
                return _read(conn, new)
            named = select(workers).where(workers.c.name == worker.name)
            known = conn.execute(named.with_for_update(key_share=True)).one()
            if known.state == "retired":
                raise Conflict(f"worker {worker.name} was retired; attach it under another name")
            if known.session == worker.session:
                conn.execute(update(workers).where(workers.c.id == known.id).values(seen_at=now))
                return _read(conn, known.id)
            end_open_lease(conn, known.id, "superseded", now)
            _attach_again(conn, known, worker, now)
            return _read(conn, known.id)

    def workers(self) -> list[Worker]:
        with self._database.read() as conn:
            rows = conn.execute(_query().where(workers.c.state != "retired").order_by(workers.c.name))
            return [Worker(**row._mapping) for row in rows]

    def worker(self, worker_id: str) -> Worker:
        with self._database.read() as conn:
            return _read(conn, worker_id)

    def leave(self, worker_id: str, session: str) -> Worker:
        with self._database.write() as conn:
            known = lock_worker(conn, worker_id)
            if known is None:
                raise NotFound("worker", worker_id)
            if known.session not in (session, _NO_SESSION):
                raise Superseded(f"a newer session of worker {worker_id} has registered")
            end_open_lease(conn, worker_id, "released", now_of(conn))
            values = {"session": _NO_SESSION}
            if known.state in ("online", "draining"):
                values |= {"state": "offline", "reason": ""}
            conn.execute(update(workers).where(workers.c.id == worker_id).values(**values))
            return _read(conn, worker_id)

    def set_worker_state(self, worker_id: str, state: WorkerState, reason: str) -> Worker:
        check_word("state", state, WORKER_STATES)
        if state in ("busy", "registering"):
            raise InvalidValue("state", f"{state} follows from what the worker does and cannot be set")
        check_text("reason", reason, 64 << 10, empty=True)
        with self._database.write() as conn:
            changed = update(workers).where(workers.c.id == worker_id).values(state=state, reason=reason)
            if conn.execute(changed).rowcount == 0:
                raise NotFound("worker", worker_id)
            return _read(conn, worker_id)


def _attach(conn: Connection, worker: NewWorker, now: float) -> str | None:
    """The id of a worker whose name is new; None where the name is known."""
    values = {name: getattr(worker, name) for name in NewWorker.__slots__}
    values |= {"id": new_id("worker"), "state": "online", "reason": "", "registered_at": now, "seen_at": now}
    added = upsert(conn, workers).values(values).on_conflict_do_nothing(index_elements=["name"])
    return conn.execute(added.returning(workers.c.id)).scalar_one_or_none()


def _attach_again(conn: Connection, known: Row[Any], worker: NewWorker, now: float) -> None:
    kept = known.state in _STICKY
    conn.execute(
        update(workers)
        .where(workers.c.id == known.id)
        .values(state=known.state if kept else "online", reason=known.reason if kept else "")
        .values({name: getattr(worker, name) for name in NewWorker.__slots__})
        .values(registered_at=now, seen_at=now)
    )


def _query() -> Any:
    held = (leases.c.worker == workers.c.id) & leases.c.closed_at.is_(None)
    return select(*_COLUMNS).join_from(workers, leases, held, isouter=True)


def _read(conn: Connection, worker_id: str) -> Worker:
    row = conn.execute(_query().where(workers.c.id == worker_id)).one_or_none()
    if row is None:
        raise NotFound("worker", worker_id)
    return Worker(**row._mapping)
