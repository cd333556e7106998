"""A store with one job, and workers that measure its trials by formula whenever the search sleeps."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from synthetic import HARDWARE, TARGET, WORKLOAD, FakeSpace, task, tile_seconds, tiles

from tilewright.db import Store
from tilewright.db.fleet_records import LeaseItem, NewWorker
from tilewright.db.records import Job, NewJob, Settlement
from tilewright.tuner.run import run_search
from tilewright.tuner.task import TuningTask


class Killed(BaseException):
    """Stands for SIGKILL: nothing in the search may catch it."""


@dataclass
class Clock:
    now: float = 100.0

    def __call__(self) -> float:
        return self.now


@dataclass
class Lab:
    store: Store
    space: FakeSpace = field(default_factory=tiles)
    seconds: Callable[[Mapping[str, Any]], float] = tile_seconds
    settle: Callable[[LeaseItem], Settlement | None] = lambda item: None
    codegen: str = "1"
    history: str = "ignore"
    strategy: str = "evolutionary"
    suggestions: list[Any] = field(default_factory=list)
    options: dict[str, Any] = field(default_factory=dict)
    path: Path | None = None
    at_once: int = 8
    clock: Clock = field(default_factory=Clock)
    naps: int = 0
    during: Callable[[int], None] = lambda nap: None

    def __post_init__(self) -> None:
        self.store.put_workload(WORKLOAD, "bowl", '{"program": "bowl"}', "bowl()")
        self.store.put_target(TARGET, '{"kind": "llvm"}')
        self.store.put_hardware(HARDWARE, "{}")
        worker = NewWorker("w", "s", HARDWARE, 1, "{}", "{}", "1")
        self.worker = self.store.register_worker(worker).id

    def job(
        self,
        trials: int = 48,
        seconds: float | None = None,
        strategy: str | None = None,
        seed: int = 0,
        **budget: Any,
    ) -> Job:
        new = NewJob(
            WORKLOAD,
            TARGET,
            HARDWARE,
            trials,
            seconds,
            seed,
            strategy or self.strategy,
            600.0,
            "http",
            json.dumps({"op": "bowl", "suggestions": self.suggestions, **self.options}),
            history=self.history,
            **budget,
        )
        return self.store.create_job(new)

    def search(self, job: Job, store: Any = None) -> Job:
        """`store`: what the search itself writes to, where that is not the lab's."""
        epoch, mine = self.store.begin_search(job.id), store or self.store
        return run_search(
            self.store.job(job.id), mine, epoch, open_task=self.task, clock=self.clock, sleep=self.nap
        )

    def task(self, job: Job, store: Store) -> TuningTask:
        return task(self.space, self.codegen)

    def nap(self, seconds: float) -> None:
        """What happens in the world while the search sleeps: a worker measures a few trials."""
        self.naps += 1
        self.clock.now += seconds
        self.during(self.naps)
        self.work()

    def work(self) -> None:
        lease = self.store.claim(self.worker, "s", HARDWARE, self.at_once, 30.0)
        for item in lease.items if lease else ():
            self.store.start(lease.id, item.trial, item.attempt)
            self.store.settle(lease.id, [self.settlement(item)])

    def settlement(self, item: LeaseItem) -> Settlement:
        planned = self.settle(item)
        if planned is not None:
            return planned
        seconds = self.seconds(json.loads(item.trace))
        return Settlement(item.trial, item.attempt, seconds, (seconds,), error=0.1)

    def keys(self, job: Job) -> list[str]:
        return [trial.candidate_key for trial in self.store.trials(job.id)]

    def events(self, job: Job, kind: str) -> list[dict[str, Any]]:
        return [json.loads(event.data) for event in self.store.events(job.id) if event.kind == kind]


def failure(item: LeaseItem, kind: str, message: str = "", detail: str = "{}") -> Settlement:
    return Settlement(
        item.trial,
        item.attempt,
        failure_kind=kind,  # type: ignore[arg-type]
        failure_message=message,
        failure_detail=detail,
    )


def ended(job: Job) -> tuple[str, str]:
    return job.state, job.reason
