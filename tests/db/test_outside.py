"""Trials that are measured outside of the fleet."""

from dataclasses import replace

import pytest

from tilewright.db import Conflict, InvalidValue, JobOver, NotFound, SettlementMismatch
from tilewright.db.best_records import Baseline
from tilewright.db.records import Settlement


@pytest.fixture
def job(scene):
    """Of origin `outside`, with four trials that nobody holds."""
    return scene.searched(4, origin="outside")


def numbers(trials):
    return [trial.number for trial in trials]


def told(seconds=0.5, **more):
    return Settlement(seconds=seconds, samples=(seconds,), **more)


def test_trials_are_handed_out_in_order_and_once(scene, job):
    assert numbers(scene.store.hand_out(job.id, "ann", 2)) == [0, 1]
    assert numbers(scene.store.hand_out(job.id, "bob", 3)) == [2, 3]
    assert scene.outcomes(job) == ["started"] * 4


def test_who_asks_again_is_given_what_was_not_told_and_then_more(scene, job):
    scene.store.hand_out(job.id, "ann", 2)
    assert numbers(scene.store.hand_out(job.id, "ann", 1)) == [0]
    scene.store.tell_outside(job.id, 0, told())
    assert numbers(scene.store.hand_out(job.id, "ann", 2)) == [1, 2]


def test_a_result_is_stored_and_counted(scene, job):
    scene.store.hand_out(job.id, "ann")
    trial = scene.store.tell_outside(job.id, 0, told(0.25))
    assert (trial.outcome, trial.seconds, scene.store.job(job.id).done) == ("ok", 0.25, 1)


def test_a_failure_is_a_result(scene, job):
    scene.store.tell_outside(job.id, 1, Settlement(failure_kind="run_error", failure_message="it fell"))
    assert scene.outcomes(job) == ["pending", "run_error", "pending", "pending"]


def test_a_trial_that_was_not_handed_out_takes_a_result(scene, job):
    assert scene.store.tell_outside(job.id, 3, told()).outcome == "ok"
    assert numbers(scene.store.hand_out(job.id, "ann", 9)) == [0, 1, 2]


def test_the_same_result_may_be_told_again_and_another_not(scene, job):
    first = scene.store.tell_outside(job.id, 0, told())
    assert scene.store.tell_outside(job.id, 0, told()) == first
    with pytest.raises(SettlementMismatch):
        scene.store.tell_outside(job.id, 0, told(0.7))
    assert scene.store.job(job.id).done == 1


def test_the_same_result_may_be_told_again_after_the_end_of_the_job(scene, job):
    first = scene.store.tell_outside(job.id, 0, told())
    scene.store.cancel_job(job.id)
    assert scene.store.tell_outside(job.id, 0, told()) == first


def test_a_job_that_is_over_takes_nothing_and_gives_nothing(scene, job):
    scene.store.hand_out(job.id, "ann")
    scene.store.cancel_job(job.id)
    assert scene.outcomes(job) == ["cancelled"] * 4
    with pytest.raises(JobOver):
        scene.store.tell_outside(job.id, 0, told())
    with pytest.raises(JobOver):
        scene.store.hand_out(job.id, "ann")


def test_no_worker_is_given_a_trial_of_it(scene, job):
    assert scene.claims_nothing(scene.worker())


def test_nothing_of_it_expires(scene, job):
    scene.store.hand_out(job.id, "ann", 2)
    scene.store.sweep()
    assert scene.outcomes(job) == ["started", "started", "pending", "pending"]


@pytest.mark.parametrize("origin", ["http", "local"])
def test_a_job_that_is_measured_otherwise_hands_nothing_out(scene, origin):
    other = scene.searched(1, origin=origin)
    with pytest.raises(Conflict, match="is measured by"):
        scene.store.hand_out(other.id, "ann")
    with pytest.raises(Conflict, match="is measured by"):
        scene.store.tell_outside(other.id, 0, told())


def test_an_unknown_trial_is_not_found(scene, job):
    with pytest.raises(NotFound):
        scene.store.tell_outside(job.id, 4, told())


def test_without_a_check_it_never_becomes_best_known(scene, job):
    scene.store.tell_outside(job.id, 0, told(0.1))
    assert scene.best() is None
    scene.store.tell_outside(job.id, 1, told(0.3, error=0.5, codegen_version="g1"))
    assert scene.best().seconds == 0.3


def test_a_paused_job_hands_out_nothing_new(scene, job):
    scene.store.hand_out(job.id, "ann")
    scene.store.pause_job(job.id)
    assert numbers(scene.store.hand_out(job.id, "ann", 3)) == [0]
    scene.store.tell_outside(job.id, 0, told())
    assert scene.store.hand_out(job.id, "ann", 3) == []


@pytest.mark.parametrize("seconds", [5e-324, 1e-320, 1e-16])
def test_a_time_that_no_call_can_take_is_refused(scene, job, seconds):
    scene.store.hand_out(job.id, "ann")
    with pytest.raises(InvalidValue, match="at least 1e-15, not "):
        scene.store.tell_outside(job.id, 0, Settlement(seconds=seconds, samples=(seconds,)))
    assert scene.outcomes(job)[0] == "started"


def default_of(scene, origin, seconds):
    """A job of a default schedule, numbered 0, and another one, timed so."""
    job = scene.job(origin=origin)
    scene.store.begin_search(job.id)
    made = [replace(scene.candidate(n, origin), origin="default" if n == 0 else "") for n in range(2)]
    scene.store.add_trials(job.id, 1, made)
    for number, each in enumerate(seconds):
        result = told(each, error=0.5, codegen_version="g1")
        if origin == "outside":
            scene.store.tell_outside(job.id, number, result)
        else:
            scene.store.settle_local(job.id, 1, number, result)
    return job


def test_a_default_schedule_that_people_timed_takes_the_place_of_none_that_was_measured(scene):
    own = default_of(scene, "local", (1.0, 0.5))
    default_of(scene, "outside", (1e-9, 1e-9))
    assert (scene.best().baseline, scene.best().speedup) == (Baseline(f"{own.id}.0", 1.0), 2.0)


def test_a_default_schedule_that_people_timed_says_nothing_of_what_was_measured(scene):
    default_of(scene, "outside", (9.0, 4.0))
    assert scene.best().speedup == 2.25
    scene.store.retire(scene.best().trial, "does not replay")
    scene.store.retire(scene.best().trial, "does not replay")
    job = scene.searched(1, origin="local", tag="own")
    scene.store.settle_local(job.id, 1, 0, told(0.5, error=0.5, codegen_version="g1"))
    assert (scene.best().job, scene.best().baseline, scene.best().speedup) == (job.id, None, None)


def test_what_is_kept_instead_of_a_result_goes_by_the_digest_of_what_was_told(scene, job):
    wrong = Settlement(failure_kind="run_error", failure_message="too fast")
    first = scene.store.tell_outside(job.id, 0, told(1e-9), wrong)
    assert (first.outcome, first.seconds, first.failure_message) == ("run_error", None, "too fast")
    assert scene.store.tell_outside(job.id, 0, told(1e-9), wrong) == first
    with pytest.raises(SettlementMismatch):
        scene.store.tell_outside(job.id, 0, wrong)
