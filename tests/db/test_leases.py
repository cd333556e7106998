import time

import pytest

from tilewright.db import Conflict, InvalidValue, LeaseLost, NotFound, Superseded
from tilewright.db.fleet_records import LeaseItem, LeaseState


def test_a_leased_trial_carries_all_that_a_worker_needs(scene):
    job = scene.searched(1)
    lease = scene.claim(scene.worker(), ttl=30.0)
    assert (lease.ttl, lease.items) == (
        30.0,
        (
            LeaseItem(
                trial=f"{job.id}.0",
                attempt=1,
                job=job.id,
                number=0,
                workload="w",
                program='{"program": 1}',
                target="t",
                description='{"kind": "llvm"}',
                trace='{"candidate": "c0"}',
                input_seed=7,
                best_seconds=None,
            ),
        ),
    )


def test_a_leased_trial_knows_the_best_of_its_job_so_far(scene, success):
    scene.searched(3)
    rig = scene.worker()
    lease = scene.claim(rig, max_items=2)
    scene.store.settle(lease.id, [success(lease.items[0], 2.0), success(lease.items[1], 1.0, censored=True)])
    assert scene.claim(rig).items[0].best_seconds == 2.0


def test_a_lease_is_of_one_job_the_oldest_of_those_served_alike_and_the_lowest_numbers_come_first(scene):
    first, second = scene.searched(4, tag="a"), scene.searched(4, tag="b")
    leases = [scene.claim(scene.worker(name), max_items=3) for name in ("one", "two")]
    assert [[item.trial for item in lease.items] for lease in leases] == [
        [f"{job.id}.{n}" for n in range(3)] for job in (first, second)
    ]


def test_two_workers_never_hold_the_same_trial(scene):
    scene.searched(4)
    one, two = scene.claim(scene.worker("one"), max_items=3), scene.claim(scene.worker("two"), max_items=3)
    assert [[item.number for item in lease.items] for lease in (one, two)] == [[0, 1, 2], [3]]


def test_a_lease_has_at_most_64_items(scene):
    scene.searched(70)
    assert len(scene.claim(scene.worker(), max_items=1000).items) == 64


@pytest.mark.parametrize("state", ["paused", "quarantined", "draining"])
def test_a_worker_that_is_not_online_gets_no_work(scene, state):
    scene.searched(1)
    rig = scene.worker()
    scene.store.set_worker_state(rig.id, state, "maintenance")
    assert scene.claims_nothing(rig)


def test_trials_of_other_hardware_are_not_leased(scene):
    scene.searched(1, hardware="h2")
    assert scene.claims_nothing(scene.worker(hardware="h"))


def test_trials_of_local_jobs_are_not_leased(scene):
    scene.searched(1, origin="local")
    assert scene.claims_nothing(scene.worker())


def test_trials_of_a_job_that_is_over_are_not_leased(scene):
    scene.store.cancel_job(scene.searched(1).id)
    assert scene.claims_nothing(scene.worker())


def test_a_job_without_hardware_is_leased_once_it_is_bound(scene):
    job = scene.job(hardware=None)
    scene.store.begin_search(job.id)
    scene.add(job, range(1))
    rig = scene.worker()
    assert scene.claims_nothing(rig)
    scene.store.bind_hardware(job.id, "h")
    assert scene.claim(rig).items[0].job == job.id


def test_a_waiting_job_runs_as_soon_as_its_trials_are_leased(scene):
    job = scene.searched(1)
    scene.store.set_waiting(job.id, "no worker for hardware h")
    scene.claim(scene.worker())
    now = scene.store.job(job.id)
    assert (now.state, now.reason, now.waiting_since) == ("running", "", None)


def test_a_claim_gives_back_what_the_worker_held_before(scene):
    scene.searched(2)
    rig = scene.worker()
    lost_answer = scene.claim(rig)
    again = scene.claim(rig)
    assert [(item.number, item.attempt) for item in again.items] == [(0, 2), (1, 2)]
    with pytest.raises(LeaseLost, match=f"lease {lost_answer.id} was released"):
        scene.store.start(lost_answer.id, lost_answer.items[0].trial, 1)


def test_a_claim_from_an_older_session_is_superseded(scene):
    scene.searched(1)
    old = scene.worker(session="s1")
    scene.worker(session="s2")
    with pytest.raises(Superseded) as caught:
        scene.claim(old)
    assert str(caught.value) == f"a newer session of worker rig ({old.id}) has registered"


def test_a_claim_for_other_hardware_than_registered_is_a_conflict(scene):
    rig = scene.worker(hardware="h")
    with pytest.raises(Conflict, match=f"worker {rig.id} registered with hardware h, not h2"):
        scene.store.claim(rig.id, rig.session, "h2", 8, 30.0)


