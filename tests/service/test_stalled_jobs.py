"""A job says in its view that it does not get on, and what of its results does not count."""

from __future__ import annotations

import time

import pytest
from service_harness import Api, FakeParser, attach, searched, settle, without_times

from tilewright.service.cli import run
from tilewright.service.presenter import Presenter


def _stalled(api: Api, job: str, seconds: float) -> str | None:
    shown = Presenter(api.store, FakeParser(), seconds).job(api.store.job(job)).stalled
    return None if shown is None else without_times(shown)


def test_a_job_whose_only_worker_is_blocked_names_the_worker_and_the_trial(api: Api) -> None:
    job = searched(api.store, 18)
    worker = attach(api.store)
    settle(api.store, [1e-5] * 17, worker)
    lease = api.store.claim(worker.id, worker.session, worker.hardware, 1, 30.0)
    assert lease is not None
    api.store.start(lease.id, lease.items[0].trial, 1)
    time.sleep(0.05)
    assert _stalled(api, job.id, 60.0) is None
    assert _stalled(api, job.id, 0.02) == "stalled since THEN, waiting for worker w1 trial 17"
    assert api.store.job(job.id).state == "running"


def test_a_job_that_no_worker_takes_up_says_so(api: Api) -> None:
    job = searched(api.store, 1)
    time.sleep(0.05)
    assert _stalled(api, job.id, 0.02) == "stalled since THEN, waiting for a worker to take trial 0"


def test_a_job_shows_whose_results_do_not_count(api: Api, capsys: pytest.CaptureFixture[str]) -> None:
    job = searched(api.store, 2)
    worker = attach(api.store)
    settle(api.store, [1e-5], worker)
    api.store.quarantine_worker(worker.id, "the server", "its golden kernel takes 1.3 times as long", 0.0)
    (warning,) = api.http.get(f"/v1/jobs/{job.id}").json()["warnings"]
    assert api.http.get("/v1/jobs").json()["jobs"][0]["warnings"] == [warning]
    assert warning.startswith(
        "1 trial by worker w1 does not count: quarantined by the server: its golden kernel takes 1.3 "
        "times as long"
    )
    assert run(["jobs", "show", job.id, "--url", api.url]) == 0
    assert f"  warning   {warning}" in capsys.readouterr().out.splitlines()
