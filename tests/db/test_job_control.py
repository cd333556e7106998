"""Pausing, resuming, extending and cancelling, in every state."""

import json
import os
import time
from dataclasses import replace

import pytest

from tilewright.db import AlreadyComplete, Conflict, InvalidValue, JobOver, StaleSearch, open_store
from tilewright.db.process_identity import ProcessIdentity
from tilewright.db.records import NewJob
from tilewright.db.words import FINAL_JOB_STATES, JOB_STATES

UNFINISHED = tuple(state for state in JOB_STATES if state not in FINAL_JOB_STATES)


def in_state(scene, state, origin="http"):
    """A job in this state, with three pending trials unless it is queued."""
    if state == "queued":
        return scene.job(origin=origin)
    job = scene.searched(3, origin=origin)
    if state == "waiting":
        scene.store.set_waiting(job.id, "no worker")
    elif state == "paused":
        scene.store.pause_job(job.id)
    elif state != "running":
        scene.store.finish_job(job.id, 1, state, f"it is {state}")
    return scene.store.job(job.id)


@pytest.mark.parametrize("state", UNFINISHED)
def test_a_job_that_is_not_over_can_be_paused_and_its_trials_stay(scene, state):
    job = in_state(scene, state)
    paused = scene.store.pause_job(job.id)
    assert (paused.state, paused.reason) == ("paused", "paused")
    assert scene.outcomes(job) == ["pending"] * (0 if state == "queued" else 3)


@pytest.mark.parametrize("state", FINAL_JOB_STATES)
def test_there_is_nothing_to_pause_of_a_job_that_is_over(scene, state):
    job = in_state(scene, state)
    with pytest.raises(JobOver, match=f"job {job.id} is {state}: there is nothing to pause"):
        scene.store.pause_job(job.id)


def test_a_stale_search_cannot_pause_its_job(scene):
    job = scene.searched(0)
    scene.store.begin_search(job.id)
    with pytest.raises(StaleSearch):
        scene.store.pause_job(job.id, "interrupted", epoch=1)
    assert scene.store.job(job.id).state == "running"


def test_pausing_twice_keeps_the_first_moment_and_is_one_event(scene):
    job = scene.searched(0)
    first = scene.store.pause_job(job.id)
    assert scene.store.pause_job(job.id, "again") == first
    assert [json.loads(event.data)["state"] for event in scene.store.events(job.id)][-2:] == [
        "running",
        "paused",
    ]


@pytest.mark.parametrize(
    ("state", "expected"), [("queued", "queued"), ("waiting", "waiting"), ("running", "running")]
)
def test_resuming_a_job_that_is_under_way_changes_nothing(scene, state, expected):
    job = in_state(scene, state)
    assert scene.store.resume_job(job.id) == job


@pytest.mark.parametrize("state", ["paused", "cancelled", "failed"])
def test_a_job_that_stands_still_goes_on_with_all_its_trials_in_the_queue(scene, state):
    job = in_state(scene, state)
    resumed = scene.store.resume_job(job.id)
    assert (resumed.state, resumed.reason, resumed.finished_at, resumed.paused_at) == (
        "running",
        "",
        None,
        None,
    )
    lease = scene.claim(scene.worker())
    assert [item.number for item in lease.items] == [0, 1, 2]


def test_a_job_that_was_paused_before_its_first_search_is_queued_again(scene):
    job = scene.job()
    scene.store.pause_job(job.id)
    assert scene.store.resume_job(job.id).state == "queued"


@pytest.mark.parametrize("state", ["completed", "exhausted"])
def test_resuming_a_finished_job_says_that_it_is_already_complete(scene, state):
    job = in_state(scene, state)
    with pytest.raises(AlreadyComplete) as caught:
        scene.store.resume_job(job.id)
    assert str(caught.value) == (
        f"job {job.id} is already complete (it is {state}): extend its budget to search on"
    )
    assert scene.store.job(job.id) == job


@pytest.mark.parametrize("state", UNFINISHED)
def test_cancel_ends_a_job_in_every_state(scene, state):
    job = in_state(scene, state)
    assert scene.store.cancel_job(job.id).state == "cancelled"
    assert scene.outcomes(job) == ["cancelled"] * (0 if state == "queued" else 3)


def test_nothing_of_a_paused_job_is_leased(scene):
    paused, other = scene.searched(2, tag="a"), scene.searched(2, tag="b")
    scene.store.pause_job(paused.id)
    assert {item.job for item in scene.claim(scene.worker()).items} == {other.id}


def test_the_trial_that_runs_when_its_job_is_paused_takes_its_result(scene, success):
    job = scene.searched(3)
    lease = scene.claim(scene.worker())
    scene.store.start(lease.id, lease.items[0].trial, 1)
    scene.store.pause_job(job.id)
    state = scene.store.settle(lease.id, [success(lease.items[0])])
    assert state.cancelled == (lease.items[1].trial, lease.items[2].trial)
    assert scene.outcomes(job) == ["ok", "pending", "pending"]


