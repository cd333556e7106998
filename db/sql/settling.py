"""How results of leased trials are taken in: those of a call together, for every statement costs both the
server and the database."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from sqlalchemy import Connection, Row, Select, bindparam, select, update

from ..errors import LeaseLost, SettlementMismatch, StoreError
from ..fleet_records import LeaseState
from ..records import Settlement
from ..words import OPEN_OUTCOMES
from .digest import digest_of
from .health import note_baseline
from .job_rows import is_over
from .lease_ends import close_lease, forgive, is_fault, may_try_again, requeue
from .lease_rows import extend_lease, is_lost, lease_state, open_attempts
from .retimings import take_retiming
from .tables import attempts, hardware, jobs, leases, targets, trials, workloads
from .trial_rows import Result, count_results, write_results

_SETTLE = (
    update(attempts)
    .where(attempts.c.trial == bindparam("of"), attempts.c.attempt == bindparam("granted"))
    .values(state="settled", digest=bindparam("said"), ended_at=bindparam("at"))
)
_LET_GO = update(trials).where(trials.c.id == bindparam("of")).values(lease=None)


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


@dataclass(frozen=True, slots=True)
class _Taken:
    """A result that is taken, of which `stored` is kept, under the digest of what was `said`."""

    row: Row[Any]
    said: Settlement
    stored: Settlement
    digest: str


@dataclass(slots=True)
class Sorted:
    """The results of a call: those that are new, and why others are refused."""

    taken: list[_Taken] = field(default_factory=list)
    refused: list[StoreError] = field(default_factory=list)

    @property
    def trials(self) -> set[str]:
        return {each.row.id for each in self.taken}


def sort_out(
    lease: Row[Any],
    rows: Sequence[Row[Any]],
    settlements: Sequence[Settlement],
    instead: Mapping[str, Settlement],
) -> Sorted:
    """Which results of a lease with these rows are taken. What it says holds as long as the jobs are locked
    that the trials are of: whoever grants, settles or takes back trials locks them first."""
    found = Sorted()
    held = {(row.id, row.granted): row for row in rows}
    digests = {key: row.digest for key, row in held.items() if row.attempt_state == "settled"}
    for said in settlements:
        key = said.trial, said.attempt
        row = held.get(key)
        if row is None:
            found.refused.append(_never_held(lease, said))
            continue
        digest = digest_of(said)
        if key in digests:
            if digests[key] != digest:
                found.refused.append(SettlementMismatch(*key))
        elif row.attempt != said.attempt:
            found.refused.append(LeaseLost(f"trial {row.id} was granted again after attempt {said.attempt}"))
        else:
            digests[key] = digest
            found.taken.append(_Taken(row, said, instead.get(said.trial, said), digest))
    return found


def store(conn: Connection, lease: Row[Any], taken: Sequence[_Taken], now: float) -> None:
    """Keep results, count them, and make the fastest best-known where it is."""
    if not taken:
        return
    conn.execute(
        _SETTLE,
        [{"of": each.row.id, "granted": each.row.granted, "said": each.digest, "at": now} for each in taken],
    )
    results = []
    for each in taken:
        row, stored = each.row, each.stored
        if row.attempt_state == "lost":
            forgive(conn, row.candidate_key, lease.hardware)
        note_baseline(conn, row.job, lease.worker, each.said.baseline, now)
        if row.outcome not in OPEN_OUTCOMES and row.due is not None:
            take_retiming(conn, row.id, stored, lease.worker, now)
        elif is_fault(stored) and not is_over(row.job_state) and may_try_again(conn, row):
            requeue(conn, row.id)
        else:
            results.append(Result(row, stored, each.said.codegen_version or lease.codegen_version))
            continue
        conn.execute(_LET_GO, {"of": row.id})
    write_results(conn, results, lease.worker, now)
    count_results(conn, lease.worker, [each.stored for each in taken], now)


def renewed(
    conn: Connection, lease: Row[Any], rows: Sequence[Row[Any]], settled: set[str], now: float
) -> LeaseState:
    """Close a lease that is settled to the last trial, extend another, and leave a lost one as it is."""
    lost = is_lost(lease, now)
    if lease.closed_at is None and not open_attempts(rows, settled):
        close_lease(conn, lease.id, "settled", now)
    elif not lost:
        extend_lease(conn, lease.id, lease.ttl, now)
    return lease_state(lease, rows, 0.0 if lost else lease.ttl, settled)


def _never_held(lease: Row[Any], settlement: Settlement) -> LeaseLost:
    return LeaseLost(
        f"lease {lease.id} never held attempt {settlement.attempt} of trial {settlement.trial!r}"
    )
