"""What people do to workers: pause, resume, drain, quarantine, release, remove."""

from typing import Any

from sqlalchemy import Connection, Row, or_, select

from ..checks import check_limit, check_seconds, check_text
from ..errors import Conflict
from ..fleet_records import Crash, Doubt, Worker, WorkerChange
from ..moments import moment, span
from .clock import now_of
from .doubts import believe, doubt, restore
from .health import last_sound
from .lease_ends import end_open_lease
from .part import Part
from .tables import crashes, doubts, workers
from .worker_rows import (
    end_pauses,
    lock_worker,
    present_state,
    read_worker,
    set_state,
    unknown_worker,
    workers_query,
)

_NOTE = 4096
_RETIRED = "is retired: a removed name is not used again, attach it under another"
_QUARANTINED = "is quarantined: release it"


class WorkerControlPart(Part):
    def find_worker(self, name: str) -> Worker:
        with self._database.read() as conn:
            named = or_(workers.c.name == name, workers.c.id == name)
            # Where one worker has the id of another for its name, the id is meant.
            rows = conn.execute(workers_query().where(named)).all()
            for row in sorted(rows, key=lambda row: row.id != name):
                return Worker(**row._mapping)
            raise unknown_worker(conn, name)

    def pause_worker(
        self, worker_id: str, by: str, note: str = "", seconds: float | None = None
    ) -> WorkerChange:
        _check(by, note)
        if seconds is not None:
            check_seconds("seconds", seconds)
        with self._database.write() as conn:
            now = now_of(conn)
            _changeable(conn, worker_id, {"quarantined": _QUARANTINED})
            until = None if seconds is None else now + seconds
            how = "paused" if seconds is None else f"paused for {span(seconds)}"
            end = "" if until is None else f", until {moment(until)}"
            set_state(conn, worker_id, "paused", _said(how, by, note) + end, now, until)
            return WorkerChange(read_worker(conn, worker_id))

    def resume_worker(self, worker_id: str, by: str) -> WorkerChange:
        _check(by)
        with self._database.write() as conn:
            now = now_of(conn)
            row = _changeable(conn, worker_id, {"quarantined": _QUARANTINED})
            if row.state in ("paused", "draining"):
                _let_go_on(conn, row, now)
            return WorkerChange(read_worker(conn, worker_id))

    def drain_worker(self, worker_id: str, by: str, note: str = "") -> WorkerChange:
        _check(by, note)
        with self._database.write() as conn:
            now = now_of(conn)
            row = _changeable(conn, worker_id, {"quarantined": _QUARANTINED})
            if row.state in ("registering", "online", "paused"):
                gone = present_state(row, now) == "offline"
                reason = _said("drained", by, note)
                set_state(conn, worker_id, "offline" if gone else "draining", reason, now)
            return WorkerChange(read_worker(conn, worker_id))

    def quarantine_worker(
        self, worker_id: str, by: str, note: str, since: float | None = None
    ) -> WorkerChange:
        _check(by)
        check_text("note", note, _NOTE)
        if since is not None:
            check_seconds("since", since, zero=True)
        with self._database.write() as conn:
            now = now_of(conn)
            row = _changeable(conn, worker_id, {})
            if since is None:
                sound = last_sound(conn, worker_id)
                since = row.registered_at if sound is None else sound
            reason = f"{_said('quarantined', by, note)}; results since {moment(since)} do not count"
            set_state(conn, worker_id, "quarantined", reason, now)
            replaced, lost = doubt(conn, worker_id, since, reason, now)
            return WorkerChange(read_worker(conn, worker_id), replaced, lost)

    def release_worker(self, worker_id: str, by: str, restore_results: bool = False) -> WorkerChange:
        _check(by)
        with self._database.write() as conn:
            now = now_of(conn)
            row = _changeable(conn, worker_id, {"paused": "is paused, not quarantined: resume it"})
            replaced = lost = 0
            if row.state == "quarantined":
                _let_go_on(conn, row, now)
                believe(conn, worker_id, now)
            if restore_results:
                replaced, lost = restore(conn, worker_id, now)
            return WorkerChange(read_worker(conn, worker_id), replaced, lost)

    def remove_worker(
        self, worker_id: str, by: str, note: str = "", discard_results: bool = False
    ) -> WorkerChange:
        _check(by, note)
        with self._database.write() as conn:
            now = now_of(conn)
            row = lock_worker(conn, worker_id)
            if row.state != "retired":
                end_open_lease(conn, worker_id, "released", now)
                set_state(conn, worker_id, "retired", _said("removed", by, note), now)
            replaced = lost = 0
            if discard_results:
                reason = _said("its results were discarded", by, note)
                replaced, lost = doubt(conn, worker_id, 0.0, reason, now)
            return WorkerChange(read_worker(conn, worker_id), replaced, lost)

    def doubts(self, worker_id: str | None = None) -> list[Doubt]:
        query = select(*(doubts.c[name] for name in Doubt.__slots__)).order_by(doubts.c.seq)
        if worker_id is not None:
            query = query.where(doubts.c.worker == worker_id)
        with self._database.read() as conn:
            return [Doubt(**row._mapping) for row in conn.execute(query)]

    def crashes(self, hardware: str | None = None, limit: int = 500) -> list[Crash]:
        check_limit(limit)
        newest = crashes.c.last_at.desc(), crashes.c.candidate_key
        query = select(*(crashes.c[name] for name in Crash.__slots__)).order_by(*newest).limit(limit)
        if hardware is not None:
            query = query.where(crashes.c.hardware == hardware)
        with self._database.read() as conn:
            return [Crash(**row._mapping) for row in conn.execute(query)]


def _check(by: str, note: str = "") -> None:
    check_text("by", by)
    check_text("note", note, _NOTE, empty=True)


def _said(what: str, by: str, note: str) -> str:
    return f"{what} by {by}" + (f": {note}" if note else "")


def _changeable(conn: Connection, worker_id: str, refused: dict[str, str]) -> Row[Any]:
    """The worker, locked, unless its state is one of `refused` or it was removed: Conflict that says why."""
    end_pauses(conn)
    row = lock_worker(conn, worker_id)
    if why := (refused | {"retired": _RETIRED}).get(row.state):
        raise Conflict(f"worker {row.name} {why}")
    return row


def _let_go_on(conn: Connection, row: Row[Any], now: float) -> None:
    set_state(conn, row.id, present_state(row, now), "", now)
