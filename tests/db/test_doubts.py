"""Results of a worker that is quarantined or removed are no longer best-known."""

import time
from dataclasses import replace

import pytest

from tilewright.db.health_records import NewHealthCheck

OPS = "token ops"


@pytest.fixture
def measured(scene, success):
    """Has a worker measure as many trials as there are seconds."""

    def measure(seconds, worker):
        left = list(seconds)
        while left:  # with fellows, a lease is a part of what waits
            lease = scene.claim(worker, len(left))
            scene.store.settle(lease.id, [success(item, left.pop(0)) for item in lease.items])

    return measure


@pytest.fixture
def pair(scene, measured):
    """Two workers; the bad one found 0.1, the good one 0.3 and 0.4, of one job that has more to measure."""
    scene.searched(6)
    bad, good = scene.worker("bad"), scene.worker("good")
    measured([0.1], bad)
    measured([0.3, 0.4], good)
    return bad, good


def test_a_quarantine_serves_the_next_best_and_keeps_the_evidence(scene, pair):
    bad, _ = pair
    change = scene.store.quarantine_worker(bad.id, OPS, "odd times")
    assert (change.replaced, change.lost, scene.best().seconds) == (1, 0, 0.3)
    doubted = scene.store.trial(scene.best().trial.replace(".1", ".0"))
    assert (doubted.outcome, doubted.seconds, doubted.worker) == ("ok", 0.1, bad.id)


def test_a_best_that_nobody_else_has_measured_is_not_known_any_more(scene, measured):
    scene.searched(1)
    bad = scene.worker("bad")
    measured([0.1], bad)
    change = scene.store.quarantine_worker(bad.id, OPS, "odd times")
    assert (change.replaced, change.lost, scene.best()) == (0, 1, None)


def test_only_results_since_the_given_moment_are_doubted(scene, pair, measured):
    bad, _ = pair
    time.sleep(0.02)
    since = scene.store.now()
    measured([0.05], bad)
    change = scene.store.quarantine_worker(bad.id, OPS, "a fan stopped", since)
    assert (change.replaced, change.lost, scene.best().seconds) == (1, 0, 0.1)


def test_what_a_quarantined_worker_hands_in_later_is_kept_and_not_served(scene, pair, success):
    bad, _ = pair
    lease = scene.claim(bad, 1)
    scene.store.start(lease.id, lease.items[0].trial, 1)
    scene.store.quarantine_worker(bad.id, OPS, "odd times")
    scene.store.settle(lease.id, [success(lease.items[0], 0.01)])
    assert (scene.store.trial(lease.items[0].trial).seconds, scene.best().seconds) == (0.01, 0.3)


def test_a_released_worker_is_believed_from_then_on(scene, pair, measured):
    bad, _ = pair
    scene.store.quarantine_worker(bad.id, OPS, "odd times")
    scene.store.release_worker(bad.id, OPS)
    assert scene.best().seconds == 0.3
    measured([0.2], bad)
    assert scene.best().seconds == 0.2


def test_results_can_be_restored_with_the_release(scene, pair):
    bad, _ = pair
    scene.store.quarantine_worker(bad.id, OPS, "odd times")
    change = scene.store.release_worker(bad.id, OPS, restore_results=True)
    assert (change.replaced, scene.best().seconds, scene.store.doubts()) == (1, 0.1, [])


def test_a_second_quarantine_keeps_the_earlier_moment(scene, pair):
    bad, _ = pair
    scene.store.quarantine_worker(bad.id, OPS, "odd times")
    scene.store.quarantine_worker(bad.id, OPS, "still odd", scene.store.now())
    (doubt,) = scene.store.doubts(bad.id)
    assert (doubt.since, doubt.until, scene.best().seconds) == (bad.registered_at, None, 0.3)


def test_a_worker_may_be_removed_with_or_without_its_results(scene, pair):
    bad, _ = pair
    assert scene.store.remove_worker(bad.id, OPS).replaced == 0
    assert scene.best().seconds == 0.1
    change = scene.store.remove_worker(bad.id, OPS, discard_results=True)
    assert (change.replaced, change.lost, scene.best().seconds) == (1, 0, 0.3)
    again = scene.store.remove_worker(bad.id, OPS, discard_results=True)
    assert (again.replaced, again.lost, scene.best().seconds) == (0, 0, 0.3)


def test_discarding_reaches_back_behind_the_worker_s_last_attachment(scene, pair):
    scene.store.leave(pair[0].id, pair[0].session)
    bad = scene.worker("bad", session="s2")
    scene.store.remove_worker(bad.id, OPS, discard_results=True)
    assert scene.best().seconds == 0.3


def test_times_of_final_rounds_by_a_doubted_worker_are_doubted(scene, success, measured):
    job = scene.searched(2)
    good, bad = scene.worker("good"), scene.worker("bad")
    measured([0.3, 0.4], good)
    scene.store.time_again(job.id, 1, 0, [f"{job.id}.0"])
    again = scene.claim(bad)
    scene.store.settle(again.id, [success(again.items[0], 0.01)])
    scene.store.crown(job.id, 1, 0, [0.01])
    assert scene.best().seconds == 0.01
    scene.store.quarantine_worker(bad.id, OPS, "odd times")
    assert scene.best().seconds == 0.4


def test_a_doubted_time_is_neither_the_best_of_its_job_nor_one_to_beat_nor_learnt_from(scene, pair):
    bad, good = pair
    (job,) = scene.store.unfinished_jobs()
    scene.store.quarantine_worker(bad.id, OPS, "odd times")
    assert [trial.seconds for trial in scene.store.top_trials(job.id, 5)] == [0.3, 0.4]
    assert scene.claim(good).items[0].best_seconds == 0.3
    assert [trial.seconds for trial in scene.store.past_trials("w", "t", "h", "g1")] == [0.3, 0.4]


def test_a_quarantine_reaches_back_to_the_last_healthy_check(scene, pair, measured):
    bad, _ = pair
    scene.store.record_health(bad.id, bad.session, NewHealthCheck("periodic", "healthy"))
    measured([0.05], bad)
    scene.store.quarantine_worker(bad.id, OPS, "a fan stopped")
    assert scene.best().seconds == 0.1


def test_a_default_schedule_that_is_not_believed_sets_no_speedup(scene, success):
    job = scene.job()
    scene.store.begin_search(job.id)
    scene.store.add_trials(job.id, 1, [replace(scene.candidate(0), origin="default"), scene.candidate(1)])
    bad, good = scene.worker("bad"), scene.worker("good")
    for worker, seconds in ((bad, 9.0), (good, 0.5)):
        lease = scene.claim(worker, 1)
        scene.store.settle(lease.id, [success(lease.items[0], seconds)])
    assert scene.best().speedup == 18.0
    scene.store.quarantine_worker(bad.id, OPS, "odd times")
    assert (scene.best().seconds, scene.best().baseline, scene.best().speedup) == (0.5, None, None)
    scene.store.release_worker(bad.id, OPS, restore_results=True)
    assert scene.best().speedup == 18.0
