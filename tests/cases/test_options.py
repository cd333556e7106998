"""U10: an option that is not known is an error that names it, and a job keeps every option it ran with."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from service_harness import ENVIRONMENT, HARDWARE, MATMUL, Api, attach

import tilewright as tw
from tilewright.db import Store, open_store

JOB: dict[str, Any] = {"workload": MATMUL}
MISSPELT: dict[str, dict[str, Any]] = {
    "/stratgy": {**JOB, "stratgy": "grid"},
    "/budget/trails": {**JOB, "budget": {"trails": 4}},
    "/budget/Seconds": {**JOB, "budget": {"Seconds": 4}},
    "/worker-wait": {**JOB, "worker-wait": 4},
}


@pytest.mark.parametrize("pointer", MISSPELT)
def test_u10_a_misspelt_option_of_a_request_is_422_naming_it(api: Api, pointer: str) -> None:
    answer = api.http.post("/v1/jobs", json=MISSPELT[pointer])
    assert answer.status_code == 422
    assert [error["pointer"] for error in answer.json()["errors"]] == [pointer]


def test_u10_a_job_over_http_keeps_every_option_with_its_default(api: Api, store: Store) -> None:
    attach(store)
    job = api.http.post("/v1/jobs", json=JOB).json()
    stored = json.loads(store.job(job["id"]).spec)
    assert stored == {
        **stored,
        "workload": MATMUL,
        "target": "llvm",
        "budget": {"trials": 64, "seconds": None, "target_seconds": None, "patience": None},
        "hardware": None,
        "seed": 0,
        "strategy": "guided",
        "worker_wait": None,
        "history": "use",
        "suggestions": [],
        "measure": "workers",
    }
    shown = api.http.get(f"/v1/jobs/{job['id']}").json()
    effective = {
        name: shown[name] for name in ("seed", "strategy", "worker_wait", "history", "hardware", "budget")
    }
    assert effective == {
        "seed": 0,
        "strategy": "guided",
        "worker_wait": 600.0,
        "history": "use",
        "hardware": HARDWARE,
        "budget": {"trials": 64, "seconds": None, "target_seconds": None, "patience": None},
    }


@pytest.mark.parametrize(
    ("arguments", "named"),
    [
        (["tune", "matmul:m=8,n=8,k=8,dtype=float32", "--trails", "4"], "--trails"),
        (["tune", "matmul:m=8,n=8,kk=8,dtype=float32", "--trials", "4"], "kk"),
        (["jobs", "list", "--pool-size", "4"], "--pool-size"),
    ],
)
def test_u10_a_misspelt_option_of_a_command_ends_with_64_naming_it(
    tmp_path: Path, arguments: list[str], named: str
) -> None:
    done = _run(*arguments, cwd=tmp_path)
    assert (done.returncode, named in done.stderr) == (64, True)


def test_u10_a_misspelt_variable_ends_with_6_naming_it(tmp_path: Path) -> None:
    done = _run("config", "show", cwd=tmp_path, TILEWRIGHT_LEASE_SECOND="3")
    assert (done.returncode, "TILEWRIGHT_LEASE_SECOND" in done.stderr) == (6, True)


def test_u10_a_misspelt_option_of_tune_is_named() -> None:
    with pytest.raises(TypeError, match="trails"):
        tw.tune(None, trails=4)  # type: ignore[call-overload, call-arg, arg-type]


def test_u10_a_search_here_keeps_every_option_with_its_default(tmp_path: Path) -> None:
    func = tw.topi.create({"op": "matmul", "m": 8, "n": 8, "k": 8, "dtype": "float32"})
    with open_store(f"sqlite:///{tmp_path}/t.db") as store:
        record = tw.tune(func, trials=2, store=store, progress=False)
        assert record.job is not None
        job = store.job(record.job)
    assert (job.trials, job.seconds, job.target_seconds, job.patience, job.seed) == (2, None, None, None, 0)
    assert (job.strategy, job.history, job.target) == ("guided", "use", record.target)


def _run(*arguments: str, cwd: Path, **more: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "tilewright.service.command", *arguments]
    return subprocess.run(
        command, capture_output=True, text=True, env={**ENVIRONMENT, **more}, cwd=cwd, timeout=60
    )
