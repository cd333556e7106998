"""A store as real use leaves it: finished jobs whose trials were leased to workers, or measured by their own
process, each job with a best-known schedule."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Any

from sqlalchemy import Connection, Table, insert, text

from tilewright.db.sql.store import SqlStore
from tilewright.db.sql.tables import (
    attempts,
    baselines,
    events,
    jobs,
    leases,
    schedules,
    shares,
    trials,
    warm_starts,
    workers,
    workloads,
)

IN_A_JOB = 1_000
FIRST_JOB = 500
WORKERS = 64
IN_A_LEASE = 8
EVENTS = 12  # of a job: its states, and what was best
_AT_ONCE = 5_000

_Row = dict[str, object]


def sizes(count: int) -> list[int]:
    """Trials of each job. What is asked of the first 51 has the same answer however many come after them."""
    return [FIRST_JOB, *[10] * 50, *[IN_A_JOB] * ((count - 1_000) // IN_A_JOB)]


def job_id(n: int) -> str:
    """Ids are random, as the store's are: their order is not the one in which they came."""
    return f"job_{_digest('job', n)}"


def some_local(n: int) -> bool:
    """Every tenth job was measured by the process that searched."""
    return n % 10 == 9


def all_local(n: int) -> bool:
    return True


def fill(store: SqlStore, counts: Sequence[int], is_local: Callable[[int], bool] = some_local) -> None:
    """Jobs that have ended, of so many trials, each of a workload of its own; and what the database has to
    know of its tables to choose plans. A local job's trials have no leases."""
    store.put_target("t", "{}")
    store.put_hardware("h", "{}")
    made = [_Job(n, count, is_local(n)) for n, count in enumerate(counts)]
    each = [(job, k) for job in made for k in range(job.count)]
    _insert(store, workloads, (_workload(job.n) for job in made))
    _insert(store, workers, (_worker(n) for n in range(WORKERS)))
    _insert(store, jobs, (job.row() for job in made))
    _insert(store, events, (_event(job.n, k) for job in made for k in range(EVENTS)))
    _insert(store, leases, (job.lease(k) for job, k in each if k % IN_A_LEASE == 0 and not job.local))
    _insert(store, trials, (_trial(job, k) for job, k in each))
    _insert(store, attempts, (_attempt(job, k) for job, k in each))
    _insert(store, schedules, (_schedule(job.n) for job in made))
    _insert(store, baselines, (_baseline(job.n) for job in made))
    _insert(store, warm_starts, ({"job": job.id, "snapshot": "{}", "known": 0} for job in made))
    _insert(store, shares, iter([_share(sum(job.count for job in made if not job.local))]))
    with store._database.write() as conn:
        conn.execute(text("ANALYZE"))


def _insert(store: SqlStore, table: Table, rows: Iterator[_Row]) -> None:
    while chunk := list(islice(rows, _AT_ONCE)):
        with store._database.write() as conn:
            if conn.dialect.name == "postgresql":
                _copy(conn, table, chunk)
            else:
                conn.execute(insert(table), chunk)


def _copy(conn: Connection, table: Table, rows: list[_Row]) -> None:
    driver: Any = conn.connection.dbapi_connection
    with driver.cursor() as cursor, cursor.copy(f"COPY {table} ({', '.join(rows[0])}) FROM STDIN") as copy:
        for row in rows:
            copy.write_row(list(row.values()))


def _digest(*of: object) -> str:
    return hashlib.sha256(repr(of).encode()).hexdigest()[:12]


def _at(n: int, k: int) -> float:
    return float(IN_A_JOB * n + k)


def _key(n: int) -> _Row:
    return {"workload": f"w{n}", "target": "t", "hardware": "h"}


def _workload(n: int) -> _Row:
    return {"key": f"w{n}", "name": "matmul", "program": "{}", "script": "", "created_at": 0.0}


