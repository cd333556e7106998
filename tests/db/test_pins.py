"""Pins, freezes, pages of records and what is near: what people and lookups see of best-known schedules."""

from dataclasses import replace

import pytest

from tilewright.db import Conflict, InvalidValue, NotFound
from tilewright.db.best_records import ChangedKey, ForeignRecord, Pin, SearchState

KEY = ("w", "t", "h")


@pytest.fixture
def job(scene, success):
    """A job whose two trials took 0.5 and 0.25 s."""
    job = scene.searched(2)
    lease = scene.claim(scene.worker())
    scene.store.settle(lease.id, [success(item, 0.5 / 2**n) for n, item in enumerate(lease.items)])
    return job


def test_a_pinned_trial_is_served_whatever_is_faster(scene, job):
    pin = scene.store.pin(*KEY, f"{job.id}.0", "drift", "ann")
    assert pin == Pin(*KEY, f"{job.id}.0", "drift", "ann", pin.at)
    assert (scene.best().trial, scene.best().pin) == (f"{job.id}.0", pin)
    assert scene.best().reason == f"trial {job.id}.0 is pinned by ann: drift"
    assert scene.store.standing(*KEY).trial == f"{job.id}.1"
    assert scene.store.pins() == [pin]


@pytest.mark.parametrize("pinned", [0, None])
def test_a_list_names_a_pin_beside_what_is_best_known(scene, job, pinned):
    (before,) = scene.store.kept().items
    pin = scene.store.pin(*KEY, None if pinned is None else f"{job.id}.{pinned}", "drift", "ann")
    (kept,) = scene.store.kept().items
    assert before.schedule.pin is None
    assert kept == replace(before, schedule=replace(before.schedule, pin=pin))


def test_a_pin_takes_the_place_of_another_and_ends(scene, job):
    for trial in (f"{job.id}.0", None):
        scene.store.pin(*KEY, trial)
    assert (scene.best().kind, scene.best().trace, scene.best().seconds) == ("default", "", 0.0)
    assert [scene.store.unpin(*KEY) for _ in range(2)] == [True, False]
    assert scene.best().trial == f"{job.id}.1"


def test_a_pin_ends_where_its_trial_is_retired(scene, job):
    scene.store.pin(*KEY, f"{job.id}.0")
    scene.store.retire(f"{job.id}.0", "wrong")
    assert (scene.store.pins(), scene.best().trial) == ([], f"{job.id}.1")
    (gone,) = scene.store.retirements(*KEY)
    assert (gone.trial, gone.reason) == (f"{job.id}.0", "wrong")


def test_only_a_trial_of_the_key_that_may_be_served_is_pinned(scene, job, failure):
    with pytest.raises(InvalidValue, match="was measured for another workload, target or hardware"):
        scene.store.pin("w", "t", "h2", f"{job.id}.0")
    scene.add(job, range(2, 3))
    with pytest.raises(InvalidValue, match="may not be served: it was retired, or has no checked time"):
        scene.store.pin(*KEY, f"{job.id}.2")
    for key, trial in ((("x", "t", "h"), None), (KEY, "x")):
        with pytest.raises(NotFound):
            scene.store.pin(*key, trial)


def test_a_freeze_holds_what_was_served_then(scene, job, success):
    scene.store.pin(*KEY, f"{job.id}.0")
    assert scene.store.freeze("a").count == 1
    scene.store.unpin(*KEY)
    assert scene.store.freeze("b", "for the release", "ann").count == 1
    found = [scene.store.best(*KEY, freeze=name).trial for name in ("a", "b")]
    assert found == [f"{job.id}.0", f"{job.id}.1"]
    assert [freeze.name for freeze in scene.store.freezes()] == ["a", "b"]
    assert scene.store.changed_since("a") == [ChangedKey(*KEY, f"{job.id}.0", f"{job.id}.1")]
    assert scene.store.changed_since("b") == []


def test_a_key_whose_default_schedule_is_pinned_since_has_changed(scene, job):
    scene.store.freeze("a")
    scene.store.pin(*KEY, None)
    assert scene.store.changed_since("a") == [ChangedKey(*KEY, f"{job.id}.1", None)]
    scene.store.unpin(*KEY)
    assert scene.store.changed_since("a") == []


def test_new_times_of_the_same_schedule_change_nothing(scene, job):
    scene.store.freeze("a")
    scene.store.crown(job.id, 1, 1, (0.3, 0.2, 0.25))
    assert scene.store.changed_since("a") == []
    scene.store.retire(f"{job.id}.1", "wrong")
    assert scene.store.changed_since("a") == [ChangedKey(*KEY, f"{job.id}.1", f"{job.id}.0")]
    scene.store.retire(f"{job.id}.0", "wrong")
    assert scene.store.changed_since("a") == [ChangedKey(*KEY, f"{job.id}.1", None)]


