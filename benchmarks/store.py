"""How fast the store answers with few and with many trials in it, on both kinds of database.

    python benchmarks/store.py --trials 1000 1000000

Prints milliseconds for each call, and the ratio of the most trials to the fewest: on the clock (the median of
its repeats), and of the processor (their mean), that of this process and of the database's. The stores hold
what real use leaves (`bench.stored`). A store that answers by its indexes alone stays near 1; a call that
reads what it answers with (1 000 trials of a history) costs what that costs.
"""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
import time
from collections import defaultdict
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from statistics import mean, median
from typing import Self

from bench.stored import fill, job_id
from sqlalchemy import select, text

from tilewright.db import Store
from tilewright.db.fleet_records import Lease, NewWorker
from tilewright.db.records import NewJob, NewTrial, PastSearch, Settlement
from tilewright.db.sql.store import SqlStore
from tilewright.db.sql.tables import trials

sys.path.insert(0, str(Path(__file__).parent.parent / "tests"))

REPEATS = 30
BATCH = 16
FEW, MANY = 10, 1_000
"""Jobs that wait at once."""

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


def rounds(store: Store, work: Work, few: Work, many: Work) -> list[dict[str, Call]]:
    """What is timed. The calls of a round are made in turn; each round leaves as much work as it finds."""
    search = PastSearch("w0", "t", "h", None, 1.0)
    lookups: dict[str, Call] = {
        "lookup of the best": lambda: store.best("w0", "t", "h"),
        "page of 50 jobs": lambda: store.jobs(limit=50),
        "unfinished jobs": lambda: store.unfinished_jobs(),
        "page of 100 trials": lambda: store.trials(job_id(0), 400, 100),
        "ten fastest trials": lambda: store.top_trials(job_id(0), 10),
        "counts of a job": lambda: store.trial_counts(job_id(0)),
        "history of a key": lambda: store.past_trials("w0", "t", "h", "g1", 1_000),
        "32 past searches": lambda: store.past_searches("h", "matmul", 32),
        "sample of a search": lambda: store.sampled_trials(search, 16, 32),
        "what waits": lambda: store.open_work(),
        "sweep": lambda: store.sweep(),
    }
    of_a_worker: dict[str, Call] = {
        f"add {BATCH} trials": work.add,
        f"claim {BATCH}": work.claim,
        "start one": work.start,
        f"settle {BATCH}": work.settle,
    }
    return [
        of_a_worker,
        {"claim of nothing": work.claim},
        {f"claim, {FEW} jobs wait": few.claim, "release": few.release},
        {f"claim, {MANY} jobs wait": many.claim, "release of it": many.release},
        *({name: call} for name, call in lookups.items()),
    ]


@dataclass(slots=True)
class Times:
    """Seconds of each repeat of a call."""

    wall: list[float] = field(default_factory=list)
    processor: list[float] = field(default_factory=list)


class Clock:
    """Times calls by this process and the database's own, those that serve it when this is made."""

    def __init__(self, store: SqlStore) -> None:
        with store._database.read() as conn:
            query = text("SELECT pid FROM pg_stat_activity WHERE datname = current_database()")
            of_server = conn.dialect.name == "postgresql"
            self._servers = list(conn.execute(query).scalars()) if of_server else []

    def time(self, call: Call, into: Times) -> None:
        used, begun = self._processor(), time.perf_counter()
        call()
        into.wall.append(time.perf_counter() - begun)
        into.processor.append(self._processor() - used)

    def _processor(self) -> float:
        return time.process_time() + sum(map(_used, self._servers))


def _used(process: int) -> float:
    """Seconds of the processor that another process has used (Linux: proc(5), schedstat)."""
    return int(Path(f"/proc/{process}/schedstat").read_text().split()[0]) / 1e9


def filled(url: str, count: int) -> str:
    """The url, of a store that holds so many trials; one that holds any is taken to hold them."""
    with SqlStore.open(url) as store:
        with store._database.read() as conn:
            known = conn.execute(select(trials.c.id).limit(1)).first()
        if known is None:
            fill(store, count)
    return url


def measured(url: str, repeats: int = REPEATS) -> dict[str, Times]:
    times: defaultdict[str, Times] = defaultdict(Times)
    with SqlStore.open(url) as store, ExitStack() as stack:
        worked = {"h": 1, "few": FEW, "many": MANY}
        works = [stack.enter_context(Work(store, kind, count)) for kind, count in worked.items()]
        for calls in rounds(store, *works):
            for call in calls.values():
                call()
            clock = Clock(store)
            for _ in range(repeats):
                for name, call in calls.items():
                    clock.time(call, times[name])
    return times


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--trials", type=int, nargs="+", default=[1_000, 1_000_000])
    parser.add_argument("--kinds", nargs="+", default=["sqlite", "postgres"], choices=["sqlite", "postgres"])
    parser.add_argument("--folder", type=Path, help="keeps the filled stores for the next time")
    parser.add_argument("--repeats", type=int, default=REPEATS)
    parser.add_argument("--fill", action="store_true", help="fill the stores and time nothing")
    said = parser.parse_args()
    for kind in said.kinds:
        with ExitStack() as stack:
            folder = said.folder or Path(stack.enter_context(tempfile.TemporaryDirectory()))
            folder.mkdir(parents=True, exist_ok=True)
            if kind == "postgres":
                from postgres_server import PostgresServer

                place = None if said.folder is None else folder / "postgres"
                server = stack.enter_context(PostgresServer(durable=True, directory=place, autovacuum="on"))
                urls = [server.url(server.named(f"trials{count}")) for count in said.trials]
            else:
                urls = [f"sqlite:///{folder}/{count}.db" for count in said.trials]
            for url, count in zip(urls, said.trials, strict=True):
                filled(url, count)
            if not said.fill:
                show(kind, said.trials, [measured(url, said.repeats) for url in urls])


def show(kind: str, counts: list[int], tables: list[dict[str, Times]]) -> None:
    print(f"{kind}, {os.cpu_count()} processors; milliseconds with so many trials, and of the processor")
    of_processor = "".join(f"{count:>12}" for count in counts)
    print(f"{'':24}" + of_processor + f"{'ratio':>8}" + of_processor + f"{'ratio':>8}")
    for name in tables[0]:
        wall = [1e3 * median(table[name].wall) for table in tables]
        processor = [1e3 * mean(table[name].processor) for table in tables]
        print(f"{name:24}" + _line(wall) + _line(processor))
    print(flush=True)


def _line(values: list[float]) -> str:
    return "".join(f"{v:12.2f}" for v in values) + f"{values[-1] / values[0]:8.2f}"


if __name__ == "__main__":
    main()
