"""Local searches whose process dies at a write, and what they came to."""

from __future__ import annotations

from typing import Any

from synthetic import FakeMachine, task, tiles

from tilewright.compiler.target import Hardware
from tilewright.db import Store
from tilewright.db.records import Job
from tilewright.tuner.record import TuningRecord
from tilewright.tuner.tune import Tuner

HERE = Hardware.of({"architecture": "test"})


def tune(store: Any, machine: FakeMachine | None = None, **options: Any) -> TuningRecord:
    options = {"task": task(tiles()), "trials": 24, "strategy": "random", "history": "ignore", **options}
    return Tuner(hardware=HERE, store=store, **options).run(machine or FakeMachine())


def found(store: Store, record: TuningRecord) -> tuple[Any, ...]:
    """All that the search of a job came to."""
    assert record.job is not None and record.best is not None
    trials = store.trials(record.job)
    best = store.best(record.workload, record.target, record.hardware)
    assert best is not None
    said = [(t.number, t.batch, t.candidate_key, t.outcome, t.first_seconds or t.seconds) for t in trials]
    return said, record.best.candidate.number, record.seconds, record.state, record.reason, best.trace


def last_job(store: Store) -> Job:
    return store.jobs().items[0]
