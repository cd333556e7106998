"""A fleet on the scaled form of this machine: two API processes, search runners, PostgreSQL."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from scaled import Scaled

from tilewright.db import open_store
from tilewright.db.fleet_records import NewWorker
from tilewright.db.records import Job, NewTrial
from tilewright.measure.probe import probe
from tilewright.service.client import Client

from .latencies import Summary
from .ledger import Ledger, read_ledger
from .workers import Fleet

SIZES = (32, 48, 64, 80, 96, 112, 128, 144, 160, 176)
_CLIENTS = 2
_TRIALS = 20_000
_START_SECONDS = 180.0


@dataclass(frozen=True, slots=True)
class Load:
    """`searches` 0: no search runs, and the queue is filled with copies of one real candidate of each job.
    Workers attach within `spread` seconds, which are part of the `seconds`. Searches propose `batch`
    candidates at a time, with another batch out."""

    workers: int = 1000
    jobs: int = 10
    seconds: float = 120.0
    trial_seconds: float = 10.0
    max_items: int = 8
    together: int = 4
    apis: int = 2
    searches: int = 2
    spread: float = 30.0
    batch: int = 64


@dataclass(frozen=True, slots=True)
class Outcome:
    calls: dict[str, Summary]
    leases: int
    items: int
    seconds: float
    steady: float
    refused: list[str]
    errors: dict[str, int]
    ledger: Ledger


def run_load(load: Load, data: Path) -> Outcome:
    with Scaled(data, apis=load.apis, searches=load.searches, workers=0, concurrency=8) as scaled:
        jobs = _submit(scaled, load)
        if load.searches:
            _await_candidates(scaled, jobs)
        else:
            _fill(scaled, jobs, load)
        begun = time.monotonic()
        seen = _drive(scaled, load)
        seconds = time.monotonic() - begun
        if (dead := scaled.dead()) is not None:
            raise RuntimeError(dead)
        settled = [name for part in seen for name in part["settled"]]
        ledger = read_ledger(scaled.db, settled, jobs)
    kinds = sorted({kind for part in seen for kind in part["took"]})
    return Outcome(
        calls={
            kind: Summary.of((took for part in seen for took in part["took"].get(kind, ())), seconds)
            for kind in kinds
        },
        leases=sum(part["leases"] for part in seen),
        items=sum(part["items"] for part in seen),
        seconds=seconds,
        steady=sum(part["late"] for part in seen) / (load.seconds / 2),
        refused=[words for part in seen for words in part["lost"]],
        errors=_added(part["errors"] for part in seen),
        ledger=ledger,
    )


def _submit(scaled: Scaled, load: Load) -> list[str]:
    """Jobs of matmuls of different sizes; the hardware is this machine's, which all workers say they are."""
    hello = probe("submitting")
    with open_store(scaled.db, create=False) as store:
        store.put_hardware(hello.hardware_key, json.dumps(hello.hardware))
        # Without a worker no search begins.
        store.register_worker(
            NewWorker(
                hello.name, hello.session, hello.hardware_key, 1, json.dumps(hello.versions), "{}",
                hello.versions["codegen"],
            )
        )  # fmt: skip
    with Client(scaled.url, scaled.token.read_text().strip()) as client:
        ids = []
        for n in range(load.jobs):
            size = SIZES[n % len(SIZES)]
            workload = {
                "op": "matmul",
                "m": size,
                "n": size,
                "k": 32 * (1 + n // len(SIZES)),
                "dtype": "float32",
            }
            job = client.submit(
                workload, trials=_TRIALS, hardware=hello.hardware_key, seed=n, batch=load.batch
            )
            ids.append(job.id)
    return ids


def _await_candidates(scaled: Scaled, jobs: list[str]) -> None:
    """Until every search has proposed: that they begin is not what is measured."""
    deadline = time.monotonic() + _START_SECONDS
    with open_store(scaled.db, create=False) as store:
        while not all(store.trials(job, -1, 1) for job in jobs):
            if (dead := scaled.dead()) is not None or time.monotonic() > deadline:
                raise RuntimeError(dead or "not all searches have begun in time")
            time.sleep(0.5)


def _fill(scaled: Scaled, jobs: list[str], load: Load) -> None:
    from tilewright.compiler import ir
    from tilewright.compiler.space import default_schedule
    from tilewright.compiler.target import Target

    each = max(200, int(load.workers * load.seconds * 1.2 / max(0.05, load.trial_seconds) / len(jobs)))
    each = min(each, _TRIALS - 1)
    with open_store(scaled.db, create=False) as store:
        for name in jobs:
            job: Job = store.job(name)
            program = ir.from_json(json.loads(store.workload(job.workload).program))
            target = Target.parse(json.loads(store.target(job.target).description))
            trace = default_schedule(program, target).trace.to_json()
            epoch = store.begin_search(name)
            for first in range(0, each, 500):
                store.add_trials(
                    name,
                    epoch,
                    [
                        NewTrial(n, n // 8, f"{name}-{n}", "filled", json.dumps({**trace, "n": n}), b"", 1, 0)
                        for n in range(first, min(first + 500, each))
                    ],
                )


def _drive(scaled: Scaled, load: Load) -> list[dict[str, Any]]:
    hello = probe("simulated").to_json()
    token = scaled.worker_token.read_text().strip()
    each = load.workers // _CLIENTS
    processes = []
    for n in range(_CLIENTS):
        fleet = Fleet(
            scaled.url, token, hello, n * each, each, load.seconds, load.trial_seconds, load.max_items,
            load.together, 20.0, min(load.spread, load.seconds / 4),
        )  # fmt: skip
        process = subprocess.Popen(
            [sys.executable, "-m", "simulated.workers"],
            cwd=Path(__file__).parents[1],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        assert process.stdin is not None
        with process.stdin as stdin:
            json.dump(asdict(fleet), stdin)
        process.stdin = None
        processes.append(process)
    try:
        answers = [process.communicate()[0] for process in processes]
    finally:
        for process in processes:  # Ctrl-C: they would go on asking a server that is not there
            process.kill()
    if any(process.returncode for process in processes):
        raise RuntimeError("a process of simulated workers failed")
    return [json.loads(answer) for answer in answers]


def _added(parts: Any) -> dict[str, int]:
    total: dict[str, int] = {}
    for part in parts:
        for name, count in part.items():
            total[name] = total.get(name, 0) + count
    return total
