"""How fast the store answers with few and with many trials in it, on both kinds of database.

    python benchmarks/store.py --trials 1000 1000000

Prints milliseconds for each call (the median of its repeats) and how much slower it is with the most trials
than with the fewest. A store that answers by its indexes alone stays within about 2; a call that reads what
it answers with (1 000 trials of a history) costs what that costs.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from itertools import islice
from pathlib import Path
from statistics import median
from typing import Any

from sqlalchemy import Connection, Table, insert, select, text

from tilewright.db import Store
from tilewright.db.fleet_records import NewWorker
from tilewright.db.records import NewJob, NewTrial, PastSearch, Settlement
from tilewright.db.sql.store import SqlStore
from tilewright.db.sql.tables import attempts, events, jobs, schedules, trials, workloads

sys.path.insert(0, str(Path(__file__).parents[1] / "deploy"))

IN_A_JOB = 1_000
REPEATS = 30
_AT_ONCE = 5_000


def sizes(count: int) -> list[int]:
    """Trials of each job. What is asked of the first 51 has the same answer however many come after them."""
    return [500, *[10] * 50, *[IN_A_JOB] * ((count - 1_000) // IN_A_JOB)]


def fill(store: SqlStore, count: int) -> None:
    """Completed jobs, each of a workload of its own, with a best-known schedule."""
    store.put_target("t", "{}")
    store.put_hardware("h", "{}")
    of_jobs = sizes(count)
    whole = [{"key": f"w{n}", "name": "matmul", "program": "{}", "script": ""} for n in range(len(of_jobs))]
    _insert(store, workloads, (row | {"created_at": 0.0} for row in whole))
    _insert(store, jobs, (_job(n, trials) for n, trials in enumerate(of_jobs)))
    _insert(store, events, (_event(n) for n in range(len(of_jobs))))
    _insert(store, trials, (_trial(n, k) for n, trials in enumerate(of_jobs) for k in range(trials)))
    _insert(store, attempts, (_attempt(n, k) for n, trials in enumerate(of_jobs) for k in range(trials)))
    _insert(store, schedules, (_schedule(n) for n in range(len(of_jobs))))
    with store._database.write() as conn:
        conn.execute(text("ANALYZE"))


def _insert(store: SqlStore, table: Table, rows: Iterator[dict[str, object]]) -> None:
    while chunk := list(islice(rows, _AT_ONCE)):
        with store._database.write() as conn:
            if conn.dialect.name == "postgresql":
                _copy(conn, table, chunk)
            else:
                conn.execute(insert(table), chunk)


def _copy(conn: Connection, table: Table, rows: list[dict[str, object]]) -> None:
    driver: Any = conn.connection.dbapi_connection
    with driver.cursor() as cursor, cursor.copy(f"COPY {table} ({', '.join(rows[0])}) FROM STDIN") as copy:
        for row in rows:
            copy.write_row(list(row.values()))


def _job(n: int, count: int) -> dict[str, object]:
    asked = {"trials": count, "seed": 0, "strategy": "guided", "worker_wait": 600.0, "origin": "http"}
    times = {"created_at": float(n), "started_at": float(n), "finished_at": float(n), "active_at": float(n)}
    key = {"workload": f"w{n}", "target": "t", "hardware": "h"}
    state = {"state": "completed", "reason": "", "spec": "{}", "epoch": 1, "done": count}
    return {"id": f"job_{n}", **asked, **times, **key, **state}


def _event(n: int) -> dict[str, object]:
    return {"job": f"job_{n}", "seq": 1, "kind": "state", "data": "{}", "at": 0.0}


def _trial(job: int, number: int) -> dict[str, object]:
    seconds = 1.0 + number / IN_A_JOB
    return {
        "id": f"job_{job}.{number}",
        "job": f"job_{job}",
        "number": number,
        "batch": number // 8,
        "candidate_key": f"c{job}.{number}",
        "sketch": "tiled",
        "trace": json.dumps({"steps": [number] * 20}),
        "features": bytes(200),
        "feature_schema": 1,
        "input_seed": 0,
        "outcome": "ok",
        "attempt": 1,
        "seconds": seconds,
        "samples": json.dumps([seconds] * 5),
        "censored": False,
        "error": 0.5,
        "failure_message": "",
        "failure_detail": "{}",
        "build_seconds": 0.1,
        "wall_seconds": 0.5,
        "codegen_version": "g1",
        "created_at": 0.0,
        "settled_at": float(IN_A_JOB * job + number),
    }


def _attempt(job: int, number: int) -> dict[str, object]:
    trial = f"job_{job}.{number}"
    return {"trial": trial, "attempt": 1, "state": "settled", "digest": "d", "granted_at": 0.0}


def _schedule(n: int) -> dict[str, object]:
    key = {"workload": f"w{n}", "target": "t", "hardware": "h"}
    return {**key, "trial": f"job_{n}.0", "seconds": 1.0, "updated_at": float(n)}


def calls(store: Store) -> dict[str, Callable[[], object]]:
    """What is timed; each leaves as much work as it finds."""
    job = store.create_job(NewJob("w0", "t", "h", 100_000, None, 0, "guided", 600.0, "http", "{}"))
    store.begin_search(job.id)
    worker = store.register_worker(NewWorker("rig", "s", "h", 1, "{}", "{}", "g1"))
    numbers = iter(range(10**6))

    def claim_and_settle() -> None:
        some = [next(numbers) for _ in range(16)]
        new = [NewTrial(n, n // 8, f"new{n}", "tiled", "{}", bytes(200), 1, 0) for n in some]
        store.add_trials(job.id, 1, new)
        lease = store.claim(worker.id, "s", "h", 16, 30.0)
        assert lease is not None
        results = [Settlement(i.trial, i.attempt, 9.0, (9.0,) * 5, error=0.5) for i in lease.items]
        store.settle(lease.id, results)

    return {
        "lookup of the best": lambda: store.best("w0", "t", "h"),
        "add, claim, settle 16": claim_and_settle,
        "claim of nothing": lambda: store.claim(worker.id, "s", "h", 16, 30.0),
        "page of 50 jobs": lambda: store.jobs(limit=50),
        "unfinished jobs": lambda: store.unfinished_jobs(),
        "page of 100 trials": lambda: store.trials("job_0", 400, 100),
        "ten fastest trials": lambda: store.top_trials("job_0", 10),
        "counts of a job": lambda: store.trial_counts("job_0"),
        "history of a key": lambda: store.past_trials("w0", "t", "h", "g1", 1_000),
        "32 past searches": lambda: store.past_searches("h", "matmul", 32),
        "sample of a search": lambda: store.sampled_trials(PastSearch("w0", "t", "h", None, 1.0), 16, 32),
        "what waits": lambda: store.open_work(),
        "sweep": lambda: store.sweep(),
    }


def timed(call: Callable[[], object], repeats: int) -> float:
    """Milliseconds, the median."""
    call()
    taken = []
    for _ in range(repeats):
        begun = time.perf_counter()
        call()
        taken.append(time.perf_counter() - begun)
    return 1e3 * median(taken)


def filled(url: str, count: int) -> str:
    """The url, of a store that holds so many trials; one that holds any is taken to hold them."""
    with SqlStore.open(url) as store:
        with store._database.read() as conn:
            known = conn.execute(select(trials.c.id).limit(1)).first()
        if known is None:
            fill(store, count)
    return url


def measured(url: str, repeats: int = REPEATS) -> dict[str, float]:
    with SqlStore.open(url) as store:
        return {name: timed(call, repeats) for name, call in calls(store).items()}


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


def show(kind: str, counts: list[int], tables: list[dict[str, float]]) -> None:
    print(f"{kind}, {os.cpu_count()} processors; milliseconds with so many trials")
    print(f"{'':24}" + "".join(f"{count:>12}" for count in counts) + f"{'ratio':>8}")
    for name in tables[0]:
        values = [table[name] for table in tables]
        print(f"{name:24}" + "".join(f"{v:12.2f}" for v in values) + f"{values[-1] / values[0]:8.2f}")
    print(flush=True)


if __name__ == "__main__":
    main()