def test_what_a_lease_of_a_paused_job_still_holds_is_queued_again_and_blames_nobody(scene):
    job = scene.searched(2)
    rig = scene.worker()
    scene.claim(rig)
    scene.store.pause_job(job.id)
    assert scene.claims_nothing(rig)
    scene.store.resume_job(job.id)
    assert [(item.number, item.attempt) for item in scene.claim(rig).items] == [(0, 2), (1, 2)]


def test_a_trial_that_runs_while_its_job_is_cancelled_and_resumed_keeps_its_lease(scene, success):
    job = scene.searched(2)
    rig = scene.worker()
    lease = scene.claim(rig)
    scene.store.start(lease.id, lease.items[0].trial, 1)
    scene.store.cancel_job(job.id)
    scene.store.resume_job(job.id)
    assert scene.claims_nothing(scene.worker("other"))
    scene.store.settle(lease.id, [success(lease.items[0])])
    assert scene.outcomes(job) == ["ok", "pending"]
    assert [item.number for item in scene.claim(rig).items] == [1]


def test_results_that_came_before_the_end_are_kept_when_a_job_goes_on(scene, success, failure):
    job = scene.searched(3)
    lease = scene.claim(scene.worker(), max_items=2)
    scene.store.settle(lease.id, [success(lease.items[0]), failure(lease.items[1])])
    before = scene.store.trials(job.id)[:2]
    scene.store.cancel_job(job.id)
    resumed = scene.store.resume_job(job.id)
    assert (scene.store.trials(job.id)[:2], resumed.done) == (before, 2)
    assert scene.outcomes(job) == ["ok", "run_error", "pending"]


def test_a_paused_job_survives_the_end_of_all_processes(scene):
    job = scene.searched(2)
    paused = scene.store.pause_job(job.id)
    with open_store(scene.url) as again:
        assert (again.job(job.id), again.unfinished_jobs()) == (paused, [paused])


def test_a_search_does_not_begin_on_a_paused_job(scene):
    job = scene.searched(0)
    scene.store.pause_job(job.id)
    with pytest.raises(Conflict, match=f"job {job.id} is paused"):
        scene.store.begin_search(job.id)


@pytest.mark.parametrize("stop", ["pause", "cancel"])
def test_the_time_that_a_job_stands_still_is_summed_up(scene, stop):
    job = scene.searched(1)
    lease = scene.claim(scene.worker())
    scene.store.start(lease.id, lease.items[0].trial, 1)
    stood = 0.0
    for _ in range(2):
        still = scene.store.pause_job(job.id) if stop == "pause" else scene.store.cancel_job(job.id)
        time.sleep(0.05)
        before = scene.store.now() - still.paused_at
        job = scene.store.resume_job(job.id)
        assert before <= job.paused_seconds - stood < before + 5
        stood = job.paused_seconds
    assert job.stood_still(scene.store.now()) == stood


def test_a_job_that_was_cancelled_while_it_was_paused_stood_still_all_the_time(scene):
    job = scene.searched(0)
    paused = scene.store.pause_job(job.id)
    time.sleep(0.02)
    assert scene.store.cancel_job(job.id).paused_at == paused.paused_at


def test_a_pause_before_the_first_measurement_costs_and_saves_nothing(scene):
    job = scene.searched(1)
    scene.store.pause_job(job.id)
    time.sleep(0.02)
    assert scene.store.resume_job(job.id).paused_seconds == 0.0


@pytest.mark.parametrize("state", ["completed", "exhausted", "cancelled", "failed"])
def test_a_job_that_is_over_goes_on_with_a_larger_budget(scene, state):
    job = in_state(scene, state)
    extended = scene.store.extend_job(job.id, trials=100)
    assert (extended.state, extended.trials, extended.finished_at) == ("running", 100, None)
    assert scene.outcomes(job) == ["pending"] * 3
    assert json.loads(scene.store.events(job.id)[-2].data) == {
        "trials": 100,
        "seconds": None,
        "target_seconds": None,
        "patience": None,
    }


@pytest.mark.parametrize(("state", "epoch"), [("queued", 0), ("waiting", 2), ("running", 2), ("paused", 2)])
def test_the_search_of_a_job_that_is_extended_is_fenced_off(scene, state, epoch):
    job = in_state(scene, state)
    extended = scene.store.extend_job(job.id, trials=100)
    assert (extended.state, extended.trials, extended.epoch) == (state, 100, epoch)


def test_an_extended_job_cannot_be_finished_by_the_search_of_the_smaller_budget(scene):
    job = scene.searched(0)
    scene.store.extend_job(job.id, trials=100)
    with pytest.raises(StaleSearch):
        scene.store.finish_job(job.id, 1, "completed", "all 64 trials of the budget are done")


def test_the_same_extension_again_has_no_effect(scene):
    job = scene.searched(0)
    first = scene.store.extend_job(job.id, trials=100)
    assert scene.store.extend_job(job.id, trials=100) == first


