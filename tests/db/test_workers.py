import json
import time
from dataclasses import replace

import pytest

from tilewright.db import Conflict, InvalidValue, NotFound, Superseded
from tilewright.db.fleet_records import NewWorker, Worker


def test_a_worker_that_has_registered_is_registering_until_it_asks_for_work(scene):
    rig = scene.worker()
    assert rig == Worker(
        id=rig.id,
        name="rig",
        session="s1",
        hardware="h",
        protocol=1,
        versions='{"tilewright": "0.1.0"}',
        labels="{}",
        codegen_version="g1",
        pool=None,
        state="registering",
        reason="it has not asked for work yet",
        lease=None,
        registered_at=rig.registered_at,
        seen_at=rig.seen_at,
        state_at=rig.registered_at,
    )
    assert scene.store.worker(rig.id) == rig
    assert scene.claims_nothing(rig)
    shown = scene.store.worker(rig.id)
    assert (shown.state, shown.reason, shown.state_at > rig.registered_at) == ("online", "", True)


def test_a_worker_needs_its_hardware_stored(scene):
    with pytest.raises(NotFound, match="there is no hardware 'h3'"):
        scene.worker(hardware="h3")


def test_the_same_session_again_changes_only_when_it_was_seen(scene):
    rig = scene.worker()
    again = scene.worker()
    assert again == replace(rig, seen_at=again.seen_at)


def test_what_the_same_session_says_of_itself_again_is_taken_and_its_lease_kept(scene):
    scene.searched(1)
    lease = scene.claim(scene.worker())
    rig = scene.store.worker(lease.worker)
    said = NewWorker(
        "rig", "s1", "h", 2, '{"tilewright": "9"}', '{"room": "b"}', "g1", None, '{"governor": 1}'
    )
    again = scene.store.register_worker(said)
    expected = replace(
        rig,
        protocol=2,
        versions='{"tilewright": "9"}',
        labels='{"room": "b"}',
        facts='{"governor": 1}',
        seen_at=again.seen_at,
    )
    assert (again, again.state, again.lease) == (expected, "busy", lease.id)


def test_a_session_whose_hardware_changes_is_refused(scene):
    rig = scene.worker(hardware="h")
    with pytest.raises(Conflict) as refused:
        scene.worker(hardware="h2")
    assert str(refused.value) == (
        "worker rig has attached with hardware h, now it says h2: start it anew on other hardware"
    )
    assert scene.store.worker(rig.id) == rig


def test_a_newer_session_keeps_the_id(scene):
    rig = scene.worker(session="s1", hardware="h")
    newer = scene.worker(session="s2", hardware="h2")
    at = newer.registered_at
    assert newer == replace(rig, session="s2", hardware="h2", registered_at=at, seen_at=at, state_at=at)


def test_a_worker_with_a_lease_is_busy(scene):
    scene.searched(1)
    rig = scene.worker()
    lease = scene.claim(rig)
    now = scene.store.worker(rig.id)
    assert (now.state, now.lease) == ("busy", lease.id)


def test_a_paused_worker_stays_paused_over_a_restart(scene):
    rig = scene.worker(session="s1")
    scene.store.set_worker_state(rig.id, "paused", "new fan")
    again = scene.worker(session="s2")
    assert (again.state, again.reason) == ("paused", "new fan")


def test_a_drained_worker_attaches_after_a_restart(scene):
    scene.store.set_worker_state(scene.worker(session="s1").id, "draining", "")
    assert scene.worker(session="s2").state == "registering"


def test_a_retired_worker_is_not_listed_and_cannot_come_back(scene):
    kept, gone = scene.worker("kept"), scene.worker("gone")
    scene.store.set_worker_state(gone.id, "retired", "sold")
    assert scene.store.workers() == [kept]
    with pytest.raises(Conflict, match=r"worker gone is retired \(sold\): attach it under another name"):
        scene.worker("gone", session="s2")


def test_workers_are_listed_by_name(scene):
    for name in ("b", "a"):
        scene.worker(name)
    assert [worker.name for worker in scene.store.workers()] == ["a", "b"]


def test_a_state_that_follows_from_work_cannot_be_set(scene):
    with pytest.raises(InvalidValue, match="state: busy follows from what the worker does and cannot be set"):
        scene.store.set_worker_state(scene.worker().id, "busy", "")


def test_an_unknown_worker_is_named(store):
    with pytest.raises(NotFound, match="there is no worker 'worker_0'"):
        store.set_worker_state("worker_0", "paused", "")


