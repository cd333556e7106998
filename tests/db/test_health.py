import json

import pytest

from tilewright.db import InvalidValue, NotFound, Superseded
from tilewright.db.health_records import NewHealthCheck
from tilewright.db.sql import health
from tilewright.db.sql.health import HEALTHY_AGAIN

WELL = NewHealthCheck("periodic", "healthy")
SICK = NewHealthCheck("periodic", "drifted", "[]", "golden kernel: compute takes 20% more")


def record(scene, worker, check):
    return scene.store.record_health(worker.id, worker.session, check)


def settled(scene, worker, success, count=1):
    """A job of `count` trials that this worker has settled."""
    job = scene.searched(count)
    lease = scene.claim(worker)
    scene.store.settle(lease.id, [success(item, seconds=1.0 + item.number) for item in lease.items])
    return job


def test_a_check_is_kept_with_the_time_of_the_database(scene):
    worker = scene.worker()
    before = scene.store.now()
    record(scene, worker, WELL)
    (check,) = scene.store.health_checks(worker.id)
    assert (check.worker, check.occasion, check.verdict, check.parts, check.reason) == (
        worker.id,
        "periodic",
        "healthy",
        "[]",
        "",
    )
    assert before <= check.at <= scene.store.now()


@pytest.mark.parametrize("verdict", ["healthy", "suspect"])
def test_a_worker_that_is_well_or_merely_suspect_keeps_its_state(scene, verdict):
    assert record(scene, scene.worker(), NewHealthCheck("periodic", verdict)).state == "online"


@pytest.mark.parametrize("verdict", ["failed", "drifted", "dispersed"])
def test_a_sick_worker_is_quarantined_for_that_reason_and_gets_no_lease(scene, verdict):
    worker = scene.worker()
    scene.searched(2)
    shown = record(scene, worker, NewHealthCheck("periodic", verdict, "[]", "it is 20% slower"))
    assert (shown.state, shown.reason.split("; ")[0]) == ("quarantined", "it is 20% slower")
    assert scene.claims_nothing(worker)


def test_what_was_settled_since_the_last_healthy_check_is_not_best_known(scene, success):
    worker = scene.worker()
    job = scene.searched(2)
    lease = scene.claim(worker)
    scene.store.settle(lease.id, [success(lease.items[0], seconds=1.0)])
    record(scene, worker, WELL)
    scene.store.settle(lease.id, [success(lease.items[1], seconds=0.5)])
    assert scene.best().trial == f"{job.id}.1"
    record(scene, worker, NewHealthCheck("periodic", "suspect"))
    record(scene, worker, SICK)
    assert (scene.best().trial, scene.best().seconds) == (f"{job.id}.0", 1.0)


def test_a_worker_that_never_was_healthy_is_not_believed_since_it_attached(scene, success):
    worker = scene.worker()
    settled(scene, worker, success)
    record(scene, worker, SICK)
    assert scene.best() is None


def test_being_well_again_is_noted_and_releases_nobody(scene):
    worker = scene.worker()
    reason = record(scene, worker, SICK).reason
    shown = record(scene, worker, WELL)
    assert (shown.state, shown.reason) == ("quarantined", reason + HEALTHY_AGAIN)
    assert record(scene, worker, WELL).reason == reason + HEALTHY_AGAIN
    assert record(scene, worker, SICK).reason == reason + HEALTHY_AGAIN
    assert record(scene, worker, NewHealthCheck("quarantined", "suspect")).reason == reason
    assert scene.store.release_worker(worker.id, "a test").worker.state == "online"


def test_a_retired_worker_stays_so(scene):
    worker = scene.worker()
    scene.store.remove_worker(worker.id, "a test")
    assert record(scene, worker, SICK).state == "retired"


def test_a_superseded_session_is_told_so_and_stores_nothing(scene):
    worker = scene.worker()
    with pytest.raises(Superseded, match=rf"a newer session of worker rig \({worker.id}\) has registered"):
        scene.store.record_health(worker.id, "s0", SICK)
    assert (scene.store.worker(worker.id).state, scene.store.health_checks(worker.id)) == ("registering", [])


