"""The server of the lookups: one process, and best-known schedules that it tells."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from urllib.parse import urlencode

import rfc8785
from scaled import Scaled

from tilewright.compiler import ir, topi
from tilewright.compiler.space import default_schedule
from tilewright.compiler.target import Target
from tilewright.db import open_store
from tilewright.db.fleet_records import NewWorker
from tilewright.db.records import NewJob, NewTrial, Settlement
from tilewright.measure.probe import probe

from .latencies import Summary
from .load import SIZES


def run_lookups(data: Path, seconds: float, connections: int) -> tuple[dict[str, Summary], dict[str, float]]:
    """Closed loops of `connections` against one server process: full answers, then those that have not
    changed, in turn, then the client's own cost; and the seconds of a processor that a call of either took in
    the server."""
    unlimited = {"TILEWRIGHT_REQUESTS_PER_SECOND": "0"}  # one client asks for all
    with Scaled(data, apis=1, searches=0, workers=0, settings=unlimited) as scaled:
        paths = _store_best(scaled.db)
        said = {
            "url": scaled.url,
            "token": scaled.token.read_text().strip(),
            "paths": paths,
            "seconds": seconds,
            "connections": connections,
            "length": 3000,
            "pid": scaled.children["api"].pid,
        }
        done = subprocess.run(
            [sys.executable, "-m", "simulated.lookups"],
            cwd=Path(__file__).parents[1],
            input=json.dumps(said),
            stdout=subprocess.PIPE,
            text=True,
            check=True,
        )
    answer = json.loads(done.stdout)
    return {name: Summary(**row) for name, row in answer["rows"].items()}, answer["spent"]


def _store_best(db: str) -> Sequence[str]:
    hello = probe("storing")
    target = Target.parse("llvm")
    paths = []
    with open_store(db, create=False) as store:
        store.put_hardware(hello.hardware_key, json.dumps(hello.hardware))
        store.put_target(target.key, rfc8785.dumps(target.to_json()).decode())
        worker = store.register_worker(
            NewWorker(
                "storing", hello.session, hello.hardware_key, 1, json.dumps(hello.versions), "{}",
                hello.versions["codegen"],
            )
        )  # fmt: skip
        for size in SIZES:
            func = topi.create({"op": "matmul", "m": size, "n": size, "k": size, "dtype": "float32"})
            key = ir.workload_key(func)
            store.put_workload(key, func.name, rfc8785.dumps(ir.to_json(func)).decode(), ir.script(func))
            spec = json.dumps({"target": "llvm"})
            job = store.create_job(
                NewJob(key, target.key, hello.hardware_key, 1, None, 0, "guided", 600.0, "http", spec)
            )
            trace = json.dumps(default_schedule(func, target).trace.to_json())
            epoch = store.begin_search(job.id)
            store.add_trials(job.id, epoch, [NewTrial(0, 0, "candidate", "default", trace, b"", 1, 0)])
            lease = store.claim(worker.id, worker.session, worker.hardware, 1, 60.0)
            assert lease is not None
            (item,) = lease.items
            samples = tuple(1e-3 * (1 + n / 100) for n in range(10))
            store.settle(lease.id, [Settlement(item.trial, item.attempt, 1e-3, samples, error=0.1)])
            store.finish_job(job.id, epoch, "completed", "stored by the benchmark")
            query = {"workload": key, "target": target.key, "hardware": hello.hardware_key}
            paths.append(f"/v1/schedules/best?{urlencode(query)}")
    return paths