def test_a_worker_that_leaves_is_offline_at_once_and_gives_back_what_it_holds(scene):
    worker = scene.worker()
    scene.searched(2)
    scene.claim(worker)
    left = scene.store.leave(worker.id, worker.session)
    other = scene.worker("other")
    assert (left.state, left.lease, len(scene.claim(other).items)) == ("offline", None, 2)


def test_leaving_may_be_repeated(scene):
    worker = scene.worker()
    assert scene.store.leave(worker.id, "s1") == scene.store.leave(worker.id, "s1")


def test_a_call_that_comes_after_leaving_does_not_bring_the_worker_back(scene):
    worker = scene.worker()
    scene.store.leave(worker.id, "s1")
    with pytest.raises(Superseded):
        scene.claims_nothing(worker)
    assert scene.store.worker(worker.id).state == "offline"


def test_a_worker_that_left_can_attach_again(scene):
    worker = scene.worker()
    scene.store.leave(worker.id, "s1")
    again = scene.worker()
    assert (again.id, again.state, again.session) == (worker.id, "registering", "s1")


def test_an_older_session_cannot_make_its_worker_leave(scene):
    worker = scene.worker()
    scene.worker(session="s2")
    with pytest.raises(Superseded, match=rf"a newer session of worker rig \({worker.id}\) has registered"):
        scene.store.leave(worker.id, "s1")
    assert scene.store.worker(worker.id).state == "registering"


def test_a_paused_worker_that_leaves_stays_paused(scene):
    worker = scene.worker()
    scene.store.set_worker_state(worker.id, "paused", "a fan is broken")
    left = scene.store.leave(worker.id, "s1")
    assert (left.state, left.reason) == ("paused", "a fan is broken")


def test_a_worker_whose_lease_expired_is_offline_without_waiting_for_its_silence(scene):
    worker = scene.worker()
    scene.searched(1)
    scene.lose(worker)
    scene.store.sweep(worker_silence=60.0)
    assert scene.store.worker(worker.id).state == "offline"


def test_a_worker_that_was_heard_of_after_its_lease_expired_is_online(scene):
    worker = scene.worker()
    scene.searched(1)
    lease = scene.claim(worker)
    scene.store.renew(lease.id, 1.0)
    time.sleep(1.05)
    scene.worker()
    scene.store.sweep(worker_silence=60.0)
    assert scene.store.worker(worker.id).state == "online"


def test_a_worker_is_noted_so_often_that_its_lease_does_not_expire_meanwhile(scene):
    worker = scene.worker()
    scene.searched(1)
    lease = scene.claim(worker)
    scene.store.renew(lease.id, 0.5)
    before = scene.store.worker(worker.id).seen_at
    time.sleep(0.3)
    scene.store.renew(lease.id, 0.5)
    assert scene.store.worker(worker.id).seen_at > before


@pytest.mark.parametrize(
    ("name", "said"),
    [
        (" ", "name: begins or ends with a blank, or is nothing else: ' '"),
        ("w1 ", "name: begins or ends with a blank, or is nothing else: 'w1 '"),
        ("\u00a0w1", "name: begins or ends with a blank, or is nothing else: '\\xa0w1'"),
        ("a\nb", "name: has characters that are not printable: 'a\\nb'"),
        ("\u200b", "name: has characters that are not printable: '\\u200b'"),
        ("w\u202e1", "name: has characters that are not printable: 'w\\u202e1'"),
        (
            "worker_0123456789ab",
            "name: has the form of a worker's id: 'worker_0123456789ab' could be taken for another",
        ),
    ],
)
def test_a_name_that_can_be_taken_for_another_is_refused(scene, name, said):
    with pytest.raises(InvalidValue) as refused:
        scene.worker(name)
    assert str(refused.value) == said
    assert scene.store.workers() == []


@pytest.mark.parametrize("name", ["lab 3 \u2014 board 7", "\u6f22\u5b57", "worker_of_mine", "rig-1:cpu0"])
def test_a_name_that_can_be_read_is_taken(scene, name):
    assert scene.worker(name).name == name


@pytest.mark.parametrize("key", ["", "a=b", "k" * 129])
def test_a_label_that_no_job_can_ask_for_is_refused(scene, key):
    with pytest.raises(InvalidValue) as refused:
        scene.worker(labels=json.dumps({key: "x"}))
    shown = f"'{key[:128]}'"
    assert str(refused.value) == (f"labels: have the key {shown}: a key has 1 to 128 characters and no =")
