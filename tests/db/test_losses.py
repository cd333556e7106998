import subprocess
import sys
import time
from dataclasses import replace

import psutil
import pytest

from tilewright.db.fleet_records import LostLease
from tilewright.db.process_identity import ProcessIdentity


def lost(lease, **fates):
    names = ("blamed", "poisoned", "returned", "cancelled")
    ids = {name: tuple(lease.items[i].trial for i in fates.get(name, ())) for name in names}
    return LostLease(lease=lease.id, worker=lease.worker, **ids)


def test_a_live_lease_is_not_swept(scene):
    scene.searched(1)
    scene.claim(scene.worker())
    assert scene.store.sweep() == []


def test_only_the_trial_that_ran_is_blamed_for_a_lost_worker(scene):
    job = scene.searched(3)
    lease = scene.lose(scene.worker(), started=1)
    assert scene.store.sweep() == [lost(lease, blamed=[1], returned=[0, 2])]
    assert scene.outcomes(job) == ["pending", "pending", "pending"]


def test_a_trial_that_the_worker_survived_is_not_blamed(scene):
    scene.searched(2)
    rig = scene.worker()
    lease = scene.claim(rig)
    for item in lease.items:
        scene.store.start(lease.id, item.trial, item.attempt)
    scene.store.renew(lease.id, 0.1)
    time.sleep(0.15)
    assert scene.store.sweep() == [lost(lease, blamed=[1], returned=[0])]


def test_a_sweep_finds_nothing_the_second_time(scene):
    scene.searched(1)
    scene.lose(scene.worker())
    scene.store.sweep()
    assert scene.store.sweep() == []


def test_a_claim_sweeps_by_itself(scene):
    scene.searched(1)
    scene.lose(scene.worker("dead"))
    assert [item.attempt for item in scene.claim(scene.worker("alive")).items] == [2]


def test_a_candidate_that_lost_two_workers_crashes_the_device(scene):
    job = scene.searched(2)
    scene.lose(scene.worker("one"), started=0)
    scene.store.sweep()
    second = scene.lose(scene.worker("two"), started=0)
    assert scene.store.sweep() == [lost(second, poisoned=[0], returned=[1])]
    trial = scene.store.trials(job.id)[0]
    assert (trial.outcome, trial.failure_kind) == ("crashes_device", "crashes_device")
    assert (
        trial.failure_message == "2 workers on this kind of hardware were lost while they ran this candidate"
    )
    assert scene.store.job(job.id).done == 1


@pytest.fixture
def poisoned(scene):
    """Candidate c0 has crashed hardware h in an earlier job."""
    scene.searched(1)
    for name in ("one", "two"):
        scene.lose(scene.worker(name), started=0)
        scene.store.sweep()
    return scene


def test_a_crashing_candidate_is_not_run_by_a_later_job(poisoned):
    later = poisoned.searched(2)
    assert [item.number for item in poisoned.claim(poisoned.worker()).items] == [1]
    assert poisoned.outcomes(later) == ["crashes_device", "pending"]


def test_a_crashing_candidate_still_runs_on_other_hardware(poisoned):
    poisoned.searched(1, hardware="h2")
    assert len(poisoned.claim(poisoned.worker("board", hardware="h2")).items) == 1


def test_a_cleared_candidate_runs_again(poisoned):
    poisoned.store.clear_crashes("c0", "h")
    poisoned.searched(1)
    assert len(poisoned.claim(poisoned.worker()).items) == 1


def test_a_late_result_takes_the_blame_back(scene, success):
    job = scene.searched(1)
    lease = scene.lose(scene.worker("slow"), started=0)
    scene.store.sweep()
    scene.store.settle(lease.id, [success(lease.items[0])])
    other = scene.searched(1)
    once_more = scene.lose(scene.worker("other"), started=0)
    assert scene.store.sweep() == [lost(once_more, blamed=[0])]
    assert (scene.outcomes(job), scene.outcomes(other)) == (["ok"], ["pending"])


