"""Trials that are timed once more in the final rounds."""

import pytest

from tilewright.db.errors import InvalidValue, JobOver, StaleSearch
from tilewright.db.records import Retiming


def ids(job, *numbers):
    return [f"{job.id}.{number}" for number in numbers]


@pytest.fixture
def measured(scene, success):
    """A job whose three trials took 3, 2 and 1 s, and its worker."""
    job, rig = scene.searched(3), scene.worker()
    lease = scene.claim(rig)
    scene.store.settle(lease.id, [success(item, 3.0 - n) for n, item in enumerate(lease.items)])
    return job, rig


def test_trials_are_handed_out_again_in_the_order_asked_for_with_nothing_to_beat(scene, measured):
    job, rig = measured
    scene.store.time_again(job.id, 1, 0, ids(job, 2, 0))
    items = scene.claim(rig).items
    assert [(i.number, i.attempt, i.best_seconds) for i in items] == [(2, 2, None), (0, 2, None)]
    assert scene.claims_nothing(scene.worker("other"))


def test_they_come_before_other_work_and_alone(scene, measured):
    job, rig = measured
    scene.add(job, range(3, 6))
    scene.store.time_again(job.id, 1, 0, ids(job, 1))
    lease = scene.claim(rig)
    assert [item.number for item in lease.items] == [1]
    scene.store.release(lease.id)
    assert [item.number for item in scene.claim(rig).items] == [1]


def test_a_result_belongs_to_the_round_and_changes_nothing_of_the_trial(scene, measured, success, failure):
    job, rig = measured
    before, best = scene.store.trials(job.id), scene.best()
    scene.store.time_again(job.id, 1, 7, ids(job, 2, 0))
    lease = scene.claim(rig)
    fast = success(lease.items[0], 0.125)
    scene.store.settle(lease.id, [fast, failure(lease.items[1], "wrong_output")])
    scene.store.settle(lease.id, [fast])
    assert scene.store.retimings(job.id) == [
        Retiming(f"{job.id}.2", 2, 7, "ok", 0.125, (0.125, 0.125), rig.id),
        Retiming(f"{job.id}.0", 0, 7, "wrong_output", None, (), rig.id),
    ]
    after = scene.store.trials(job.id)
    assert [(t.seconds, t.samples, t.outcome) for t in after] == [
        (t.seconds, t.samples, t.outcome) for t in before
    ]
    assert (scene.best(), scene.store.job(job.id).done) == (best, 3)
    assert scene.claims_nothing(rig)


def test_a_round_may_be_asked_for_twice_and_is_measured_once(scene, measured, success):
    job, rig = measured
    scene.store.time_again(job.id, 1, 0, ids(job, 2))
    lease = scene.claim(rig)
    scene.store.settle(lease.id, [success(lease.items[0])])
    scene.store.time_again(job.id, 1, 0, ids(job, 2))
    assert scene.claims_nothing(rig)


def test_of_two_rounds_of_a_trial_only_the_newer_is_still_wanted(scene, measured):
    job, rig = measured
    scene.store.time_again(job.id, 1, 0, ids(job, 2))
    scene.store.time_again(job.id, 1, 1, ids(job, 2))
    assert [(r.turn, r.outcome) for r in scene.store.retimings(job.id)] == [(0, "cancelled"), (1, "pending")]
    assert len(scene.claim(rig).items) == 1


def test_a_lost_worker_gives_the_round_back_and_keeps_the_trial(scene, measured):
    job, _ = measured
    scene.store.time_again(job.id, 1, 0, ids(job, 2))
    scene.lose(scene.worker("dead"), started=0)
    scene.store.sweep()
    assert scene.store.trials(job.id)[2].outcome == "ok"
    assert [item.attempt for item in scene.claim(scene.worker("alive")).items] == [3]


def test_a_candidate_that_crashes_workers_in_the_final_rounds_drops_out_of_them_alone(scene, measured):
    job, rig = measured
    scene.store.time_again(job.id, 1, 0, ids(job, 2))
    for name in ("one", "two"):
        scene.lose(scene.worker(name), started=0)
        scene.store.sweep()
    assert [r.outcome for r in scene.store.retimings(job.id)] == ["crashes_device"]
    assert scene.store.trials(job.id)[2].outcome == "ok"
    scene.store.time_again(job.id, 1, 1, ids(job, 2))
    assert scene.claims_nothing(rig)
    assert [r.outcome for r in scene.store.retimings(job.id)] == ["crashes_device", "crashes_device"]


def test_nobody_times_anything_once_the_job_has_ended(scene, measured):
    job, rig = measured
    scene.store.time_again(job.id, 1, 0, ids(job, 2))
    scene.store.finish_job(job.id, 1, "completed", "")
    assert scene.claims_nothing(rig)
    with pytest.raises(JobOver):
        scene.store.time_again(job.id, 1, 1, ids(job, 2))


