"""Jobs that are paused, resumed, extended and cancelled, with real processes that may be killed meanwhile.

Cases A2 (every state has a way out), A3 (resume keeps the queue) and A4 (the end of a job frees its workers,
and a search that breaks fails its job).
"""

from __future__ import annotations

import contextlib
import json
import os
import random
import signal
import time
from typing import Any

import psutil
import pytest

from tilewright.db import open_store
from tilewright.db.fleet_records import Worker
from tilewright.db.records import Job
from tilewright.service.client import ApiError, Client

SMALL = {"op": "matmul", "m": 64, "n": 64, "k": 64}
BUSY = {"op": "matmul", "m": 384, "n": 384, "k": 384}
LONG = {"op": "matmul", "m": 1024, "n": 1024, "k": 1024}


def trials(client: Client, job: str) -> dict[int, tuple[str, str, float | None]]:
    """number -> (candidate, outcome, seconds) of every settled trial."""
    return {
        t.number: (t.candidate, t.outcome, t.seconds)
        for t in client.trials(job)
        if t.outcome not in ("pending", "started")
    }


def reach(client: Client, job: str, done: int, until: Any) -> None:
    until(f"{done} trials of {job}", lambda: client.job(job).progress.done >= done)


def workers(fleet: Any) -> list[Worker]:
    with open_store(fleet.db, create=False) as store:
        return store.workers()


@pytest.mark.slow
def test_a_job_is_paused_over_a_restart_resumed_and_extended(fleet: Any, until: Any) -> None:
    server = fleet.serve()
    fleet.worker()
    with fleet.client() as client:
        job = client.submit(SMALL, trials=16).id
        reach(client, job, 4, until)
        client.pause(job)
        until("the trial in flight", lambda: all(t.outcome != "started" for t in client.trials(job)))
        before = trials(client, job)
    server.terminate()
    server.wait()
    fleet.serve()
    with fleet.client() as client:
        time.sleep(1.0)
        assert (client.job(job).state, trials(client, job)) == ("paused", before)
        assert client.resume(job).state == "running"
        done = fleet.finished(job)
        assert (done.state, done.progress.done) == ("completed", 16)
        with pytest.raises(ApiError, match="already complete") as refused:
            client.resume(job)
        assert (refused.value.status, refused.value.code) == (409, "already-complete")
        assert client.extend(job, trials=20).budget.trials == 20
        done = fleet.finished(job)
        after = trials(client, job)
    assert (done.state, done.progress.done, sorted(after)) == ("completed", 20, list(range(20)))
    # The final rounds time the winner anew: its seconds change, but it is not measured as another trial.
    assert {n: after[n][:2] for n in before} == {n: trial[:2] for n, trial in before.items()}
    assert len({candidate for candidate, *_ in after.values()}) == 20


@pytest.mark.slow
def test_a_search_on_the_command_line_that_was_interrupted_goes_on(fleet: Any, until: Any) -> None:
    arguments = (
        "tune",
        json.dumps({"op": "matmul", "m": 256, "n": 256, "k": 256}),
        "--trials",
        "24",
        "--db",
        fleet.db,
    )
    first = fleet.start("first.log", *arguments)

    def jobs() -> list[Job]:
        with open_store(fleet.db) as store:
            return list(store.jobs().items)

    until("five trials", lambda: [job.done >= 5 for job in jobs()] == [True])
    first.send_signal(signal.SIGINT)
    first.wait()
    (paused,) = jobs()
    second = fleet.start("second.log", *arguments, "--resume")
    assert second.wait(120) == 0, fleet.log("second.log")
    (job,) = jobs()
    assert (paused.state, paused.id, job.state, job.done) == ("paused", job.id, "completed", 24)
    assert f"what was measured is kept in {fleet.db}, and --resume goes on" in fleet.log("first.log")


@pytest.mark.slow
def test_a2_the_trial_of_a_killed_worker_is_queued_again_and_its_job_can_be_cancelled(
    fleet: Any, until: Any
) -> None:
    fleet.settings = {"TILEWRIGHT_LEASE_SECONDS": "3"}
    fleet.serve()
    worker = fleet.worker()
    with fleet.client() as client:
        job = client.submit(BUSY, trials=200).id
        reach(client, job, 2, until)
        until("a running trial", lambda: any(t.outcome == "started" for t in client.trials(job)))
        fleet.kill(worker)
        until("the trial to be queued", lambda: all(t.outcome != "started" for t in client.trials(job)), 20)
        until("the job to wait", lambda: client.job(job).state == "waiting", 20)
        assert client.cancel(job).state == "cancelled"
        assert {t.outcome for t in client.trials(job)} & {"pending", "started"} == set()


