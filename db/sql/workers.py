"""Workers: one live session each, or none once it has left."""

from typing import Any

from sqlalchemy import Connection, Row, select, update

from ..checks import check_text, check_word, check_worker
from ..errors import Conflict, InvalidValue, NameRetired
from ..fleet_records import NewWorker, Worker
from ..words import WORKER_STATES, WorkerState
from .catalog import require_hardware
from .clock import now_of
from .lease_ends import end_open_lease
from .part import Part, new_id, upsert
from .silence import ATTACHED
from .tables import workers
from .worker_rows import (
    NO_SESSION,
    end_pauses,
    lock_worker,
    read_worker,
    set_state,
    superseded,
    workers_query,
)

REGISTERING = "it has not asked for work yet"
_STICKY = ("paused", "quarantined")


class WorkerPart(Part):
    def register_worker(self, worker: NewWorker) -> Worker:
        check_worker(worker)
        with self._database.write() as conn:
            require_hardware(conn, worker.hardware)
            now = now_of(conn)
            end_pauses(conn)
            if (new := _attach(conn, worker, now)) is not None:
                return read_worker(conn, new)
            named = select(workers).where(workers.c.name == worker.name)
            known = conn.execute(named.with_for_update(key_share=True)).one()
            if known.state == "retired":
                raise NameRetired(
                    f"worker {worker.name} is retired ({known.reason}): attach it under another name"
                )
            if known.pool != worker.pool and known.state in ATTACHED:
                raise Conflict(
                    f"a worker of another pool is attached as {worker.name}: attach under another name"
                )
            if known.session == worker.session:
                _say_again(conn, known, worker, now)
                return read_worker(conn, known.id)
            end_open_lease(conn, known.id, "superseded", now)
            _attach_again(conn, known, worker, now)
            return read_worker(conn, known.id)

    def workers(self) -> list[Worker]:
        with self._database.read() as conn:
            rows = conn.execute(workers_query().where(workers.c.state != "retired").order_by(workers.c.name))
            return [Worker(**row._mapping) for row in rows]

    def worker(self, worker_id: str) -> Worker:
        with self._database.read() as conn:
            return read_worker(conn, worker_id)

    def leave(self, worker_id: str, session: str) -> Worker:
        with self._database.write() as conn:
            known = lock_worker(conn, worker_id)
            if known.session not in (session, NO_SESSION):
                raise superseded(known)
            now = now_of(conn)
            end_open_lease(conn, worker_id, "released", now)
            conn.execute(update(workers).where(workers.c.id == worker_id).values(session=NO_SESSION))
            if known.state in ATTACHED:
                reason = known.reason if known.state == "draining" else "it has ended"
                set_state(conn, worker_id, "offline", reason, now)
            return read_worker(conn, worker_id)

    def set_worker_state(self, worker_id: str, state: WorkerState, reason: str) -> Worker:
        check_word("state", state, WORKER_STATES)
        if state in ("busy", "registering"):
            raise InvalidValue("state", f"{state} follows from what the worker does and cannot be set")
        check_text("reason", reason, 64 << 10, empty=True)
        with self._database.write() as conn:
            lock_worker(conn, worker_id)
            set_state(conn, worker_id, state, reason, now_of(conn))
            return read_worker(conn, worker_id)


def _attach(conn: Connection, worker: NewWorker, now: float) -> str | None:
    """The id of a worker whose name is new; None where the name is known."""
    values = {name: getattr(worker, name) for name in NewWorker.__slots__}
    values |= {"id": new_id("worker"), "state": "registering", "reason": REGISTERING}
    values |= {"registered_at": now, "seen_at": now, "state_at": now}
    added = upsert(conn, workers).values(values).on_conflict_do_nothing(index_elements=["name"])
    return conn.execute(added.returning(workers.c.id)).scalar_one_or_none()


def _say_again(conn: Connection, known: Row[Any], worker: NewWorker, now: float) -> None:
    """The same process attaches once more, as after an outage: what it holds and its state stay, and what it
    says of itself is newer. Its hardware is what its results are kept under."""
    if known.hardware != worker.hardware:
        raise Conflict(
            f"worker {worker.name} has attached with hardware {known.hardware}, now it says "
            f"{worker.hardware}: start it anew on other hardware"
        )
    said = {name: getattr(worker, name) for name in NewWorker.__slots__}
    conn.execute(update(workers).where(workers.c.id == known.id).values(**said, seen_at=now))


def _attach_again(conn: Connection, known: Row[Any], worker: NewWorker, now: float) -> None:
    kept = known.state in _STICKY
    conn.execute(
        update(workers)
        .where(workers.c.id == known.id)
        .values(state=known.state if kept else "registering", reason=known.reason if kept else REGISTERING)
        .values(state_at=known.state_at if kept else now, until=known.until if kept else None)
        .values({name: getattr(worker, name) for name in NewWorker.__slots__})
        .values(registered_at=now, seen_at=now)
    )
