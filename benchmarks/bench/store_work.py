"""Calls of searches, workers and users on a store that `stored` has filled."""

from __future__ import annotations

from collections.abc import Callable
from typing import Self

from tilewright.db import Store
from tilewright.db.fleet_records import Lease, NewWorker
from tilewright.db.records import NewJob, NewTrial, PastSearch, Settlement

from .stored import job_id

BATCH = 16

Call = Callable[[], object]


class Work:
    """The calls of a search and of a worker, which leave as much work as they find when each is made once.
    A context: its jobs end with it."""

    def __init__(self, store: Store, kind: str, count: int) -> None:
        """One job on hardware of this kind, or more of which each has trials that wait already."""
        self._store, self._kind = store, kind
        self._numbers = iter(range(10**6))
        self._lease: Lease | None = None
        store.put_hardware(kind, "{}")
        self._worker = store.register_worker(NewWorker(f"rig {kind}", "s", kind, 1, "{}", "{}", "g1")).id
        asked = NewJob("w0", "t", kind, 100_000, None, 0, "guided", 600.0, "http", "{}")
        self._jobs = [store.create_job(asked).id for _ in range(count)]
        for job in self._jobs:
            store.begin_search(job)
            if count > 1:
                self._add_to(job)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        for job in self._jobs:
            self._store.finish_job(job, None, "cancelled", "")

    def add(self) -> None:
        self._add_to(self._jobs[0])

    def claim(self) -> None:
        self._lease = self._store.claim(self._worker, "s", self._kind, BATCH, 30.0)

    def start(self) -> None:
        item = self._held().items[0]
        self._store.start(self._held().id, item.trial, item.attempt)

    def renew(self) -> None:
        self._store.renew(self._held().id, 30.0)

    def settle(self) -> None:
        results = [Settlement(i.trial, i.attempt, 9.0, (9.0,) * 5, error=0.5) for i in self._held().items]
        self._store.settle(self._held().id, results)

    def release(self) -> None:
        self._store.release(self._held().id)

    def _add_to(self, job: str) -> None:
        some = [next(self._numbers) for _ in range(BATCH)]
        new = [NewTrial(n, n // 8, f"new{n}", "tiled", "{}", bytes(200), 1, 0) for n in some]
        self._store.add_trials(job, 1, new)

    def _held(self) -> Lease:
        assert self._lease is not None, f"nothing was granted on {self._kind}"
        return self._lease


def round_of_a_worker(work: Work) -> dict[str, Call]:
    """Made in turn, they leave what they find."""
    return {
        f"add {BATCH} trials": work.add,
        f"claim {BATCH}": work.claim,
        "start one": work.start,
        "renew": work.renew,
        f"settle {BATCH}": work.settle,
    }


def lookups(store: Store) -> dict[str, Call]:
    """What is asked of the first job, of its key, and of all jobs."""
    search = PastSearch("w0", "t", "h", None, 1.0)
    return {
        "lookup of the best": lambda: store.best("w0", "t", "h"),
        "page of 50 jobs": lambda: store.jobs(limit=50),
        "unfinished jobs": lambda: store.unfinished_jobs(),
        "one trial": lambda: store.trial(f"{job_id(0)}.7"),
        "page of 100 trials": lambda: store.trials(job_id(0), 400, 100),
        "ten fastest trials": lambda: store.top_trials(job_id(0), 10),
        "counts of a job": lambda: store.trial_counts(job_id(0)),
        "events of a job": lambda: store.events(job_id(0), after=3),
        "history of a key": lambda: store.past_trials("w0", "t", "h", "g1", 500),
        "32 past searches": lambda: store.past_searches("h", "matmul", 32),
        "sample of a search": lambda: store.sampled_trials(search, 16, 32),
        "what waits": lambda: store.open_work(),
        "sweep": lambda: store.sweep(),
    }
