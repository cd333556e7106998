"""A store under test, and a scene on it with short names for what tests do."""

import shutil
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from tilewright.db import Store, open_store
from tilewright.db.best_records import BestSchedule
from tilewright.db.fleet_records import Lease, LeaseItem, NewWorker, Worker
from tilewright.db.records import Job, NewJob, NewTrial, Settlement, Trial
from tilewright.db.sql import sqlite_database
from tilewright.db.summary_records import JobSummary

MOMENT = 0.05
ONLY_SQLITE = pytest.mark.parametrize("kind", ["sqlite"], indirect=True)
ONLY_POSTGRES = pytest.mark.parametrize("kind", ["postgres"], indirect=True)


@dataclass(frozen=True)
class Scene:
    """`store` holds workload `w`, target `t` and hardware `h` and `h2`; nothing else."""

    store: Store
    url: str

    def job(
        self,
        origin: str = "http",
        hardware: str | None = "h",
        trials: int = 64,
        wait: float = 600.0,
        **more: Any,
    ) -> Job:
        spec = '{"op": "matmul"}'
        job = NewJob("w", "t", hardware, trials, None, 0, "evolutionary", wait, origin, spec, **more)
        return self.store.create_job(job)

    def searched(
        self, count: int, origin: str = "http", hardware: str | None = "h", tag: str = "c", **more: Any
    ) -> Job:
        """A running job in epoch 1 with `count` pending trials, candidates `c0`, `c1` …"""
        job = self.job(origin=origin, hardware=hardware, **more)
        self.store.begin_search(job.id)
        self.add(job, range(count), tag=tag)
        return self.store.job(job.id)

    def add(self, job: Job, numbers: range, epoch: int = 1, tag: str = "c") -> list[Trial]:
        return self.store.add_trials(job.id, epoch, [self.candidate(n, tag) for n in numbers])

    def candidate(self, number: int, tag: str = "c") -> NewTrial:
        trace = f'{{"candidate": "{tag}{number}"}}'
        return NewTrial(number, number // 8, f"{tag}{number}", "tiled", trace, b"\x00\x01", 1, 7)

    def worker(
        self,
        name: str = "rig",
        session: str = "s1",
        hardware: str = "h",
        labels: str = "{}",
        pool: str | None = None,
    ) -> Worker:
        versions = '{"tilewright": "0.1.0"}'
        return self.store.register_worker(
            NewWorker(name, session, hardware, 1, versions, labels, codegen_version="g1", pool=pool)
        )

    def claim(self, worker: Worker, max_items: int = 8, ttl: float = 30.0) -> Lease:
        lease = self.store.claim(worker.id, worker.session, worker.hardware, max_items, ttl)
        assert lease is not None
        return lease

    def claims_nothing(self, worker: Worker) -> bool:
        return self.store.claim(worker.id, worker.session, worker.hardware, 8, 30.0) is None

    def best(self, hardware: str = "h") -> BestSchedule | None:
        return self.store.best("w", "t", hardware)

    def summary(self, job: Job, silence: float = 60.0) -> JobSummary:
        return self.store.job_summaries([job.id], silence)[job.id]

    def outcomes(self, job: Job) -> list[str]:
        return [trial.outcome for trial in self.store.trials(job.id)]

    def lose(self, worker: Worker, started: int | None = None, items: int = 8) -> Lease:
        """A lease that expires with its item `started` (an index) running; not swept yet."""
        lease = self.claim(worker, items)
        if started is not None:
            item = lease.items[started]
            self.store.start(lease.id, item.trial, item.attempt)
        # Only now, so that a slow machine does not lose it before.
        self.store.renew(lease.id, MOMENT)
        time.sleep(2 * MOMENT)
        return lease


def ok(item: LeaseItem | Trial, seconds: float = 0.5, **more: object) -> Settlement:
    """A success that passed its check."""
    trial = item.trial if isinstance(item, LeaseItem) else item.id
    values = {"attempt": item.attempt, "samples": (seconds, seconds), "error": 0.25, "wall_seconds": 0.1}
    return Settlement(trial=trial, seconds=seconds, **values | more)


def failed(item: LeaseItem, kind: str = "run_error") -> Settlement:
    return Settlement(
        item.trial,
        item.attempt,
        failure_kind=kind,
        failure_message="said why",
        failure_detail='{"limit": 10}',
    )


@pytest.fixture
def success() -> Callable[..., Settlement]:
    return ok


@pytest.fixture
def failure() -> Callable[..., Settlement]:
    return failed


@pytest.fixture(scope="session")
def blank(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An SQLite database with the schema and no rows; copying it is faster than migrating."""
    path = tmp_path_factory.mktemp("blank") / "tilewright.db"
    open_store(f"sqlite:///{path}").close()
    return path


@pytest.fixture(params=["sqlite", "postgres"])
def kind(request: pytest.FixtureRequest) -> str:
    """Which store is under test; `@ONLY_SQLITE` marks a test that is about a file."""
    return str(request.param)


@pytest.fixture
def url(kind: str, request: pytest.FixtureRequest, blank: Path, tmp_path: Path) -> str:
    """Where the store under test keeps its data: the schema and no rows."""
    if kind == "postgres":
        return str(request.getfixturevalue("postgres_url"))
    return f"sqlite:///{shutil.copy(blank, tmp_path / 'tilewright.db')}"


@pytest.fixture
def store(url: str, monkeypatch: pytest.MonkeyPatch) -> Iterator[Store]:
    """An open store. It does not wait for the disk: what these tests ask about does not depend on it."""
    monkeypatch.setattr(sqlite_database, "_SYNCHRONOUS", "OFF")
    with open_store(url) as opened:
        yield opened


@pytest.fixture
def scene(store: Store, url: str) -> Scene:
    store.put_workload("w", "matmul", '{"program": 1}', "for i in range(4): ...")
    store.put_target("t", '{"kind": "llvm"}')
    store.put_hardware("h", '{"cpu": "zen4"}')
    store.put_hardware("h2", '{"cpu": "cortex-a72"}')
    return Scene(store, url)