def test_what_was_retired_is_not_served_from_a_freeze_either(scene, job):
    scene.store.freeze("a")
    scene.store.retire(f"{job.id}.1", "wrong")
    assert scene.store.best(*KEY, freeze="a") is None


def test_a_freeze_has_a_name_of_its_own_and_is_forgotten(scene, job):
    scene.store.freeze("a")
    with pytest.raises(Conflict, match="there is a freeze 'a' already"):
        scene.store.freeze("a")
    assert scene.store.unfreeze("a").count == 1
    for forgotten in (scene.store.unfreeze, scene.store.changed_since, lambda n: scene.store.best(*KEY, n)):
        with pytest.raises(NotFound, match="there is no freeze 'a'"):
            forgotten("a")


def test_rows_that_could_be_pinned_come_fastest_first(scene, job):
    rows = scene.store.rivals(*KEY)
    assert [(row.trial, row.seconds) for row in rows] == [(f"{job.id}.1", 0.25), (f"{job.id}.0", 0.5)]


def foreign(scene, n=0, **changes):
    """A record of another store, for a workload of its own."""
    record = ForeignRecord(
        digest=f"d{n}" * 8,
        line=f'{{"line": {n}}}',
        workload=f"w{n}",
        name="matmul",
        program="{}",
        script="",
        structure="like",
        target="t",
        description='{"kind": "llvm"}',
        hardware="h",
        facts='{"cpu": "zen4"}',
        trial=f"elsewhere.{n}",
        candidate_key=f"f{n}",
        sketch="s",
        trace='{"steps": []}',
        seconds=0.5,
        samples=(0.5, 0.5),
        error=0.5,
        codegen_version="3",
        measured_at=1.0,
        search=SearchState(4, 8, "cancelled"),
    )
    return replace(record, **changes)


def test_a_record_of_another_store_is_best_where_nothing_is_known(scene):
    assert scene.store.import_record(foreign(scene)) == "best"
    best = scene.store.best("w0", "t", "h")
    assert (best.imported, best.confirmed, best.samples, best.search) == (
        True,
        False,
        (0.5, 0.5),
        SearchState(4, 8, "cancelled"),
    )
    assert scene.store.import_record(foreign(scene)) == "known"
    (kept,) = scene.store.kept().items
    assert kept.line == '{"line": 0}'


@pytest.mark.parametrize(("seconds", "became"), [(0.125, "challenger"), (0.75, "slower")])
def test_a_time_of_another_store_replaces_nothing(scene, job, seconds, became):
    assert scene.store.import_record(foreign(scene, workload="w", seconds=seconds)) == became
    assert scene.best().trial == f"{job.id}.1"


def test_a_job_of_an_imported_record_is_over(scene):
    scene.store.import_record(foreign(scene))
    (job,) = scene.store.jobs().items
    assert (job.origin, job.state, scene.store.unfinished_jobs()) == ("imported", "cancelled", [])
    for act in (scene.store.resume_job, lambda j: scene.store.extend_job(j, trials=99)):
        with pytest.raises(Conflict, match="is a record of another store"):
            act(job.id)


def test_all_records_come_in_pages_in_the_order_of_their_keys(scene, job):
    for n in (2, 0, 1):
        scene.store.import_record(foreign(scene, n))
    found, after = [], None
    while True:
        page = scene.store.kept(after, 3)
        found += [one.schedule.workload for one in page.items]
        if (after := page.next) is None:
            break
    assert found == ["w", "w0", "w1", "w2"]
    with pytest.raises(InvalidValue, match="after: is none that a page gave"):
        scene.store.kept("nonsense")


def test_what_is_near_is_of_the_workload_or_of_its_structure(scene, job):
    scene.store.import_record(foreign(scene, 0, workload="w", hardware="h2", seconds=0.1))
    scene.store.import_record(foreign(scene, 1))
    scene.store.import_record(foreign(scene, 2, structure="other"))
    found = [(one.schedule.workload, one.schedule.hardware) for one in scene.store.nearby("w", "like")]
    assert found == [("w", "h2"), ("w", "h"), ("w1", "h")]
    assert len(scene.store.nearby("w", "like", limit=1)) == 2


def test_a_report_of_a_build_retires_by_name(scene, job):
    assert scene.store.report(f"{job.id}.1", "does not apply") == "retired"
    assert scene.best().trial == f"{job.id}.0"
    assert scene.store.report("x", "does not apply") == "kept: there is no trial 'x'"