def test_only_a_trial_with_a_time_of_its_own_is_timed_again(scene, measured):
    job, _ = measured
    scene.add(job, range(3, 4))
    with pytest.raises(InvalidValue, match=r"^trials: trial job_\w+\.3 has no time of its own$"):
        scene.store.time_again(job.id, 1, 0, ids(job, 2, 3))
    assert scene.store.retimings(job.id) == []
    with pytest.raises(StaleSearch):
        scene.store.time_again(job.id, 0, 0, ids(job, 2))


def test_a_trial_says_how_it_was_sampled(scene, success):
    job, rig = scene.searched(1), scene.worker()
    lease = scene.claim(rig)
    scene.store.settle(lease.id, [success(lease.items[0], calls=12, cache="hot")])
    (trial,) = scene.store.trials(job.id)
    assert (trial.samples, trial.calls, trial.cache) == ((0.5, 0.5), 12, "hot")


@pytest.mark.parametrize(("field", "value"), [("calls", 0), ("cache", "cold")])
def test_a_trial_sampled_in_another_way_is_refused(scene, success, field, value):
    scene.searched(1)
    lease = scene.claim(scene.worker())
    with pytest.raises(InvalidValue, match=field):
        scene.store.settle(lease.id, [success(lease.items[0], **{field: value})])


def test_the_winner_of_the_final_rounds_is_known_however_lucky_another_reading_was(scene, measured):
    job, _ = measured
    scene.store.crown(job.id, 1, 1, [2.5, 2.0, 3.0])
    assert scene.summary(job).best.number == 2  # as long as the job is searched
    scene.store.finish_job(job.id, None, "completed", "")
    winner = scene.summary(job).best
    assert (winner.number, winner.seconds, winner.first_seconds) == (1, 2.5, 2.0)
    assert scene.store.top_trials(job.id)[0].number == 2


def test_a_round_is_timed_by_the_device_that_it_names(scene, measured):
    job, rig = measured
    other = scene.worker("other")
    scene.store.time_again(job.id, 1, 0, ids(job, 2, 0), device=other.id)
    assert scene.claims_nothing(rig)
    assert [item.number for item in scene.claim(other).items] == [2, 0]


def test_the_best_of_an_earlier_job_is_timed_in_the_rounds_of_another(scene, measured, success):
    earlier, rig = measured
    scene.store.finish_job(earlier.id, 1, "completed", "")
    job = scene.searched(1, tag="d")
    scene.store.settle((lease := scene.claim(rig)).id, [success(lease.items[0], 0.5)])
    for turn in (0, 1):
        scene.store.time_again(job.id, 1, turn, [*ids(job, 0), *ids(earlier, 2)][:: 1 - 2 * turn])
        lease = scene.claim(rig)
        assert [(item.job, item.trial) for item in lease.items] == [
            (job.id, trial) for trial in [*ids(job, 0), *ids(earlier, 2)][:: 1 - 2 * turn]
        ]
        for item in lease.items:
            assert scene.store.start(lease.id, item.trial, item.attempt).cancelled == ()
            scene.store.settle(lease.id, [success(item, 0.25)])
    found = [(r.trial, r.turn, r.outcome) for r in scene.store.retimings(job.id)]
    assert found == [
        (f"{job.id}.0", 0, "ok"),
        (f"{earlier.id}.2", 0, "ok"),
        (f"{earlier.id}.2", 1, "ok"),
        (f"{job.id}.0", 1, "ok"),
    ]
    assert scene.store.retimings(earlier.id) == []


def test_nobody_times_the_best_of_an_earlier_job_for_one_that_is_over(scene, measured, success):
    earlier, rig = measured
    scene.store.finish_job(earlier.id, 1, "completed", "")
    job = scene.searched(0)
    scene.store.time_again(job.id, 1, 0, ids(earlier, 2))
    lease = scene.claim(rig)
    scene.store.cancel_job(job.id)
    assert scene.store.start(lease.id, lease.items[0].trial, lease.items[0].attempt).cancelled == (
        f"{earlier.id}.2",
    )
    scene.store.release(lease.id)
    assert scene.claims_nothing(rig)


def test_of_two_jobs_that_want_one_trial_the_later_has_its_round_and_neither_stands_still(
    scene, measured, success
):
    earlier, rig = measured
    scene.store.finish_job(earlier.id, 1, "completed", "")
    (stands,) = ids(earlier, 2)
    first, second = scene.searched(0, tag="d"), scene.searched(0, tag="e")
    for job in (first, second):
        scene.store.time_again(job.id, 1, 0, [stands])
    assert scene.store.retimings(first.id) == []
    lease = scene.claim(rig)
    assert [(item.job, item.trial) for item in lease.items] == [(second.id, stands)]
    scene.store.settle(lease.id, [success(lease.items[0], 0.25)])
    assert [(r.trial, r.outcome) for r in scene.store.retimings(second.id)] == [(stands, "ok")]
    scene.store.time_again(first.id, 1, 1, [stands])
    scene.store.time_again(second.id, 1, 2, [stands])
    assert [(r.turn, r.outcome) for r in scene.store.retimings(first.id)] == [(1, "cancelled")]
    for job in (first, second):
        assert scene.store.finish_job(job.id, 1, "completed", "").state == "completed"
    assert scene.claims_nothing(rig)
