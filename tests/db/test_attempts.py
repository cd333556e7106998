"""A trial is tried again when its worker failed, and not when it failed itself."""

import pytest
from sqlalchemy import select, update

from tilewright.db import Conflict
from tilewright.db.fleet_store import MAX_ATTEMPTS
from tilewright.db.sql.tables import attempts


def attempt(scene, result, name="rig"):
    """One more attempt at the only trial; what the worker was given."""
    lease = scene.claim(scene.worker(name))
    (item,) = lease.items
    scene.store.start(lease.id, item.trial, item.attempt)
    settlement = result(item)
    for _ in range(2):
        scene.store.settle(lease.id, [settlement])
    return item


def test_property_6_a_fault_of_the_worker_brings_the_trial_back_and_one_of_the_candidate_does_not(
    scene, failure
):
    job = scene.searched(1)
    attempt(scene, lambda item: failure(item, "worker_lost"))
    assert (scene.outcomes(job), scene.store.job(job.id).done) == (["pending"], 0)
    attempt(scene, lambda item: failure(item, "run_error"))
    assert (scene.outcomes(job), scene.store.job(job.id).done) == (["run_error"], 1)
    assert scene.claims_nothing(scene.worker())


def test_property_6_a_trial_has_three_attempts(scene, failure):
    job = scene.searched(1)
    items = [
        attempt(scene, lambda item: failure(item, "worker_lost"), f"rig{n}") for n in range(MAX_ATTEMPTS)
    ]
    assert [item.attempt for item in items] == [1, 2, 3]
    assert (scene.outcomes(job), scene.store.job(job.id).done) == (["worker_lost"], 1)
    assert scene.claims_nothing(scene.worker())


def test_property_6_attempts_that_came_back_untouched_do_not_count(scene, failure, success):
    job = scene.searched(1)
    for n in range(2 * MAX_ATTEMPTS):
        scene.store.release(scene.claim(scene.worker(f"idle{n}")).id)
    for _ in range(MAX_ATTEMPTS - 1):
        attempt(scene, lambda item: failure(item, "worker_lost"))
    attempt(scene, success)
    assert scene.outcomes(job) == ["ok"]


def test_property_6_lost_workers_and_faults_count_together(scene, failure):
    job = scene.searched(1)
    attempt(scene, lambda item: failure(item, "worker_lost"), "one")
    attempt(scene, lambda item: failure(item, "worker_lost"), "two")
    scene.lose(scene.worker("three"), started=0)
    scene.store.sweep()
    (trial,) = scene.store.trials(job.id)
    assert (trial.outcome, trial.failure_message) == (
        "worker_lost",
        "3 attempts to measure it were lost with their workers",
    )


def test_a_fault_on_a_trial_of_a_job_that_is_over_is_its_result(scene, failure):
    job = scene.searched(1)
    lease = scene.claim(scene.worker())
    scene.store.start(lease.id, lease.items[0].trial, 1)
    scene.store.cancel_job(job.id)
    scene.store.settle(lease.id, [failure(lease.items[0], "worker_lost")])
    assert scene.outcomes(job) == ["worker_lost"]


def test_property_5_a_device_measures_one_thing_at_a_time(scene):
    """The database itself refuses a second running attempt of a worker, whoever writes it."""
    scene.searched(2)
    rig = scene.worker()
    lease = scene.claim(rig)
    scene.store.start(lease.id, lease.items[0].trial, 1)
    second = attempts.c.trial == lease.items[1].trial
    with pytest.raises(Conflict), scene.store._database.write() as conn:
        conn.execute(update(attempts).where(second).values(state="started"))
    scene.store.start(lease.id, lease.items[1].trial, 1)
    with scene.store._database.read() as conn:
        running = select(attempts.c.trial).where(attempts.c.worker == rig.id, attempts.c.state == "started")
        assert conn.execute(running).scalars().all() == [lease.items[1].trial]
