"""Leases: claim, start, renew, settle, release and sweep."""

from collections.abc import Mapping, Sequence
from typing import Any

from sqlalchemy import Connection, Row, bindparam, delete, select, update

from ..checks import check_int, check_seconds, check_settlement
from ..errors import Conflict, InvalidValue, LeaseLost, SettlementMismatch
from ..fleet_records import Lease, LeaseState, LostLease, Measured, OpenWork, labels_of
from ..fleet_store import MAX_LEASE_ITEMS
from ..records import Settlement
from ..words import PRESENT_STATES
from .claims import grant, has_poisoned, settle_poisoned
from .clock import now_of
from .lease_ends import end_expired, end_lease, end_open_lease, expired_leases, has_expired
from .lease_rows import (
    extend_lease,
    find_lease,
    held_rows,
    lease_state,
    live_lease,
    refuse_lost,
    touch_worker,
)
from .locks import lock_jobs_of_lease
from .part import Part
from .settling import measured_query, renewed, sort_out, store
from .silence import mark_silent_workers, pause_lost_jobs
from .tables import attempts, crashes, jobs, trials
from .turns import has_due, has_queued, is_leased
from .worker_rows import end_pauses, lock_worker, superseded

_OWN = attempts.c.trial == bindparam("of"), attempts.c.attempt == bindparam("granted")
_HAS_RUN = update(attempts).where(*_OWN).values(state="ran")
_RUNS = update(attempts).where(*_OWN).values(state="started", started_at=bindparam("at"))
_STARTED = (
    update(trials)
    .where(trials.c.id == bindparam("of"), trials.c.outcome == "pending")
    .values(outcome="started", started_at=bindparam("at"))
)
_TO_CLEAR_UP = select(has_expired(), has_poisoned(bindparam("kind")))


