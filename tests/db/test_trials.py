from dataclasses import replace

import pytest

from tilewright.db import Conflict, InvalidValue, JobOver, NotFound, SettlementMismatch, StaleSearch
from tilewright.db.records import Trial
from tilewright.db.words import OUTCOMES


def test_a_new_trial_is_pending_and_holds_its_candidate(scene):
    job = scene.searched(1)
    trial = scene.store.trials(job.id)[0]
    assert trial == Trial(
        id=trial.id,
        job=job.id,
        number=0,
        batch=0,
        candidate_key="c0",
        sketch="tiled",
        trace='{"candidate": "c0"}',
        features=b"\x00\x01",
        feature_schema=1,
        input_seed=7,
        outcome="pending",
        attempt=0,
        seconds=None,
        samples=(),
        censored=False,
        error=None,
        failure_kind=None,
        failure_message="",
        failure_detail="{}",
        build_seconds=0.0,
        wall_seconds=0.0,
        codegen_version=None,
        worker=None,
        created_at=trial.created_at,
        started_at=None,
        settled_at=None,
    )


def test_a_trial_is_read_by_its_id(scene):
    trial = scene.store.trials(scene.searched(1).id)[0]
    assert scene.store.trial(trial.id) == trial


def test_an_unknown_trial_is_named(store):
    with pytest.raises(NotFound, match="there is no trial 'x'"):
        store.trial("x")


def test_trials_added_again_are_returned_as_they_stand(scene):
    job = scene.searched(3)
    before = scene.store.trials(job.id)
    assert scene.add(job, range(3)) == before == scene.store.trials(job.id)


def test_a_number_with_another_candidate_is_a_conflict_and_stores_nothing(scene):
    job = scene.searched(1)
    with pytest.raises(Conflict, match=f"trial {job.id}.0 exists with candidate c0"):
        scene.store.add_trials(job.id, 1, [scene.candidate(1), replace(scene.candidate(2), number=0)])
    assert len(scene.store.trials(job.id)) == 1


def test_a_candidate_is_not_measured_twice_in_a_job(scene):
    job = scene.searched(1)
    with pytest.raises(Conflict, match=f"candidate c0 of trial 1 is measured by trial {job.id}.0 already"):
        scene.store.add_trials(job.id, 1, [replace(scene.candidate(0), number=1)])


def test_a_trial_says_what_proposed_it_and_what_the_model_promised(scene):
    job = scene.searched(0)
    new = replace(scene.candidate(0), predicted=0.75, origin="mutation")
    scene.store.add_trials(job.id, 1, [new])
    trial = scene.store.trials(job.id)[0]
    assert (trial.predicted, trial.origin) == (0.75, "mutation")


def test_a_prediction_that_is_no_number_is_refused(scene):
    job = scene.searched(0)
    with pytest.raises(InvalidValue, match="predicted: must be finite, not nan"):
        scene.store.add_trials(job.id, 1, [replace(scene.candidate(0), predicted=float("nan"))])


def test_a_trace_that_is_no_json_is_refused(scene):
    job = scene.searched(0)
    with pytest.raises(InvalidValue, match="trace: is not JSON"):
        scene.store.add_trials(job.id, 1, [replace(scene.candidate(0), trace="for i in …")])


def test_trials_are_paged_by_number(scene):
    job = scene.searched(5)
    assert [trial.number for trial in scene.store.trials(job.id, after_number=1, limit=2)] == [2, 3]


def test_counts_name_every_outcome(scene, success, failure):
    job = scene.searched(6)
    lease = scene.claim(scene.worker(), max_items=5)
    first, second, third, fourth, _ = lease.items
    settled = [success(first), success(second, censored=True), failure(third, "run_timeout")]
    scene.store.settle(lease.id, settled)
    scene.store.start(lease.id, fourth.trial, 1)
    expected = dict.fromkeys(OUTCOMES, 0) | {
        "ok": 1,
        "censored": 1,
        "run_timeout": 1,
        "started": 1,
        "pending": 2,
    }
    assert scene.store.trial_counts(job.id) == expected | {"settled": 3}
    assert scene.store.job(job.id).done == 3


def test_the_top_trials_are_the_fastest_checked_ones(scene, success, failure):
    job = scene.searched(5)
    lease = scene.claim(scene.worker())
    a, b, c, d, e = lease.items
    results = [success(a, 3.0), success(b, 1.0, censored=True), success(c, 2.0), failure(d), success(e, 2.0)]
    scene.store.settle(lease.id, results)
    assert [trial.number for trial in scene.store.top_trials(job.id, limit=2)] == [2, 4]


def test_a_local_result_is_stored_with_its_trial(scene, success):
    job = scene.searched(2, origin="local")
    pending = scene.store.trials(job.id)[1]
    settled = scene.store.settle_local(job.id, 1, 1, success(pending, 0.25, attempt=1, codegen_version="g1"))
    assert settled == replace(
        pending,
        outcome="ok",
        attempt=1,
        seconds=0.25,
        samples=(0.25, 0.25),
        error=0.25,
        wall_seconds=0.1,
        codegen_version="g1",
        started_at=settled.started_at,
        settled_at=settled.settled_at,
    )
    assert scene.store.job(job.id).done == 1


def test_a_local_result_may_be_repeated_but_not_changed(scene, success):
    job = scene.searched(1, origin="local")
    trial = scene.store.trials(job.id)[0]
    result = success(trial, attempt=1)
    settled = scene.store.settle_local(job.id, 1, 0, result)
    assert scene.store.settle_local(job.id, 1, 0, result) == settled
    with pytest.raises(SettlementMismatch) as caught:
        scene.store.settle_local(job.id, 1, 0, replace(result, seconds=0.125))
    assert str(caught.value) == f"attempt 1 of trial {trial.id} was already settled with another result"


def test_a_local_result_of_a_stale_search_is_refused(scene, success):
    job = scene.searched(1, origin="local")
    scene.store.begin_search(job.id)
    with pytest.raises(StaleSearch):
        scene.store.settle_local(job.id, 1, 0, success(scene.store.trials(job.id)[0], attempt=1))


def test_a_local_result_of_a_finished_job_is_refused(scene, success):
    job = scene.searched(1, origin="local")
    scene.store.cancel_job(job.id)
    with pytest.raises(JobOver):
        scene.store.settle_local(job.id, 1, 0, success(scene.store.trials(job.id)[0], attempt=1))


def test_a_result_for_a_job_of_the_service_needs_a_lease(scene, success):
    job = scene.searched(1)
    with pytest.raises(InvalidValue, match="is measured by workers, through leases"):
        scene.store.settle_local(job.id, 1, 0, success(scene.store.trials(job.id)[0], attempt=1))


def test_a_local_result_can_become_best_known(scene, success):
    job = scene.searched(1, origin="local")
    scene.store.settle_local(
        job.id, 1, 0, success(scene.store.trials(job.id)[0], attempt=1, codegen_version="g1")
    )
    assert (scene.best().trial, scene.best().worker) == (f"{job.id}.0", None)