def test_a_claim_by_nobody_known_is_not_found(store):
    with pytest.raises(NotFound, match="there is no worker 'worker_0'"):
        store.claim("worker_0", "s", "h", 1, 30.0)


@pytest.mark.parametrize(("items", "ttl"), [(0, 30.0), (8, 0.0), (8, float("nan"))])
def test_a_claim_of_nothing_or_for_no_time_is_refused(scene, items, ttl):
    rig = scene.worker()
    with pytest.raises(InvalidValue):
        scene.store.claim(rig.id, rig.session, "h", items, ttl)


def test_a_started_trial_shows_as_started(scene):
    job = scene.searched(2)
    lease = scene.claim(scene.worker())
    scene.store.start(lease.id, lease.items[0].trial, 1)
    assert scene.outcomes(job) == ["started", "pending"]


def test_starting_twice_changes_nothing(scene):
    job = scene.searched(1)
    lease = scene.claim(scene.worker())
    scene.store.start(lease.id, lease.items[0].trial, 1)
    before = scene.store.trials(job.id)
    scene.store.start(lease.id, lease.items[0].trial, 1)
    assert scene.store.trials(job.id) == before


def test_a_trial_that_the_lease_does_not_hold_cannot_be_started(scene):
    scene.searched(1)
    lease = scene.claim(scene.worker())
    with pytest.raises(LeaseLost, match=f"lease {lease.id} never held attempt 1 of trial 'other'"):
        scene.store.start(lease.id, "other", 1)


def test_a_renewed_lease_lasts_longer_and_names_what_nobody_wants(scene):
    first, second = scene.searched(2, tag="a"), scene.searched(1, tag="b")
    lease = scene.claim(scene.worker())
    scene.store.cancel_job(first.id)
    state = scene.store.renew(lease.id, 45.0)
    assert state == LeaseState(cancelled=(f"{first.id}.0", f"{first.id}.1"), drain=False, ttl=45.0)
    assert scene.store.job(second.id).state == "running"


def test_renewing_keeps_a_lease_alive_beyond_its_first_end(scene):
    scene.searched(1)
    rig = scene.worker()
    lease = scene.claim(rig, ttl=1.0)
    scene.store.renew(lease.id, 30.0)
    time.sleep(1.1)
    assert scene.store.sweep() == []


def test_a_worker_that_drains_is_told_with_the_next_renewal(scene):
    scene.searched(1)
    rig = scene.worker()
    lease = scene.claim(rig)
    scene.store.set_worker_state(rig.id, "draining", "leaving")
    assert scene.store.renew(lease.id, 30.0) == LeaseState(cancelled=(), drain=True, ttl=30.0)


def test_an_expired_lease_cannot_be_renewed(scene):
    scene.searched(1)
    lease = scene.lose(scene.worker())
    with pytest.raises(LeaseLost, match=f"lease {lease.id} has expired"):
        scene.store.renew(lease.id, 30.0)


def test_renewing_a_settled_lease_has_no_effect(scene, success):
    scene.searched(1)
    lease = scene.claim(scene.worker())
    scene.store.settle(lease.id, [success(lease.items[0])])
    assert scene.store.renew(lease.id, 30.0) == LeaseState(cancelled=(), drain=False, ttl=0.0)


def test_an_unknown_lease_is_named(store):
    with pytest.raises(NotFound, match="there is no lease 'lease_0'"):
        store.renew("lease_0", 30.0)


def test_a_released_lease_gives_back_all_and_blames_nothing(scene):
    job = scene.searched(2)
    rig = scene.worker()
    for _ in range(4):
        lease = scene.claim(rig)
        scene.store.start(lease.id, lease.items[0].trial, lease.items[0].attempt)
        scene.store.release(lease.id)
    assert scene.outcomes(job) == ["pending", "pending"]
    assert [item.number for item in scene.claim(rig).items] == [0, 1]


def test_releasing_twice_has_no_effect(scene):
    scene.searched(1)
    rig = scene.worker()
    lease = scene.claim(rig)
    scene.store.release(lease.id)
    held = scene.claim(rig)
    scene.store.release(lease.id)
    assert scene.store.worker(rig.id).lease == held.id


def test_what_was_cancelled_while_it_ran_is_cancelled_when_it_is_released(scene):
    job = scene.searched(1)
    lease = scene.claim(scene.worker())
    scene.store.start(lease.id, lease.items[0].trial, 1)
    scene.store.cancel_job(job.id)
    scene.store.release(lease.id)
    assert scene.outcomes(job) == ["cancelled"]


def test_the_clock_of_a_process_decides_nothing(scene, monkeypatch):
    scene.searched(1)
    rig = scene.worker()
    lease = scene.claim(rig)
    for clock in ("time", "monotonic"):
        monkeypatch.setattr(f"time.{clock}", lambda: 4e9)
    assert scene.store.sweep() == []
    assert scene.store.renew(lease.id, 30.0).ttl == 30.0