@pytest.mark.slow
def test_a3_a_server_stopped_at_30_of_100_trials_reaches_100_and_repeats_none(fleet: Any, until: Any) -> None:
    server = fleet.serve()
    fleet.worker()
    with fleet.client() as client:
        job = client.submit(SMALL, trials=100).id
        reach(client, job, 30, until)
    server.terminate()
    server.wait()
    with open_store(fleet.db, create=False) as store:
        stored = store.trials(job)
        before = {t.number: (t.candidate_key, t.outcome, t.seconds) for t in stored if t.settled_at}
        assert sum(t.outcome in ("pending", "started") for t in stored) >= 4
    fleet.serve()
    done = fleet.finished(job)
    with fleet.client() as client:
        after = trials(client, job)
        with pytest.raises(ApiError, match="already complete"):
            client.resume(job)
    assert (done.state, done.progress.done, sorted(after)) == ("completed", 100, list(range(100)))
    assert {n: after[n][:2] for n in before} == {n: trial[:2] for n, trial in before.items()}
    assert len({candidate for candidate, *_ in after.values()}) == 100


@pytest.mark.slow
def test_a4_cancelling_a_job_with_three_running_trials_frees_the_workers(fleet: Any, until: Any) -> None:
    fleet.settings = {"TILEWRIGHT_LEASE_ITEMS": "2", "TILEWRIGHT_RUN_SECONDS": "30"}
    fleet.serve()
    for name in ("w1", "w2", "w3"):
        fleet.worker(name)
    with fleet.client() as client:
        job = client.submit(LONG, trials=300).id

        def started() -> int:
            return sum(t.outcome == "started" for t in client.trials(job))

        until("three running trials", lambda: started() == 3, 90)
        client.cancel(job)
        # The limit of one trial: building and running it.
        until("idle workers", lambda: all(w.state == "online" for w in workers(fleet)), 40)
        assert client.job(job).state == "cancelled"
        until("an end of each trial", lambda: started() == 0, 5)


@pytest.mark.slow
def test_a4_a_search_that_breaks_fails_its_job_with_a_reason_and_no_stack_trace(fleet: Any) -> None:
    broken = fleet.folder / "sitecustomize.py"
    broken.write_text(
        "import sys\n"
        "if any('search_child' in word for word in sys.orig_argv):\n"
        "    from tilewright.tuner.strategies.random import Random\n"
        "    def propose(self, view, count, rng):\n"
        "        raise ValueError('low == high')\n"
        "    Random.propose = propose\n"
    )
    fleet.settings = {"PYTHONPATH": f"{fleet.folder}{os.pathsep}{os.environ.get('PYTHONPATH', '')}"}
    fleet.serve()
    fleet.worker()
    with fleet.client() as client:
        done = fleet.finished(client.submit(SMALL, strategy="random").id, 60)
    assert (done.state, done.reason) == (
        "failed",
        "its search ended with status 1, 2 times: ValueError: low == high",
    )


@pytest.mark.slow
def test_a4_a_space_of_one_point_is_searched_and_exhausted(fleet: Any) -> None:
    fleet.serve()
    fleet.worker()
    with fleet.client() as client:
        done = fleet.finished(client.submit({"op": "matmul", "m": 1, "n": 1, "k": 1}, trials=500).id)
    assert (done.state, done.best is not None) == ("exhausted", True)


@pytest.mark.slow
@pytest.mark.parametrize("seed", [1, 2])
def test_kills_at_random_moments_lose_nothing_that_was_acknowledged(
    fleet: Any, until: Any, seed: int
) -> None:
    """The server, the search child and the worker, again and again, in an order that the seed decides."""
    fleet.settings = {"TILEWRIGHT_LEASE_SECONDS": "3"}
    draw = random.Random(seed)
    server, worker = fleet.serve(), fleet.worker("w0")
    with fleet.client() as client:
        job = client.submit(BUSY, trials=48, seed=seed).id
    known: dict[int, tuple[str, str, float | None]] = {}
    for turn in range(1, 7):
        with fleet.client() as client:
            goal = min(46, client.job(job).progress.done + draw.randint(1, 6))
            reach(client, job, goal, until)
        with open_store(fleet.db, create=False) as store:
            stored = store.trials(job)
        settled = {t.number: (t.candidate_key, t.outcome, t.seconds) for t in stored if t.settled_at}
        assert {number: settled[number] for number in known} == known
        known = settled
        time.sleep(draw.random() * 0.3)
        victim = draw.choice(["server", "search", "worker"])
        if victim == "server":
            fleet.kill(server)
            server = fleet.serve()
        elif victim == "worker":
            fleet.kill(worker)
            worker = fleet.worker(f"w{turn}")
        else:
            for process in psutil.Process(server.pid).children():
                with contextlib.suppress(psutil.NoSuchProcess):
                    if "tilewright.service.search_child" in process.cmdline():
                        process.send_signal(signal.SIGKILL)
    done = fleet.finished(job, 110)
    with fleet.client() as client:
        after = trials(client, job)
    assert (done.state, done.progress.done, sorted(after)) == ("completed", 48, list(range(48)))
    assert {n: after[n][:2] for n in known} == {n: trial[:2] for n, trial in known.items()}
    assert done.best is not None
    assert after[done.best.trial][1:] == ("ok", done.best.seconds)
