"""What earlier searches leave to later ones."""

import sqlite3

import pytest

from tilewright.db import InvalidValue, JobOver, NotFound, StaleSearch
from tilewright.db.records import Known, NewJob, PastSearch, Settlement


def settle(scene, job, number, seconds=None, kind=None, codegen="g1"):
    settlement = Settlement(
        seconds=seconds, samples=(seconds,) if seconds else (), error=0.1 if seconds else None,
        failure_kind=kind, codegen_version=codegen,
    )  # fmt: skip
    scene.store.settle_local(job.id, 1, number, settlement)


def tuned(scene, times, tag="c", workload="w", hardware="h"):
    """A local job whose trials took these seconds; None: it failed."""
    new = NewJob(workload, "t", hardware, 64, None, 0, "random", 0.0, "local", "{}")
    job = scene.store.create_job(new)
    scene.store.begin_search(job.id)
    scene.add(job, range(len(times)), tag=tag)
    for number, seconds in enumerate(times):
        settle(scene, job, number, seconds, None if seconds else "run_error")
    return job


def past(scene, **changes):
    key = {"workload": "w", "target": "t", "hardware": "h", "codegen_version": "g1"} | changes
    return [(trial.job, trial.number) for trial in scene.store.past_trials(**key)]


def test_past_trials_are_those_of_one_key_and_version_the_oldest_job_first(scene):
    first, second = tuned(scene, [1.0, None], "a"), tuned(scene, [2.0], "b")
    tuned(scene, [3.0], "c", hardware="h2")
    assert past(scene) == [(first.id, 0), (first.id, 1), (second.id, 0)]
    assert (past(scene, codegen_version="g2"), past(scene, workload="v")) == ([], [])


def test_past_trials_leave_out_what_has_no_result_and_what_infrastructure_lost(scene):
    job = scene.job(origin="local")
    scene.store.begin_search(job.id)
    scene.add(job, range(4))
    settle(scene, job, 0, kind="worker_lost")
    settle(scene, job, 1, kind="cancelled")
    settle(scene, job, 2, kind="wrong_output")
    assert past(scene) == [(job.id, 2)]


def test_what_was_retired_is_no_longer_known(scene):
    job = tuned(scene, [1.0, 2.0])
    scene.store.retire(f"{job.id}.0", "does not replay")
    sample = scene.store.sampled_trials(PastSearch("w", "t", "h", None, 1.0), fastest=2, first=2)
    assert past(scene) == [(trial.job, trial.number) for trial in sample] == [(job.id, 1)]


def test_past_trials_are_at_most_the_newest_of_the_limit(scene):
    tuned(scene, [1.0, 2.0], "a")
    newest = tuned(scene, [3.0, 4.0, 5.0], "b")
    assert past(scene, limit=2) == [(newest.id, 1), (newest.id, 2)]


def test_past_searches_are_of_alike_workloads_first_then_of_this_hardware(scene):
    for key in ("v", "u"):
        scene.store.put_workload(key, key, "{}", "")
    scene.store.put_structure("v", "matmul")
    tuned(scene, [1.0], "a", workload="v", hardware="h2")
    tuned(scene, [2.0], "b", workload="w")
    tuned(scene, [3.0], "c", workload="u", hardware="h2")
    tuned(scene, [4.0], "d", workload="v")
    assert scene.store.past_searches("h", "matmul") == [
        PastSearch("v", "t", "h", "matmul", 4.0),
        PastSearch("v", "t", "h2", "matmul", 1.0),
        PastSearch("w", "t", "h", None, 2.0),
        PastSearch("u", "t", "h2", None, 3.0),
    ]
    assert [found.workload for found in scene.store.past_searches("h", "matmul", 1)] == ["v"]


