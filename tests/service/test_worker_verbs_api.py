"""What workers are told to do, over HTTP."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from service_harness import (
    FACTS,
    HARDWARE,
    Api,
    attach,
    problem,
    searched,
    settle,
    without_times,
)

from tilewright.db import open_store
from tilewright.measure.messages import Drain, NameRetired, WorkerHello
from tilewright.service.client import ApiError, Client
from tilewright.service.work_watch import WorkWatch
from tilewright.service.worker_client import WorkerClient


def test_a_worker_is_paused_for_a_while_by_its_name(api: Api, admin: Client) -> None:
    attach(api.store)
    worker = admin.pause_worker("w1", seconds=1800, note="new fan").worker
    assert (worker.state, without_times(worker.reason)) == (
        "paused",
        "paused for 30 min by token ops: new fan, until THEN",
    )
    assert worker.until is not None and worker.state_at is not None
    assert worker.until - worker.state_at == pytest.approx(1800)


def test_each_verb_wakes_the_dispatcher_and_answers_the_worker(api: Api, admin: Client) -> None:
    attach(api.store)
    states = [
        admin.drain_worker("w1").worker.state,
        admin.resume_worker("w1").worker.state,
        admin.quarantine_worker("w1", "odd times").worker.state,
        admin.release_worker("w1").worker.state,
        admin.remove_worker("w1").worker.state,
    ]
    assert states == ["draining", "online", "quarantined", "online", "retired"]
    assert api.dispatcher.woken == 5


def test_a_quarantine_says_what_is_best_known_now(api: Api, admin: Client) -> None:
    job = searched(api.store, 2)
    settle(api.store, [1e-5], attach(api.store, "bad"))
    settle(api.store, [2e-5], attach(api.store, "good"))
    change = admin.quarantine_worker("bad", "odd times")
    best = api.store.best(job.workload, job.target, HARDWARE)
    assert (change.replaced, change.lost, best and best.seconds) == (1, 0, 2e-5)


def test_a_quarantine_since_a_while_ago_keeps_what_is_older(api: Api, admin: Client) -> None:
    job = searched(api.store, 1)
    settle(api.store, [1e-5], attach(api.store))
    assert admin.quarantine_worker("w1", "odd times", since_seconds=0).replaced == 0
    assert api.store.best(job.workload, job.target, HARDWARE) is not None


@pytest.mark.parametrize("verb", ["pause", "resume", "drain", "quarantine", "release", "remove"])
def test_a_verb_needs_an_administrator(api: Api, verb: str) -> None:
    attach(api.store)
    body = {"note": "why"} if verb == "quarantine" else {}
    answer = api.http.post(f"/v1/workers/w1:{verb}", json=body, headers=api.token("worker"))
    assert (answer.status_code, answer.json()["code"]) == (403, "scope-missing")
    assert api.store.find_worker("w1").state == "registering"


def test_an_unknown_worker_gets_the_known_names(api: Api) -> None:
    attach(api.store, "rpi4-07")
    answer = api.http.post("/v1/workers/RPI4-7:pause", json={}, headers=api.token("admin"))
    assert answer.json() == problem(
        404,
        "not-found",
        "There is no such thing",
        "there is no worker 'RPI4-7'; did you mean 'rpi4-07'? workers: rpi4-07",
    )


def test_a_verb_that_does_not_fit_is_409_and_says_which_one_does(api: Api, admin: Client) -> None:
    attach(api.store)
    admin.quarantine_worker("w1", "odd times")
    with pytest.raises(ApiError) as caught:
        admin.pause_worker("w1")
    assert (caught.value.status, caught.value.detail) == (409, "worker w1 is quarantined: release it")


def test_a_worker_whose_name_holds_odd_characters_is_reached(api: Api, admin: Client) -> None:
    worker = attach(api.store, "rack 3/board:7 é")
    assert admin.worker(worker.id).name == "rack 3/board:7 é"
    attach(api.store, "board:7 é?")
    assert admin.pause_worker("board:7 é?").worker.state == "paused"


def test_an_idle_worker_that_drains_is_told_with_its_next_empty_lease(api: Api, admin: Client) -> None:
    hello = WorkerHello(1, "w1", "5" * 32, HARDWARE, FACTS, {"codegen": "7"})
    with Client(api.url, api.store.create_token("t", ["worker"])[1]) as opened:
        source = WorkerClient(opened.transport)
        source.register(hello)
        assert source.lease(1, 0.0) is None
        admin.drain_worker("w1", note="moving")
        with pytest.raises(Drain):
            source.lease(1, 0.0)
        source.leave()
    assert (admin.worker("w1").state, admin.worker("w1").reason) == (
        "offline",
        "drained by token ops: moving",
    )


@pytest.mark.parametrize("verb", ["pause", "drain", "quarantine", "remove"])
def test_a_worker_that_waits_for_work_is_let_go_once_the_verb_is_stored(
    api: Api, admin: Client, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, verb: str
) -> None:
    let_go: list[tuple[str, str]] = []

    def seen(watch: WorkWatch, worker: str) -> None:
        with open_store(f"sqlite:///{tmp_path}/tilewright.db") as other:
            let_go.append((worker, other.worker(worker).state))

    monkeypatch.setattr(WorkWatch, "let_go", seen)
    worker = attach(api.store)
    change = getattr(admin, f"{verb}_worker")("w1", *["a test"] * (verb == "quarantine"))
    assert let_go == [(worker.id, change.worker.state)]


def test_a_removed_worker_that_still_runs_is_told_to_end(api: Api, admin: Client) -> None:
    hello = WorkerHello(1, "w1", "5" * 32, HARDWARE, FACTS, {"codegen": "7"})
    with Client(api.url, api.store.create_token("t", ["worker"])[1]) as opened:
        source = WorkerClient(opened.transport)
        source.register(hello)
        admin.remove_worker("w1")
        with pytest.raises(Drain):
            source.lease(1, 0.0)
        with pytest.raises(NameRetired, match=r"w1 is retired .* attach it under another name"):
            source.register(replace(hello, session="6" * 32))
