"""A running job that does not get on says since when and what it waits for."""

import time

import pytest

from tilewright.db.fleet_records import Stall
from tilewright.db.summary_records import ResultDoubt


def stall(scene, job, silence=0.02):
    time.sleep(0.05)
    return scene.summary(job, silence).stall


def test_a_stalled_job_names_the_trial_that_runs_and_its_worker(scene):
    job = scene.searched(3)
    lease = scene.claim(scene.worker("w1"))
    scene.store.start(lease.id, lease.items[1].trial, 1)
    found = stall(scene, job)
    assert (found.number, found.worker, found.started) == (1, "w1", True)


def test_a_stalled_job_names_who_holds_a_trial_that_was_not_started(scene):
    job = scene.searched(1)
    scene.claim(scene.worker("w1"))
    found = stall(scene, job)
    assert (found.number, found.worker, found.started) == (0, "w1", False)


def test_a_stalled_job_that_nobody_measures_names_its_first_trial(scene):
    job = scene.searched(2)
    found = stall(scene, job)
    assert (found.number, found.worker) == (0, None)


def test_a_stalled_job_without_trials_waits_for_its_search(scene):
    job = scene.job()
    scene.store.begin_search(job.id)
    found = stall(scene, job)
    assert found == Stall(found.since, None, None, False)


@pytest.mark.parametrize("progress", ["result", "trials", "event", "resumed"])
def test_what_was_heard_of_lately_is_not_stalled(scene, success, progress):
    job = scene.searched(2)
    lease = scene.claim(scene.worker())
    time.sleep(0.05)
    if progress == "result":
        scene.store.settle(lease.id, [success(lease.items[0])])
    elif progress == "trials":
        scene.add(job, range(5, 6))
    elif progress == "event":
        scene.store.add_event(job.id, "best", "{}")
    else:
        scene.store.pause_job(job.id)
        scene.store.resume_job(job.id)
    assert (scene.summary(job, 30.0).stall, scene.summary(job, 1e-6).stall is None) == (None, False)


@pytest.mark.parametrize("state", ["waiting", "paused", "cancelled"])
def test_only_a_running_job_is_stalled(scene, state):
    job = scene.searched(1)
    change = {
        "waiting": lambda: scene.store.set_waiting(job.id, "no worker"),
        "paused": lambda: scene.store.pause_job(job.id),
        "cancelled": lambda: scene.store.cancel_job(job.id),
    }
    change[state]()
    assert stall(scene, job) is None


def test_a_job_tells_whose_results_do_not_count(scene, success):
    job = scene.searched(4)
    for name, count in (("bad", 2), ("good", 1)):
        lease = scene.claim(scene.worker(name), count)
        scene.store.settle(lease.id, [success(item) for item in lease.items])
    assert scene.summary(job).doubts == ()
    bad = scene.store.find_worker("bad")
    change = scene.store.quarantine_worker(bad.id, "the server", "its golden kernel is 1.3 times slower")
    assert scene.summary(job).doubts == (ResultDoubt("bad", change.worker.reason, 2),)