def test_a_sample_is_the_fastest_and_the_first_of_each_job(scene):
    old = tuned(scene, [5.0, None, 9.0, 1.0], "a")
    new = tuned(scene, [6.0, 7.0, 8.0], "b")
    found = scene.store.sampled_trials(PastSearch("w", "t", "h", None, 1.0), fastest=1, first=2)
    assert [(trial.job, trial.number, trial.seconds) for trial in found] == [
        (old.id, 0, 5.0),
        (old.id, 1, None),
        (old.id, 3, 1.0),
        (new.id, 0, 6.0),
        (new.id, 1, 7.0),
    ]


def test_a_sample_is_of_the_four_newest_jobs(scene):
    jobs = [tuned(scene, [1.0 + n], f"j{n}") for n in range(6)]
    found = scene.store.sampled_trials(PastSearch("w", "t", "h", None, 1.0), fastest=3, first=3)
    assert [trial.job for trial in found] == [job.id for job in jobs[-4:]]


def test_trials_are_found_by_id_in_the_order_of_asking(scene):
    job = tuned(scene, [float(n + 1) for n in range(3)])
    ids = [f"{job.id}.2", "gone.7", f"{job.id}.0"]
    assert [trial.id for trial in scene.store.past_trials_by_id(ids)] == [ids[0], ids[2]]
    assert scene.store.past_trials_by_id([]) == []


def test_a_thousand_trials_are_found_by_id(scene):
    job = scene.job(origin="local")
    scene.store.begin_search(job.id)
    scene.add(job, range(3))
    settle(scene, job, 1, 1.0)
    ids = [f"{job.id}.{n}" for n in range(1_201)]
    assert [trial.number for trial in scene.store.past_trials_by_id(ids)] == [1]


@pytest.mark.parametrize("kind", ["sqlite"], indirect=True)  # PostgreSQL holds a column to its type
def test_a_damaged_trial_is_given_as_it_is_stored(scene):
    job = tuned(scene, [1.0])
    with sqlite3.connect(scene.url.removeprefix("sqlite:///")) as conn:
        conn.execute("UPDATE trials SET features = 'no bytes', samples = '[', trace = '{'")
    (found,) = scene.store.past_trials_by_id([f"{job.id}.0"])
    assert (found.features, found.trace) == ("no bytes", "{")


def test_what_a_search_began_with_is_kept_once(scene):
    job = scene.searched(0)
    assert scene.store.warm_start(job.id) is None
    assert scene.summary(job).known == Known(0, None)
    best = f"{tuned(scene, [1.0]).id}.0"
    assert scene.store.put_warm_start(job.id, 1, '{"a": 1}', known=3, best=best) == '{"a": 1}'
    assert scene.store.put_warm_start(job.id, 1, '{"b": 2}') == '{"a": 1}'
    found = scene.summary(job)
    assert (scene.store.warm_start(job.id), found.known) == ('{"a": 1}', Known(3, best))
    assert found.known_best == scene.store.trial(best)


def test_an_older_search_or_one_that_is_over_keeps_nothing(scene):
    job = scene.searched(0)
    scene.store.begin_search(job.id)
    with pytest.raises(StaleSearch):
        scene.store.put_warm_start(job.id, 1, "{}")
    scene.store.cancel_job(job.id)
    with pytest.raises(JobOver):
        scene.store.put_warm_start(job.id, 2, "{}")
    assert scene.store.warm_start(job.id) is None


def test_a_structure_is_of_a_known_workload(scene):
    scene.store.put_structure("w", "s1")
    scene.store.put_structure("w", "s1")
    with pytest.raises(NotFound):
        scene.store.put_structure("v", "s1")
    with pytest.raises(InvalidValue):
        scene.store.put_structure("w", "")


def test_trials_are_described_anew_all_or_none(scene):
    job = tuned(scene, [1.0, 2.0])
    scene.store.put_features({f"{job.id}.0": b"\x02"}, 7)
    with pytest.raises(NotFound):
        scene.store.put_features({f"{job.id}.1": b"\x03", "gone.0": b"\x03"}, 8)
    described = [(trial.features, trial.feature_schema) for trial in scene.store.trials(job.id)]
    assert described == [(b"\x02", 7), (b"\x00\x01", 1)]
