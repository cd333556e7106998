"""How results of leased trials are taken in."""

from collections.abc import Sequence
from typing import Any

from sqlalchemy import Connection, Row, Select, select, update

from ..errors import LeaseLost, SettlementMismatch, StoreError
from ..fleet_records import LeaseState
from ..records import Settlement
from .digest import digest_of
from .health import note_baseline
from .job_rows import is_over, job_row
from .lease_ends import close_lease, forgive, is_fault, may_try_again, requeue
from .lease_rows import is_lost, lease_state, open_attempts
from .retimings import is_wanted_again, take_retiming
from .tables import attempts, hardware, jobs, leases, targets, trials, workloads
from .trial_rows import count_result, write_result


def measured_query(lease: str, ids: Sequence[str]) -> Select[Any]:
    """Programs, descriptions and facts of those of these trials that the lease was granted."""
    return (
        select(trials.c.id, workloads.c.program, targets.c.description, hardware.c.facts)
        .join_from(attempts, trials, attempts.c.trial == trials.c.id)
        .join(leases, attempts.c.lease == leases.c.id)
        .join(jobs, trials.c.job == jobs.c.id)
        .join(workloads, jobs.c.workload == workloads.c.key)
        .join(targets, jobs.c.target == targets.c.key)
        .join(hardware, leases.c.hardware == hardware.c.key)
        .where(attempts.c.lease == lease, attempts.c.trial.in_(ids))
    )


def settle_one(
    conn: Connection, lease: Row[Any], settlement: Settlement, stored: Settlement, now: float
) -> StoreError | None:
    """Take one result, of which `stored` is kept, or say why it is refused."""
    row = attempt_row(conn, lease, settlement.trial, settlement.attempt)
    if row is None:
        return _never_held(lease, settlement)
    digest = digest_of(settlement)
    if row.attempt_state == "settled":
        return None if row.digest == digest else SettlementMismatch(settlement.trial, settlement.attempt)
    if row.attempt != settlement.attempt:
        return LeaseLost(f"trial {row.id} was granted again after attempt {settlement.attempt}")
    if row.attempt_state == "lost":
        forgive(conn, row.candidate_key, lease.hardware)
    own = attempts.c.trial == row.id, attempts.c.attempt == settlement.attempt
    conn.execute(update(attempts).where(*own).values(state="settled", digest=digest, ended_at=now))
    conn.execute(update(trials).where(trials.c.id == row.id).values(lease=None))
    note_baseline(conn, row.job, lease.worker, settlement.baseline, now)
    if is_wanted_again(conn, row.id, row.outcome):
        take_retiming(conn, row.id, stored, lease.worker, now)
        count_result(conn, lease.worker, stored)
        return None
    if is_fault(stored) and not is_over(job_row(conn, row.job).state) and may_try_again(conn, row):
        count_result(conn, lease.worker, stored)
        requeue(conn, row.id)
        return None
    codegen_version = settlement.codegen_version or lease.codegen_version
    write_result(conn, row, stored, lease.worker, codegen_version, now)
    return None


def attempt_row(conn: Connection, lease: Row[Any], trial: str, attempt: int) -> Row[Any] | None:
    """The trial, with `attempt_state` and `digest` of an attempt that this lease was granted."""
    return conn.execute(
        select(trials, attempts.c.state.label("attempt_state"), attempts.c.digest)
        .join_from(attempts, trials, attempts.c.trial == trials.c.id)
        .where(attempts.c.lease == lease.id, attempts.c.trial == trial, attempts.c.attempt == attempt)
        .with_for_update(key_share=True)
    ).one_or_none()


def renewed(conn: Connection, lease: Row[Any], now: float) -> LeaseState:
    """Close a lease that is settled to the last trial, extend another, and leave a lost one as it is."""
    lost = is_lost(lease, now)
    if lease.closed_at is None and open_attempts(conn, lease.id) == 0:
        close_lease(conn, lease.id, "settled", now)
    elif not lost:
        conn.execute(update(leases).where(leases.c.id == lease.id).values(expires_at=now + lease.ttl))
    return lease_state(conn, lease, 0.0 if lost else lease.ttl)


def _never_held(lease: Row[Any], settlement: Settlement) -> LeaseLost:
    return LeaseLost(
        f"lease {lease.id} never held attempt {settlement.attempt} of trial {settlement.trial!r}"
    )