class LeasePart(Part):
    def claim(self, worker: str, session: str, hardware: str, max_items: int, ttl: float) -> Lease | None:
        check_int("max_items", max_items, 1)
        check_seconds("ttl", ttl)
        self._clear_up(hardware)
        with self._database.write() as conn:
            row = _claimant(conn, worker, session, hardware)
            now = now_of(conn)
            touch_worker(conn, row.id, row.state, row.seen_at, ttl, now)
            end_open_lease(conn, worker, "released", now)
            if row.state not in (*PRESENT_STATES, "offline"):
                return None
            return grant(conn, row, min(max_items, MAX_LEASE_ITEMS), ttl, now)

    def start(self, lease: str, trial: str, attempt: int, session: str | None = None) -> LeaseState:
        check_int("attempt", attempt, 1)
        with self._database.write() as conn:
            row = live_lease(conn, lease, session)
            rows, now = held_rows(conn, row)
            touch_worker(conn, row.worker, row.worker_state, row.seen_at, row.ttl, now)
            refuse_lost(row, now)
            item = next((each for each in rows if (each.id, each.granted) == (trial, attempt)), None)
            if item is None:
                raise LeaseLost(f"lease {lease} never held attempt {attempt} of trial {trial!r}")
            if item.attempt_state in ("granted", "ran"):
                _run(conn, rows, item, now)
            return lease_state(row, rows, row.expires_at - now)

    def renew(self, lease: str, ttl: float, session: str | None = None) -> LeaseState:
        check_seconds("ttl", ttl)
        with self._database.write() as conn:
            row = live_lease(conn, lease, session)
            rows, now = held_rows(conn, row)
            touch_worker(conn, row.worker, row.worker_state, row.seen_at, row.ttl, now)
            if row.ending in ("settled", "released"):
                return lease_state(row, rows, 0.0)
            refuse_lost(row, now)
            extend_lease(conn, lease, ttl, now)
            return lease_state(row, rows, ttl)

    def measured(self, lease: str, trials: Sequence[str]) -> dict[str, Measured]:
        if len(trials) > MAX_LEASE_ITEMS:
            raise InvalidValue("trials", f"are {len(trials)}; a lease has at most {MAX_LEASE_ITEMS}")
        with self._database.read() as conn:
            rows = conn.execute(measured_query(lease, trials)).all()
        return {row.id: Measured(row.program, row.description, row.facts) for row in rows}

    def settle(
        self,
        lease: str,
        settlements: Sequence[Settlement],
        session: str | None = None,
        instead: Mapping[str, Settlement] | None = None,
    ) -> LeaseState:
        if len(settlements) > MAX_LEASE_ITEMS:
            raise InvalidValue(
                "settlements", f"are {len(settlements)}; a lease has at most {MAX_LEASE_ITEMS}"
            )
        for i, settlement in enumerate(settlements):
            check_settlement(settlement, f"settlements[{i}]")
        for trial, settlement in (instead or {}).items():
            check_settlement(settlement, f"instead[{trial!r}]")
        with self._database.write() as conn:
            row = live_lease(conn, lease, session, with_worker=True)
            lock_jobs_of_lease(conn, lease)
            rows, now = held_rows(conn, row)
            touch_worker(conn, row.worker, row.worker_state, row.seen_at, row.ttl, now)
            found = sort_out(row, rows, settlements, instead or {})
            store(conn, row, found.taken, now)
            state = renewed(conn, row, rows, found.trials, now)
        for error in sorted(found.refused, key=lambda error: not isinstance(error, SettlementMismatch)):
            raise error
        return state

    def release(self, lease: str, session: str | None = None) -> None:
        with self._database.write() as conn:
            row = find_lease(conn, lease, session)
            if row.closed_at is None:
                end_lease(conn, row, "released", now_of(conn))

    def sweep(self, worker_silence: float = 60.0, local_silence: float = 600.0) -> list[LostLease]:
        check_seconds("worker_silence", worker_silence)
        check_seconds("local_silence", local_silence)
        with self._database.write() as conn:
            now = now_of(conn)
            end_pauses(conn)
            mark_silent_workers(conn, now - worker_silence, now)
        with self._database.write() as conn:
            now = now_of(conn)
            pause_lost_jobs(conn, now - local_silence, now)
        return self._end_expired()

    def open_work(self) -> list[OpenWork]:
        kinds = jobs.c.hardware, jobs.c.pool, jobs.c.labels
        waits = is_leased() & jobs.c.hardware.is_not(None)
        query = select(*kinds).where(waits, has_queued() | has_due()).distinct()
        with self._database.read() as conn:
            rows = conn.execute(query).all()
        return [OpenWork(row.hardware, row.pool, labels_of(row.labels)) for row in rows]

    def clear_crashes(self, candidate_key: str, hardware: str) -> None:
        with self._database.write() as conn:
            of_candidate = crashes.c.candidate_key == candidate_key, crashes.c.hardware == hardware
            conn.execute(delete(crashes).where(*of_candidate))

    def _end_expired(self) -> list[LostLease]:
        with self._database.read() as conn:
            expired = expired_leases(conn)
        ended = []
        for lease, worker in expired:
            with self._database.write() as conn:
                ended.append(end_expired(conn, lease, worker))
        return [each for each in ended if each is not None]

    def _clear_up(self, hardware: str) -> None:
        """What has to be over before work is given out, in transactions of its own: see `locks`."""
        with self._database.read() as conn:
            expired, poisoned = conn.execute(_TO_CLEAR_UP, {"kind": hardware}).one()
        if expired:
            self._end_expired()
        if poisoned:
            with self._database.write() as conn:
                settle_poisoned(conn, hardware, now_of(conn))


def _claimant(conn: Connection, worker: str, session: str, hardware: str) -> Row[Any]:
    row = lock_worker(conn, worker)
    if row.state == "paused" and row.until is not None and row.until <= now_of(conn):
        end_pauses(conn)
        row = lock_worker(conn, worker)
    if row.session != session:
        raise superseded(row)
    if row.hardware != hardware:
        raise Conflict(f"worker {worker} registered with hardware {row.hardware}, not {hardware}")
    return row


def _run(conn: Connection, rows: Sequence[Row[Any]], item: Row[Any], now: float) -> None:
    """Mark an attempt as the one that runs: a device measures one thing at a time. `rows`: of its lease, the
    only open one of its worker."""
    for row in rows:
        if row.attempt_state == "started":
            conn.execute(_HAS_RUN, {"of": row.id, "granted": row.granted})
    conn.execute(_RUNS, {"of": item.id, "granted": item.granted, "at": now})
    conn.execute(_STARTED, {"of": item.id, "at": now})
