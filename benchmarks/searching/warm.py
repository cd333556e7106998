"""Searches that begin with what others have measured."""

from __future__ import annotations

import argparse
import shutil
import sqlite3
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from bench.workloads import Workload, workloads

from tilewright.compiler.ir import workload_key

from .processes import answer

#: Seed of the searches that make the records; none of those that are compared.
SEED = 500

# Rows of jobs, in an order that leaves no reference open.
_OF_JOBS = (
    "DELETE FROM schedules WHERE workload = :w",
    "DELETE FROM warm_starts WHERE job IN (SELECT id FROM jobs WHERE workload = :w)",
    "DELETE FROM retimings WHERE trial IN (SELECT id FROM trials WHERE job IN"
    " (SELECT id FROM jobs WHERE workload = :w))",
    "DELETE FROM attempts WHERE trial IN (SELECT id FROM trials WHERE job IN"
    " (SELECT id FROM jobs WHERE workload = :w))",
    "DELETE FROM trials WHERE job IN (SELECT id FROM jobs WHERE workload = :w)",
    "DELETE FROM events WHERE job IN (SELECT id FROM jobs WHERE workload = :w)",
    "DELETE FROM jobs WHERE workload = :w",
)


def records(chosen: Iterable[Workload], options: argparse.Namespace) -> Path:
    """A store with one search of every workload of the set, each begun with nothing; kept between runs."""
    from .live import processors

    path: Path = options.work / f"records-{options.trials}.db"
    if not path.exists():
        making = path.with_suffix(".making")
        making.unlink(missing_ok=True)
        for w in workloads(("w",)):
            answer(
                "one_search",
                workload=w.name,
                trials=options.trials,
                seed=SEED,
                store=str(making),
                without="history",
                processors=processors()[0],
            )
        making.rename(path)
    return path


def searches(name: str, known: Path, options: argparse.Namespace, one: Sequence[int]) -> list[dict[str, Any]]:
    """Short searches, each on a copy of the store without the workload's own records."""
    (w,) = workloads(("w",), (name,))
    found = []
    for seed in range(options.seeds):
        copy = options.work / f"warm-{name}.db"
        shutil.copy(known, copy)
        without(copy, workload_key(w.program()))
        found.append(
            answer(
                "one_search",
                workload=name,
                trials=options.warm_trials,
                seed=seed,
                store=str(copy),
                processors=one,
            )
        )
        for left in options.work.glob(f"{copy.name}*"):
            left.unlink()
    return found


def without(path: Path, workload: str) -> None:
    """Forgets the jobs of a workload, with all that they measured."""
    with sqlite3.connect(path) as connection:
        for statement in _OF_JOBS:
            connection.execute(statement, {"w": workload})
    connection.close()