def test_a_late_result_replaces_the_verdict_of_the_sweep(scene, success):
    job = scene.searched(1)
    scene.lose(scene.worker("one"), started=0)
    scene.store.sweep()
    late = scene.lose(scene.worker("two"), started=0)
    scene.store.sweep()
    scene.store.settle(late.id, [success(late.items[0])])
    assert (scene.outcomes(job), scene.store.job(job.id).done) == (["ok"], 1)


def test_a_newer_session_ends_the_lease_of_the_older_at_once(scene):
    job = scene.searched(2)
    old = scene.claim(scene.worker(session="s1"))
    scene.store.start(old.id, old.items[0].trial, 1)
    rig = scene.worker(session="s2")
    assert scene.outcomes(job) == ["pending", "pending"]
    again = scene.claim(rig)
    scene.store.start(again.id, again.items[0].trial, 2)
    scene.worker(session="s3")
    assert scene.outcomes(job) == ["crashes_device", "pending"]


def test_a_lost_trial_of_a_cancelled_job_is_cancelled(scene):
    job = scene.searched(1)
    lease = scene.lose(scene.worker(), started=0)
    scene.store.cancel_job(job.id)
    assert scene.store.sweep() == [lost(lease, cancelled=[0])]
    assert scene.outcomes(job) == ["cancelled"]


def test_a_silent_worker_is_offline_until_it_is_heard_of(scene):
    rig = scene.worker()
    time.sleep(0.02)
    scene.store.sweep(worker_silence=0.01)
    assert scene.store.worker(rig.id).state == "offline"
    scene.claims_nothing(rig)
    assert scene.store.worker(rig.id).state == "online"


def test_a_local_job_of_a_process_that_nobody_knows_is_paused_once_it_is_silent(scene):
    dead, service_job = scene.searched(1, origin="local", tag="a"), scene.searched(1, tag="b")
    time.sleep(0.02)
    scene.store.sweep(local_silence=0.01)
    ended = scene.store.job(dead.id)
    assert (ended.state, ended.reason) == (
        "paused",
        "the process that was tuning has ended, or has written nothing for too long: resume the job to go on",
    )
    assert (scene.outcomes(dead), scene.store.job(service_job.id).state) == (["pending"], "running")


def test_a_local_job_of_a_killed_process_is_paused_by_the_next_sweep(scene):
    with subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE) as child:
        started = psutil.Process(child.pid).create_time()
        identity = replace(ProcessIdentity.own(), pid=child.pid, started=started)
        job = scene.job(origin="local")
        scene.store.begin_search(job.id, identity.text)
        scene.store.sweep()
        before = scene.store.job(job.id).state
        child.kill()
    scene.store.sweep()
    after = scene.store.job(job.id)
    assert (before, after.state, after.reason) == (
        "running",
        "paused",
        f"the {identity} that was tuning has ended: resume the job to go on",
    )


def test_a_local_job_stands_still_since_its_killed_process_wrote_last(scene):
    gone = replace(ProcessIdentity.own(), started=1.0)
    job = scene.job(origin="local")
    scene.store.begin_search(job.id, gone.text)
    written = scene.store.events(job.id)[-1].at
    time.sleep(0.05)
    scene.store.sweep()
    assert scene.store.job(job.id).paused_at == pytest.approx(written, abs=0.02)


def test_a_local_job_whose_process_lives_is_left_alone_however_long_it_writes_nothing(scene):
    job = scene.job(origin="local")
    scene.store.begin_search(job.id, ProcessIdentity.own().text)
    time.sleep(0.02)
    scene.store.sweep(local_silence=0.01)
    assert scene.store.job(job.id).state == "running"


def test_a_process_of_another_machine_is_not_known_to_be_gone():
    assert replace(ProcessIdentity.own(), machine="elsewhere 1 1").gone is None
