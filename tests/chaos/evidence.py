"""What the database holds in the end, read without the product's own code."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from sqlalchemy import create_engine, text

Row = dict[str, Any]
_COLUMNS = {
    "jobs": "id, state, reason, seed, workload, target, hardware, done, trials, finished_at",
    "trials": "id, job, number, candidate_key, outcome, attempt, lease, seconds, samples, error, "
    "codegen_version, first_seconds, worker, settled_at, failure_kind, failure_message",
    "attempts": "trial, attempt, lease, worker, state, digest",
    "retimings": "trial, turn, outcome, seconds",
    "events": "job, seq, kind, data",
    "schedules": "workload, target, hardware, trial, seconds, challenger, challenger_seconds",
    "leases": "id, worker, closed_at, ending",
    "workers": "id, name, state, reason",
    "duels": "workload, target, hardware, job, incumbent, winner, times",
    "retirements": "candidate_key, hardware, reason",
    "doubts": "worker, since, until",
}


@dataclass(frozen=True, slots=True)
class Evidence:
    """Rows of the tables; `queued`: searches that are still in the queue of the scaled form."""

    jobs: list[Row]
    trials: list[Row]
    attempts: list[Row]
    retimings: list[Row]
    events: list[Row]
    schedules: list[Row]
    leases: list[Row]
    workers: list[Row]
    duels: list[Row]
    retirements: list[Row]
    doubts: list[Row]
    queued: int = 0


def read_evidence(url: str) -> Evidence:
    """Of the database at `url`, of either kind."""
    engine = create_engine(url.replace("postgresql://", "postgresql+psycopg://"))
    try:
        with engine.connect() as conn:
            tables = {
                name: [dict(row._mapping) for row in conn.execute(text(f"SELECT {columns} FROM {name}"))]
                for name, columns in _COLUMNS.items()
            }
            queued = 0
            if url.startswith("postgresql"):
                waiting = (
                    "SELECT count(*) FROM tilewright_queue.procrastinate_jobs"
                    " WHERE queue_name = 'searches' AND status IN ('todo', 'doing')"
                )
                queued = conn.execute(text(waiting)).scalar_one()
            return Evidence(**tables, queued=queued)
    finally:
        engine.dispose()
