import re
import time

import pytest

from tilewright.db import Conflict, InvalidValue, LeaseLost, NameRetired
from tilewright.db.errors import UnknownWorker
from tilewright.db.sql import worker_rows

OPS = "token ops"


def state(change):
    return change.worker.state, change.worker.reason


def without_times(reason):
    return re.sub(r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d UTC", "THEN", reason)


def test_a_pause_says_who_paused_why_and_until_when(scene):
    rig = scene.worker()
    paused = scene.store.pause_worker(rig.id, OPS, "new fan", 1800.0).worker
    assert (paused.state, without_times(paused.reason), paused.until - paused.state_at) == (
        "paused",
        "paused for 30 min by token ops: new fan, until THEN",
        pytest.approx(1800.0),
    )


def test_a_pause_without_an_end_lasts_until_it_is_resumed(scene):
    rig = scene.worker()
    assert state(scene.store.pause_worker(rig.id, OPS)) == ("paused", "paused by token ops")
    assert state(scene.store.resume_worker(rig.id, OPS)) == ("online", "")


def test_a_paused_worker_is_shown_online_as_soon_as_its_time_is_over(scene):
    rig = scene.worker()
    scene.store.pause_worker(rig.id, OPS, seconds=0.05)
    time.sleep(0.1)
    (shown,) = scene.store.workers()
    assert (shown.state, shown.reason, shown.until) == ("online", "", None)


def test_a_paused_worker_is_leased_to_as_soon_as_its_time_is_over(scene):
    scene.searched(1)
    rig = scene.worker()
    scene.store.pause_worker(rig.id, OPS, seconds=0.2)
    assert scene.claims_nothing(rig)
    time.sleep(0.25)
    assert len(scene.claim(rig).items) == 1


def test_a_pause_ends_by_the_clock_of_the_database_alone(scene, monkeypatch):
    rig = scene.worker()
    scene.store.pause_worker(rig.id, OPS, seconds=60.0)
    for clock in ("time", "monotonic"):
        monkeypatch.setattr(f"time.{clock}", lambda: 4e9)
    scene.store.sweep()
    assert scene.store.worker(rig.id).state == "paused"


def test_a_pause_of_a_worker_that_has_gone_ends_as_offline(scene):
    rig = scene.worker()
    scene.store.pause_worker(rig.id, OPS, seconds=0.05)
    scene.store.leave(rig.id, rig.session)
    time.sleep(0.1)
    scene.store.sweep()
    assert scene.store.worker(rig.id).state == "offline"


def test_pausing_gives_back_what_the_worker_has_not_started(scene, success):
    job = scene.searched(2)
    rig = scene.worker()
    lease = scene.claim(rig)
    scene.store.start(lease.id, lease.items[0].trial, 1)
    scene.store.pause_worker(rig.id, OPS)
    told = scene.store.settle(lease.id, [success(lease.items[0])])
    assert (told.cancelled, told.drain) == ((lease.items[1].trial,), False)
    assert scene.claims_nothing(rig)
    assert (scene.outcomes(job), len(scene.claim(scene.worker("other")).items)) == (["ok", "pending"], 1)


def test_a_worker_that_drains_becomes_offline_when_its_batch_is_done(scene, success):
    scene.searched(2)
    rig = scene.worker()
    lease = scene.claim(rig, max_items=1)
    assert state(scene.store.drain_worker(rig.id, OPS, "moving")) == (
        "draining",
        "drained by token ops: moving",
    )
    assert scene.store.settle(lease.id, [success(lease.items[0])]).drain
    assert scene.claims_nothing(rig)
    left = scene.store.leave(rig.id, rig.session)
    assert (left.state, left.reason) == ("offline", "drained by token ops: moving")


def test_draining_a_worker_that_is_not_there_makes_it_offline_at_once(scene):
    rig = scene.worker()
    scene.store.pause_worker(rig.id, OPS)
    scene.store.leave(rig.id, rig.session)
    assert scene.store.drain_worker(rig.id, OPS).worker.state == "offline"


VERBS = {
    "pause": lambda store, worker: store.pause_worker(worker, OPS),
    "resume": lambda store, worker: store.resume_worker(worker, OPS),
    "drain": lambda store, worker: store.drain_worker(worker, OPS),
    "quarantine": lambda store, worker: store.quarantine_worker(worker, OPS, "odd times"),
    "release": lambda store, worker: store.release_worker(worker, OPS),
    "remove": lambda store, worker: store.remove_worker(worker, OPS),
}
TABLE = {
    "registering": ("paused", "registering", "draining", "quarantined", "registering", "retired"),
    "online": ("paused", "online", "draining", "quarantined", "online", "retired"),
    "draining": ("paused", "online", "draining", "quarantined", "draining", "retired"),
    "paused": ("paused", "online", "draining", "quarantined", None, "retired"),
    "quarantined": (None, None, None, "quarantined", "online", "retired"),
    "offline": ("paused", "offline", "offline", "quarantined", "offline", "retired"),
    "retired": (None, None, None, None, None, "retired"),
}
CASES = [
    (before, verb, after) for before, row in TABLE.items() for verb, after in zip(VERBS, row, strict=True)
]


@pytest.mark.parametrize(("before", "verb", "after"), CASES)
def test_each_verb_does_what_the_table_says_and_may_be_repeated(scene, before, verb, after):
    rig = scene.worker()
    if before != rig.state:
        scene.store.set_worker_state(rig.id, before, "")
    if after is None:
        with pytest.raises(Conflict):
            VERBS[verb](scene.store, rig.id)
        assert scene.store.worker(rig.id).state == before
        return
    assert VERBS[verb](scene.store, rig.id).worker.state == after
    if after != "paused" or verb != "release":
        assert VERBS[verb](scene.store, rig.id).worker.state == after


def test_a_verb_that_does_not_fit_says_which_one_does(scene):
    rig = scene.worker()
    scene.store.quarantine_worker(rig.id, OPS, "odd times")
    with pytest.raises(Conflict) as caught:
        scene.store.resume_worker(rig.id, OPS)
    assert str(caught.value) == "worker rig is quarantined: release it"


def test_a_worker_is_found_by_name_and_by_id(scene):
    rig = scene.worker()
    assert scene.store.find_worker("rig") == scene.store.find_worker(rig.id) == rig


def test_an_unknown_name_gets_the_known_ones_and_the_closest(scene):
    for name in ("k1", "board-7"):
        scene.worker(name)
    with pytest.raises(UnknownWorker) as caught:
        scene.store.find_worker("K1")
    assert str(caught.value) == "there is no worker 'K1'; did you mean 'k1'? workers: board-7, k1"


def test_a_worker_that_is_named_where_there_is_none(store):
    with pytest.raises(UnknownWorker, match="there is no worker 'rig', nor any other"):
        store.find_worker("rig")


def test_a_removed_worker_loses_its_lease_and_its_name(scene, success):
    scene.searched(1)
    rig = scene.worker()
    lease = scene.claim(rig)
    scene.store.remove_worker(rig.id, OPS, "sold")
    assert len(scene.claim(scene.worker("other")).items) == 1
    with pytest.raises(LeaseLost):
        scene.store.settle(lease.id, [success(lease.items[0])])
    with pytest.raises(NameRetired) as caught:
        scene.worker(session="s2")
    assert str(caught.value) == (
        "worker rig is retired (removed by token ops: sold): attach it under another name"
    )


@pytest.mark.parametrize(
    ("call", "field"),
    [
        (lambda store, rig: store.pause_worker(rig, OPS, seconds=0.0), "seconds"),
        (lambda store, rig: store.pause_worker(rig, OPS, seconds=float("nan")), "seconds"),
        (lambda store, rig: store.pause_worker(rig, OPS, "n" * 5000), "note"),
        (lambda store, rig: store.quarantine_worker(rig, OPS, ""), "note"),
        (lambda store, rig: store.quarantine_worker(rig, OPS, "why", -1.0), "since"),
    ],
)
def test_a_verb_with_a_wrong_value_changes_nothing(scene, call, field):
    rig = scene.worker()
    with pytest.raises(InvalidValue) as caught:
        call(scene.store, rig.id)
    assert (caught.value.field, scene.store.worker(rig.id)) == (field, rig)


def test_an_offline_worker_says_why(scene, monkeypatch):
    rig = scene.worker()
    time.sleep(0.02)
    scene.store.sweep(worker_silence=0.01)
    assert without_times(scene.store.worker(rig.id).reason) == "not heard of since THEN"
    scene.store.leave(rig.id, rig.session)
    scene.worker(session="s2")
    assert scene.store.leave(rig.id, "s2").reason == "it has ended"


def test_a_worker_counts_its_results_and_its_failures(scene, success, failure):
    scene.searched(3)
    rig = scene.worker()
    lease = scene.claim(rig)
    results = [success(lease.items[0]), failure(lease.items[1])]
    for _ in range(2):
        scene.store.settle(lease.id, results)
    now = scene.store.worker(rig.id)
    assert (now.settled, now.failed) == (2, 1)


def test_a_busy_worker_names_the_trial_that_it_runs(scene):
    job = scene.searched(2)
    rig = scene.worker()
    lease = scene.claim(rig)
    scene.store.start(lease.id, lease.items[1].trial, 1)
    assert scene.store.worker(rig.id).trial == f"{job.id}.1"


def test_silence_is_the_same_for_reading_and_for_sweeping():
    assert worker_rows.SILENCE == 60.0