def test_the_health_of_nobody_is_not_found(scene):
    with pytest.raises(NotFound):
        scene.store.health_checks("worker_x")
    with pytest.raises(NotFound):
        scene.store.record_health("worker_x", "s", WELL)


@pytest.mark.parametrize(
    "check",
    [
        NewHealthCheck("sometimes", "healthy"),  # type: ignore[arg-type]
        NewHealthCheck("periodic", "splendid"),  # type: ignore[arg-type]
        NewHealthCheck("periodic", "healthy", "[NaN]"),
        NewHealthCheck("periodic", "healthy", "[]", "x" * 5000),
    ],
)
def test_a_check_that_makes_no_sense_is_refused(scene, check):
    worker = scene.worker()
    with pytest.raises(InvalidValue):
        record(scene, worker, check)
    assert scene.store.health_checks(worker.id) == []


def test_the_latest_checks_of_each_worker_are_kept(scene, monkeypatch):
    monkeypatch.setattr(health, "MAX_HEALTH_CHECKS", 3)
    one, other = scene.worker("a"), scene.worker("b")
    record(scene, other, WELL)
    for number in range(5):
        record(scene, one, NewHealthCheck("periodic", "healthy", json.dumps([number])))
    assert [check.parts for check in scene.store.health_checks(one.id)] == ["[4]", "[3]", "[2]"]
    assert len(scene.store.health_checks(other.id)) == 1


def timed(scene, worker, success, *baselines):
    """A job, one trial for each baseline, settled in that order."""
    job = scene.searched(len(baselines))
    lease = scene.claim(worker)
    for item, seconds in zip(lease.items, baselines, strict=True):
        scene.store.settle(lease.id, [success(item, seconds=2.0, baseline=(seconds, seconds))])
    return job


def test_the_baseline_around_a_trial_is_kept_with_the_ratio_to_it(scene, success):
    job = scene.searched(1)
    lease = scene.claim(scene.worker())
    scene.store.settle(lease.id, [success(lease.items[0], seconds=2.0, baseline=(0.25, 0.75))])
    (trial,) = scene.store.trials(job.id)
    assert (trial.baseline_before, trial.baseline_after, trial.baseline_ratio) == (0.25, 0.75, 4.0)


def test_a_trial_without_a_baseline_has_no_ratio(scene, success):
    job = timed(scene, scene.worker(), lambda item, seconds, baseline: success(item), 1.0)
    (trial,) = scene.store.trials(job.id)
    assert (trial.baseline_before, trial.baseline_ratio, scene.store.baselines(job.id)) == (None, None, [])


def test_the_first_and_the_last_baseline_of_a_worker_in_a_job_are_known(scene, success):
    job = timed(scene, scene.worker(), success, 1.0, 1.05, 0.95, 1.02)
    (baseline,) = scene.store.baselines(job.id)
    assert (baseline.name, baseline.first_seconds, baseline.last_seconds, baseline.readings) == (
        "rig",
        1.0,
        1.02,
        4,
    )
    assert (baseline.drifted, scene.store.last_event(job.id, "drift")) == (False, None)


def test_a_worker_that_becomes_slower_within_a_job_is_told_of_once(scene, success):
    worker = scene.worker()
    job = timed(scene, worker, success, 1.0, 1.0, 1.3, 1.3)
    (baseline,) = scene.store.baselines(job.id)
    told = [json.loads(event.data) for event in scene.store.events(job.id) if event.kind == "drift"]
    assert (baseline.drifted, round(baseline.drift, 6)) == (True, 0.3)
    assert told == [
        {
            "worker": worker.id,
            "name": "rig",
            "first_seconds": 1.0,
            "last_seconds": 1.3,
            "drift": pytest.approx(0.3),
        }
    ]


@pytest.mark.parametrize("baseline", [(1.0,), (1.0, 2.0, 3.0), (1.0, -1.0), (0.0, 1.0)])
def test_a_baseline_that_makes_no_sense_is_refused(scene, success, baseline):
    scene.searched(1)
    lease = scene.claim(scene.worker())
    with pytest.raises(InvalidValue):
        scene.store.settle(lease.id, [success(lease.items[0], baseline=baseline)])
