"""What the database says in the end: whether anything was lost or counted twice, and who got how much."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import psycopg


@dataclass(frozen=True, slots=True)
class Ledger:
    """`missing`: acknowledged settlements that are not there. `twice`: trials with more than one settled
    attempt that were not to be timed again. `lost`: attempts whose worker was taken for lost. `shares`:
    settled trials of each job."""

    settled: int
    missing: int
    twice: int
    lost: int
    shares: dict[str, int]

    @property
    def clean(self) -> bool:
        return self.missing == self.twice == self.lost == 0

    @property
    def fairness(self) -> float:
        """The largest share over the smallest; 1 is fair."""
        return max(self.shares.values()) / max(1, min(self.shares.values()))


def read_ledger(db: str, acknowledged: Iterable[str], jobs: Iterable[str]) -> Ledger:
    """Of the store at `db`, after a run in which clients saw these settlements `acknowledged`."""
    with psycopg.connect(db) as conn:
        rows = conn.execute("SELECT trial, attempt FROM attempts WHERE state = 'settled'").fetchall()
        there = {f"{trial} {attempt}" for trial, attempt in rows}
        (twice,) = _one(
            conn,
            "SELECT count(*) FROM (SELECT trial FROM attempts a WHERE state = 'settled'"
            " AND NOT EXISTS (SELECT 1 FROM retimings r WHERE r.trial = a.trial)"
            " GROUP BY trial HAVING count(*) > 1) AS doubled",
        )
        (lost,) = _one(conn, "SELECT count(*) FROM attempts WHERE state = 'lost'")
        counted = dict(
            conn.execute(
                "SELECT t.job, count(*) FROM attempts a JOIN trials t ON t.id = a.trial"
                " WHERE a.state = 'settled' GROUP BY t.job"
            ).fetchall()
        )
    told = list(acknowledged)
    return Ledger(
        settled=len(rows),
        missing=len(set(told) - there) + (len(told) - len(set(told))),
        twice=twice,
        lost=lost,
        shares={job: counted.get(job, 0) for job in jobs},
    )


def _one(conn: psycopg.Connection[tuple[int, ...]], query: str) -> tuple[int, ...]:
    row = conn.execute(query).fetchone()  # type: ignore[call-overload]
    assert row is not None
    return tuple(row)
