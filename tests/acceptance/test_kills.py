"""SIGKILL of the worker and of the server in mid-job: nothing acknowledged is lost, nothing stays behind, the
best is right."""

from typing import Any

import pytest

from tilewright.service.client import Client

pytestmark = pytest.mark.slow
BUSY = {"op": "matmul", "m": 384, "n": 384, "k": 384}


def measured(client: Client, job: str) -> dict[int, tuple[str, float | None]]:
    """number -> (outcome, seconds) of every settled trial."""
    return {
        t.number: (t.outcome, t.seconds)
        for t in client.trials(job)
        if t.outcome not in ("pending", "started", "leased")
    }


def wait_for(client: Client, job: str, done: int, until: Any) -> None:
    until(f"{done} trials", lambda: client.job(job).progress.done >= done)


def test_a_trial_of_a_killed_worker_is_leased_again_and_the_job_ends(fleet: Any, until: Any) -> None:
    fleet.serve()
    first = fleet.worker("first")
    with fleet.client() as client:
        job = client.submit(BUSY, trials=24)
        wait_for(client, job.id, 4, until)
        before = measured(client, job.id)
        fleet.kill(first)
        fleet.worker("second")
        done = fleet.finished(job.id, 110)
        after = measured(client, job.id)
    assert (done.state, done.progress.done) == ("completed", 24)
    # Only the winner has other seconds than at first: those of the final rounds.
    assert {n for n in before if after[n] != before[n]} <= {done.best and done.best.trial}
    assert sorted(after) == list(range(24))
    assert done.best is not None
    assert after[done.best.trial] == ("ok", done.best.seconds)


def test_a_killed_server_goes_on_from_the_stored_trials(fleet: Any, until: Any) -> None:
    server = fleet.serve()
    fleet.worker()
    with fleet.client() as client:
        job = client.submit(BUSY, trials=24)
        wait_for(client, job.id, 6, until)
        before = measured(client, job.id)
    fleet.kill(server)
    fleet.serve()
    done = fleet.finished(job.id, 110)
    with fleet.client() as client:
        after = measured(client, job.id)
    assert (done.state, done.progress.done) == ("completed", 24)
    # Only the winner has other seconds than at first: those of the final rounds.
    assert {n for n in before if after[n] != before[n]} <= {done.best and done.best.trial}
    assert sorted(after) == list(range(24))
    assert done.best is not None
    assert after[done.best.trial] == ("ok", done.best.seconds)


def test_no_process_outlives_a_killed_server_and_worker(fleet: Any, until: Any) -> None:
    server, worker = fleet.serve(), fleet.worker()
    with fleet.client() as client:
        job = client.submit(BUSY, trials=200)
        wait_for(client, job.id, 2, until)
    assert len(fleet.descendants()) >= 3
    fleet.kill(server)
    fleet.kill(worker)
    until("the children to end", lambda: fleet.descendants() == [], 10)
