"""The main job with real processes: serve, attach a worker, submit over HTTP, watch, look up, build."""

import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import tilewright as tw
from tilewright.compiler import interpret, topi

MATMUL = {"op": "matmul", "m": 64, "n": 64, "k": 64, "dtype": "float32"}
ROOT = Path(__file__).parents[2]


def test_a_job_over_http_becomes_the_schedule_of_the_next_build(fleet: Any) -> None:
    fleet.serve()
    fleet.worker()
    with fleet.client() as client:
        job = client.submit(MATMUL, trials=8, seed=1)
        assert job.budget.trials == 8
        done = fleet.finished(job.id)
        assert (done.state, done.progress.done) == ("completed", 8)
        kinds = [e.kind for e in client.events(job.id)]
        assert kinds[-1] == "state"
        assert "best" in kinds and "progress" in kinds
        trials = list(client.trials(job.id))
        assert [t.number for t in trials] == list(range(8))
        times = [t.seconds for t in trials if t.outcome == "ok"]
    func = topi.create(MATMUL)
    with fleet.client() as source:
        lib = tw.build(func, target="llvm", schedules=source)
    assert lib.schedule_source.kind == "exact"
    assert done.best is not None
    assert lib.schedule_source.record.seconds == done.best.seconds
    assert done.best.seconds in times
    arrays = interpret.random_inputs(func, 5)
    expected = interpret.expected(func, interpret.random_inputs(func, 5))
    lib(*arrays)
    assert interpret.check(expected, arrays).ok


def test_a_program_of_a_user_is_tuned_from_its_json(fleet: Any) -> None:
    from tilewright.compiler.ir import to_json

    func = topi.create({"op": "softmax", "m": 16, "n": 32})
    fleet.serve()
    fleet.worker()
    with fleet.client() as client:
        done = fleet.finished(client.submit(to_json(func), trials=4).id)
        assert done.state == "completed"
        assert tw.build(func, schedules=client).schedule_source.kind == "exact"


def test_without_a_worker_the_job_says_what_it_waits_for_and_fails_after_the_limit(fleet: Any) -> None:
    fleet.serve()
    with fleet.client() as client:
        job = client.submit(MATMUL, trials=4, worker_wait=1.5)
        assert job.state in ("queued", "waiting")
        done = fleet.finished(job.id, 30)
    assert done.state == "failed"
    assert "no worker" in done.reason


@pytest.mark.slow
def test_a_job_that_is_cancelled_keeps_what_it_found(fleet: Any) -> None:
    fleet.serve()
    fleet.worker()
    with fleet.client() as client:
        job = client.submit({"op": "matmul", "m": 256, "n": 256, "k": 256}, trials=500)
        while client.job(job.id).progress.done < 3:
            pass
        client.cancel(job.id)
        done = fleet.finished(job.id, 20)
        assert done.state == "cancelled"
        assert done.best is not None
        assert client.cancel(job.id).state == "cancelled"


@pytest.mark.slow
def test_the_demo_ends_well_with_a_small_budget() -> None:
    run = subprocess.run(
        [sys.executable, str(ROOT / "examples" / "demo.py"), "--trials", "8"],
        capture_output=True, text=True, timeout=110, check=False,
    )  # fmt: skip
    assert run.returncode == 0, run.stdout[-3000:] + run.stderr[-3000:]
    assert run.stdout.count("schedule: exact") == 2
    assert "sch.vectorize(" in run.stdout
    assert "tilewright worker run --url http://127.0.0.1:" in run.stdout
