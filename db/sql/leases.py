"""Leases: claim, start, renew, settle, release and sweep."""

from collections.abc import Mapping, Sequence
from typing import Any

from sqlalchemy import Connection, Row, delete, literal_column, select, update

from ..checks import check_int, check_seconds, check_settlement
from ..errors import Conflict, InvalidValue, LeaseLost, SettlementMismatch, Superseded
from ..fleet_records import Lease, LeaseState, LostLease, Measured, OpenWork, labels_of
from ..fleet_store import MAX_LEASE_ITEMS
from ..records import Settlement
from ..words import MEASURED_STATES
from .claims import grant, has_poisoned, settle_poisoned
from .clock import now_of
from .lease_ends import end_expired, end_lease, end_open_lease, expired_leases
from .lease_rows import find_lease, lease_state, live_lease, refuse_lost, settling_lease, touch_worker
from .locks import lock_jobs_of_lease
from .part import Part
from .settling import attempt_row, measured_query, renewed, settle_one
from .silence import mark_silent_workers, pause_lost_jobs
from .tables import attempts, crashes, jobs, leases, trials
from .turns import has_due, has_queued
from .worker_rows import end_pauses, lock_worker


class LeasePart(Part):
    def claim(self, worker: str, session: str, hardware: str, max_items: int, ttl: float) -> Lease | None:
        check_int("max_items", max_items, 1)
        check_seconds("ttl", ttl)
        self._end_expired()
        self._settle_poisoned(hardware)
        with self._database.write() as conn:
            row = _claimant(conn, worker, session, hardware)
            now = now_of(conn)
            touch_worker(conn, row.id, row.state, row.seen_at, now)
            end_open_lease(conn, worker, "released", now)
            if row.state not in ("online", "offline"):
                return None
            return grant(conn, row, min(max_items, MAX_LEASE_ITEMS), ttl, now)

    def start(self, lease: str, trial: str, attempt: int, session: str | None = None) -> LeaseState:
        check_int("attempt", attempt, 1)
        with self._database.write() as conn:
            row, now = live_lease(conn, lease, session)
            refuse_lost(row, now)
            item = attempt_row(conn, row, trial, attempt)
            if item is None:
                raise LeaseLost(f"lease {lease} never held attempt {attempt} of trial {trial!r}")
            if item.attempt_state in ("granted", "ran"):
                _run(conn, row, item, now)
            return lease_state(conn, row, row.expires_at - now)

    def renew(self, lease: str, ttl: float, session: str | None = None) -> LeaseState:
        check_seconds("ttl", ttl)
        with self._database.write() as conn:
            row, now = live_lease(conn, lease, session)
            if row.ending in ("settled", "released"):
                return lease_state(conn, row, 0.0)
            refuse_lost(row, now)
            conn.execute(update(leases).where(leases.c.id == lease).values(ttl=ttl, expires_at=now + ttl))
            return lease_state(conn, row, ttl)

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
            row, now = settling_lease(conn, lease, session)
            lock_jobs_of_lease(conn, lease)
            answers = [
                settle_one(conn, row, each, (instead or {}).get(each.trial, each), now)
                for each in settlements
            ]
            state = renewed(conn, row, now)
        refused = [answer for answer in answers if answer is not None]
        for answer in sorted(refused, key=lambda error: not isinstance(error, SettlementMismatch)):
            raise answer
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
        waits = (jobs.c.origin == "http") & jobs.c.state.in_(MEASURED_STATES) & jobs.c.hardware.is_not(None)
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

    def _settle_poisoned(self, hardware: str) -> None:
        with self._database.read() as conn:
            if not has_poisoned(conn, hardware):
                return
        with self._database.write() as conn:
            settle_poisoned(conn, hardware, now_of(conn))


def _claimant(conn: Connection, worker: str, session: str, hardware: str) -> Row[Any]:
    row = lock_worker(conn, worker)
    if row.state == "paused" and row.until is not None and row.until <= now_of(conn):
        end_pauses(conn)
        row = lock_worker(conn, worker)
    if row.session != session:
        raise Superseded(f"a newer session of worker {worker} has registered")
    if row.hardware != hardware:
        raise Conflict(f"worker {worker} registered with hardware {row.hardware}, not {hardware}")
    return row


def _run(conn: Connection, lease: Row[Any], item: Row[Any], now: float) -> None:
    """Mark an attempt as the one that runs: a device measures one thing at a time."""
    running = (
        attempts.c.worker == lease.worker,
        attempts.c.state == literal_column("'started'"),
    )  # as the partial index says it
    conn.execute(update(attempts).where(*running).values(state="ran"))
    own = attempts.c.trial == item.id, attempts.c.attempt == item.attempt
    conn.execute(update(attempts).where(*own).values(state="started", started_at=now))
    pending = trials.c.id == item.id, trials.c.outcome == "pending"
    conn.execute(update(trials).where(*pending).values(outcome="started", started_at=now))