def _worker(n: int) -> _Row:
    return {
        "id": _worker_id(n),
        "name": f"rig {n}",
        "session": "s",
        "hardware": "h",
        "protocol": 1,
        "versions": "{}",
        "labels": "{}",
        "codegen_version": "g1",
        "state": "offline",
        "reason": "",
        "registered_at": 0.0,
        "seen_at": 0.0,
    }


def _event(n: int, k: int) -> _Row:
    kind = "best" if 2 < k < EVENTS - 1 else "state"
    return {"job": job_id(n), "seq": k + 1, "kind": kind, "data": "{}", "at": _at(n, k)}


def _worker_id(n: int) -> str:
    return f"worker_{_digest('worker', n)}"


@dataclass(frozen=True, slots=True)
class _Job:
    n: int
    count: int
    local: bool

    @property
    def id(self) -> str:
        return job_id(self.n)

    def row(self) -> _Row:
        origin = "local" if self.local else "http"
        asked = {
            "trials": self.count,
            "seed": 0,
            "strategy": "guided",
            "worker_wait": 600.0,
            "origin": origin,
        }
        begun, ended = _at(self.n, 0), _at(self.n, self.count)
        times = {"created_at": begun, "started_at": begun, "finished_at": ended, "active_at": ended}
        state = {"state": "completed", "reason": "", "spec": "{}", "epoch": 1, "done": self.count}
        return {"id": self.id, **asked, **times, **_key(self.n), **state, "share": float(self.count)}

    def held(self, k: int) -> _Row:
        """Who measured a trial: nobody of the fleet, where the job is a local one."""
        if self.local:
            return {"lease": None, "worker": None}
        which = k // IN_A_LEASE
        worker = _worker_id((self.n + which) % WORKERS)
        return {"lease": f"lease_{_digest('lease', self.n, which)}", "worker": worker}

    def lease(self, k: int) -> _Row:
        held, ended = self.held(k), _at(self.n, k + IN_A_LEASE)
        times = {"ttl": 30.0, "granted_at": _at(self.n, k), "expires_at": ended, "closed_at": ended}
        who = {"session": "s", "hardware": "h", "codegen_version": "g1", "ending": "settled"}
        return {"id": held["lease"], "worker": held["worker"], **who, **times}


def _trial(job: _Job, k: int) -> _Row:
    seconds, at = 1.0 + k / IN_A_JOB, _at(job.n, k)
    return {
        "id": f"{job.id}.{k}",
        "job": job.id,
        "number": k,
        "batch": k // IN_A_LEASE,
        "candidate_key": _digest("candidate", job.n, k),
        "sketch": "tiled",
        "trace": json.dumps({"steps": [k] * 20}),
        "features": bytes(200),
        "feature_schema": 1,
        "input_seed": 0,
        "outcome": "ok",
        "attempt": 1,
        "worker": job.held(k)["worker"],
        "seconds": seconds,
        "samples": json.dumps([seconds] * 5),
        "censored": False,
        "error": 0.5,
        "failure_message": "",
        "failure_detail": "{}",
        "build_seconds": 0.1,
        "wall_seconds": 0.5,
        "codegen_version": "g1",
        "created_at": at,
        "started_at": at,
        "settled_at": at,
    }


def _attempt(job: _Job, k: int) -> _Row:
    at = _at(job.n, k)
    times = {"granted_at": at, "started_at": at, "ended_at": at}
    digest = _digest("settlement", job.n, k)
    return {
        "trial": f"{job.id}.{k}",
        "attempt": 1,
        **job.held(k),
        "state": "settled",
        "digest": digest,
        **times,
    }


def _schedule(n: int) -> _Row:
    return {**_key(n), "trial": f"{job_id(n)}.0", "seconds": 1.0, "updated_at": _at(n, 0)}


def _baseline(n: int) -> _Row:
    return {**_key(n), "trial": f"{job_id(n)}.0", "number": 0, "seconds": 2.0, "bound": False}


def _share(leased: int) -> _Row:
    return {"hardware": "h", "account": "", "began": float(leased - 1), "share": float(leased)}