def test_a_finished_job_is_not_extended_to_what_it_had(scene):
    job = in_state(scene, "completed")
    with pytest.raises(AlreadyComplete):
        scene.store.extend_job(job.id, trials=job.trials)


def test_a_failed_job_with_the_same_budget_is_to_be_resumed(scene):
    job = in_state(scene, "failed")
    with pytest.raises(JobOver, match="is failed and this is the budget that it has: resume it"):
        scene.store.extend_job(job.id, trials=job.trials)


BUDGET = {"seconds": 60.0, "target_seconds": 1e-3, "patience": 16}


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({}, "budget: names nothing that is to be extended"),
        ({"trials": 63}, "trials: must be at least 64, not 63: a job is extended, not cut"),
        ({"seconds": 59}, "seconds: must be at least 60, not 59: a job is extended, not cut"),
        (
            {"target_seconds": 2e-3},
            "target_seconds: must be at most 0.001, not 0.002: a job is extended, not cut",
        ),
        ({"patience": 8}, "patience: must be at least 16, not 8: a job is extended, not cut"),
        ({"trials": 0}, "trials: must be at least 1, not 0"),
        ({"seconds": float("nan")}, "seconds: must be finite, not nan"),
        ({"lift": ("trials",)}, "lift: is 'trials', which is none of seconds, target_seconds, patience"),
        ({"seconds": 90, "lift": ("seconds",)}, "seconds: is given and lifted at once"),
    ],
)
def test_a_budget_that_ends_earlier_is_refused(scene, change, message):
    job = limited(scene)
    with pytest.raises(InvalidValue) as caught:
        scene.store.extend_job(job.id, **change)
    assert (str(caught.value), scene.store.job(job.id)) == (message, job)


def limited(scene):
    new = NewJob("w", "t", "h", 64, None, 0, "random", 600.0, "http", "{}")
    return scene.store.create_job(replace(new, **BUDGET))


def test_a_limit_that_the_job_has_not_cannot_be_added(scene):
    with pytest.raises(
        InvalidValue, match="seconds: is no limit of this job, which can be extended but not cut"
    ):
        scene.store.extend_job(scene.job().id, seconds=10)


def test_limits_can_be_moved_and_lifted(scene):
    job = scene.store.extend_job(limited(scene).id, seconds=120, target_seconds=5e-4, lift=("patience",))
    assert (job.trials, job.seconds, job.target_seconds, job.patience) == (64, 120.0, 5e-4, None)


def test_a_local_job_that_is_extended_waits_for_a_process_to_resume_it(scene):
    job = in_state(scene, "completed", origin="local")
    extended = scene.store.extend_job(job.id, trials=100)
    assert (extended.state, extended.reason, extended.trials) == (
        "paused",
        "extended, and not resumed yet",
        100,
    )
    assert scene.outcomes(job) == ["pending"] * 3


def test_a_local_job_is_not_taken_from_a_process_that_lives(scene):
    own = ProcessIdentity.own()
    job = scene.job(origin="local")
    scene.store.begin_search(job.id, own.text)
    other = ProcessIdentity(own.machine, os.getppid(), 1.0)
    with pytest.raises(
        Conflict, match=f"job {job.id} is being tuned by process {own.pid} on .*: pause it first"
    ):
        scene.store.resume_local(job.id, other.text)
    with pytest.raises(Conflict, match="is being tuned by"):
        scene.store.extend_job(job.id, trials=100)


def test_a_local_job_of_a_process_that_is_gone_is_resumed_at_once(scene, success):
    own = ProcessIdentity.own()
    job = scene.searched(2, origin="local")
    assert scene.store.resume_local(job.id, own.text) == 2
    assert scene.store.resume_local(job.id, own.text) == 3
    with pytest.raises(StaleSearch):
        scene.store.settle_local(job.id, 2, 0, success(scene.store.trials(job.id)[0], attempt=1))


@pytest.mark.parametrize("state", ["paused", "cancelled", "failed"])
def test_a_local_job_that_stands_still_is_resumed_by_the_process_that_will_tune_it(scene, state):
    job = in_state(scene, state, origin="local")
    assert scene.store.resume_local(job.id, ProcessIdentity.own().text) == 2
    resumed = scene.store.job(job.id)
    assert (resumed.state, resumed.process, scene.outcomes(job)) == (
        "running",
        ProcessIdentity.own().text,
        ["pending"] * 3,
    )


def test_a_completed_local_job_is_already_complete(scene):
    job = in_state(scene, "completed", origin="local")
    with pytest.raises(AlreadyComplete):
        scene.store.resume_local(job.id, ProcessIdentity.own().text)


def test_a_job_of_the_service_is_not_resumed_by_a_process_of_its_own(scene):
    with pytest.raises(Conflict, match="is searched by the service: resume it there"):
        scene.store.resume_local(scene.job().id, ProcessIdentity.own().text)


def test_an_event_of_a_stale_search_is_refused(scene):
    job = scene.searched(0)
    scene.store.begin_search(job.id)
    with pytest.raises(StaleSearch):
        scene.store.add_event(job.id, "progress", "{}", epoch=1)
