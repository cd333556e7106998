"""Searches that go on from what earlier ones measured."""

from __future__ import annotations

import json
import sqlite3
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from lab import Killed, Lab, failure
from synthetic import HARDWARE, TARGET, WORKLOAD, FakeSpace, space, tiles

from tilewright.db import Store, open_store
from tilewright.db.records import Job, PastSearch, PastTrial
from tilewright.tuner.past import read_all


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "t.db"


@pytest.fixture
def store(path: Path) -> Iterator[Store]:
    with open_store(f"sqlite:///{path}") as store:
        yield store


@pytest.fixture
def lab(store: Store) -> Lab:
    return Lab(store, history="use", strategy="random")


def ended(job: Job) -> tuple[str, str, int]:
    return job.state, job.reason, job.done


def started(lab: Lab, job: Job) -> dict[str, Any]:
    (said,) = lab.events(job, "warm_start")
    return said


def test_the_same_budget_again_is_answered_from_history(lab: Lab) -> None:
    first = lab.search(lab.job(trials=40))
    again = lab.search(lab.job(trials=40))
    assert ended(again) == ("completed", "all 40 trials of the budget were measured before", 0)
    known = lab.store.job_summaries([again.id], 60.0)[again.id].known
    best = lab.store.best(WORKLOAD, TARGET, HARDWARE)
    assert best is not None
    assert (known.trials, known.best) == (40, best.trial)
    assert lab.store.trials(again.id) == [] != lab.store.trials(first.id)


def test_a_larger_budget_measures_only_what_is_missing_and_nothing_twice(lab: Lab) -> None:
    first = lab.search(lab.job(trials=40))
    more = lab.search(lab.job(trials=60))
    reason = "all 60 trials of the budget are done, 40 of them by earlier searches"
    assert ended(more) == ("completed", reason, 20)
    assert len({*lab.keys(first), *lab.keys(more)}) == 60


def test_a_third_search_knows_the_trials_of_both(lab: Lab) -> None:
    lab.search(lab.job(trials=16))
    lab.search(lab.job(trials=24))
    assert lab.search(lab.job(trials=24)).done == 0
    assert lab.search(lab.job(trials=25)).done == 1


def test_a_search_that_ignores_history_measures_all_again(lab: Lab) -> None:
    first = lab.search(lab.job(trials=24))
    lab.history = "ignore"
    again = lab.search(lab.job(trials=24))
    assert (again.done, lab.keys(again)) == (24, lab.keys(first))


def test_what_was_measured_twice_is_known_once(lab: Lab) -> None:
    lab.history = "ignore"
    lab.search(lab.job(trials=24))
    lab.search(lab.job(trials=24))
    lab.history = "use"
    assert lab.search(lab.job(trials=32)).done == 8


def test_another_seed_or_strategy_goes_on_from_the_same_history(lab: Lab) -> None:
    first = lab.search(lab.job(trials=24))
    other = lab.search(lab.job(trials=32, seed=5, strategy="evolutionary"))
    assert (other.done, len({*lab.keys(first), *lab.keys(other)})) == (8, 32)


def test_another_version_of_the_code_generator_knows_nothing_but_learns(lab: Lab) -> None:
    lab.search(lab.job(trials=24))
    lab.codegen = "2"
    job = lab.search(lab.job(trials=24))
    said = started(lab, job)
    assert (job.done, said["known"], said["learned_from"]["searches"]) == (24, 0, 1)


def test_losses_of_workers_are_no_history(lab: Lab) -> None:
    lab.settle = lambda item: failure(item, "worker_lost") if item.number % 2 else None
    lab.search(lab.job(trials=16))
    lab.settle = lambda item: None
    assert lab.search(lab.job(trials=16)).done == 8


def test_failures_of_candidates_are_history(lab: Lab) -> None:
    lab.settle = lambda item: failure(item, "build_error") if item.number % 3 else None
    first = lab.search(lab.job(trials=12))
    again = lab.search(lab.job(trials=20))
    assert (again.done, set(lab.keys(first)) & set(lab.keys(again))) == (8, set())


def test_the_best_of_the_history_stands_until_something_is_faster(lab: Lab) -> None:
    first = lab.search(lab.job(trials=40))
    more = lab.search(lab.job(trials=48))
    best = lab.store.top_trials(first.id)[0].seconds
    assert all(found["seconds"] < best for found in lab.events(more, "best"))
    assert lab.events(more, "progress")[-1]["best_seconds"] <= best


def test_a_target_that_was_reached_before_needs_no_trial(lab: Lab) -> None:
    lab.search(lab.job(trials=24))
    job = lab.search(lab.job(trials=64, target_seconds=1.0))
    assert (job.state, job.done) == ("completed", 0)
    assert job.reason.startswith("the target of 1 s was reached before: ")


@pytest.mark.parametrize("naps", [1, 2, 3])
def test_a_killed_search_goes_on_from_the_history_that_it_began_with(lab: Lab, naps: int) -> None:
    lab.search(lab.job(trials=24))
    plain = lab.job(trials=60)
    lab.naps = 0

    def kill(nap: int) -> None:
        if nap == naps:
            raise Killed

    lab.during = kill
    with pytest.raises(Killed):
        lab.search(plain)
    lab.during = lambda nap: None
    before = started(lab, plain)
    meanwhile = lab.search(lab.job(trials=72, seed=9))
    assert meanwhile.done > 0
    lab.search(plain)
    assert (started(lab, plain), lab.store.job(plain.id).done) == (before, 36)


def test_a_killed_search_with_history_proposes_what_a_whole_one_proposes(tmp_path: Path) -> None:
    def keys(name: str, killed: bool) -> list[str]:
        with open_store(f"sqlite:///{tmp_path}/{name}.db") as store:
            lab = Lab(store, history="use")  # guided by a model
            lab.search(lab.job(trials=24))
            job = lab.job(trials=60)
            if killed:
                lab.naps, lab.during = 0, kill
                with pytest.raises(Killed):
                    lab.search(job)
                lab.during = lambda nap: None
            lab.search(job)
            return lab.keys(job)

    def kill(nap: int) -> None:
        if nap == 3:
            raise Killed

    assert keys("killed", True) == keys("whole", False)


def test_history_goes_over_into_a_space_that_has_changed_where_it_still_applies(lab: Lab) -> None:
    lab.space, lab.seconds = space({"a": range(1, 9), "b": (1, 2)}), lambda trace: 1e-3 * trace["steps"]["a"]
    lab.search(lab.job(trials=16))
    lab.space = space(
        {"a": range(1, 13), "b": (1, 3)}, {"c": range(4)}, rules={"small": lambda pop: pop[:, 0] == 8}
    )
    lab.seconds = lambda trace: 1e-3 * trace["steps"].get("a", 20)
    job = lab.search(lab.job(trials=64))
    said = started(lab, job)
    assert said["known"] == 7
    assert said["not_applicable"] == {"breaks small": 1, "knob 'b' takes other values": 8}
    assert said["learned_from"] == {"trials": 9, "searches": 1}
    assert (job.state, job.done) == ("exhausted", 11 * 2 - 7 + 4)


def test_a_resumed_search_knows_the_points_of_trials_that_another_version_stored(lab: Lab) -> None:
    lab.space, lab.seconds = space({"a": range(1, 30)}), lambda trace: 1e-3 * trace["steps"]["a"]

    def kill(nap: int) -> None:
        if nap == 4:
            raise Killed

    job, lab.during = lab.job(trials=64), kill
    with pytest.raises(Killed):
        lab.search(job)
    before = {trial.trace for trial in lab.store.trials(job.id)}
    lab.during, lab.codegen = lambda nap: None, "2"
    lab.search(job)
    traces = [trial.trace for trial in lab.store.trials(job.id)]
    assert (len(before) >= 8, len(traces), len(set(traces))) == (True, 29, 29)


@pytest.mark.parametrize(
    ("damage", "reason"),
    [
        ("features = x'00'", "features of another length"),
        ("features = 'text of 68 bytes'", "features of another length"),
        ("trace = '{'", "a trace that is not JSON"),
        ("trace = '[1]'", "a trace that is not JSON"),
        ("seconds = 'soon'", "a time that is no number"),
        ("outcome = 'run_error', seconds = NULL, failure_detail = '['", "a failure that is not JSON"),
    ],
)
def test_damaged_records_are_skipped_and_counted(lab: Lab, path: Path, damage: str, reason: str) -> None:
    job = lab.search(lab.job(trials=16))
    with sqlite3.connect(path) as conn:
        conn.execute(f"UPDATE trials SET {damage} WHERE number < 4")
    again = lab.search(lab.job(trials=16))
    said = started(lab, again)
    assert (again.state, said["known"], said["skipped"]) == ("completed", 12, {reason: 4})
    assert again.done == 4
    assert job.done == 16


def test_features_that_are_not_finite_are_skipped() -> None:
    nan = b"\x00\x00\xc0\x7f"
    trial = PastTrial("j.0", "j", 0, "k", "s", "{}", nan, 1, "ok", 1.0, 0.1, None, "", "{}")
    skipped: Counter[str] = Counter()
    assert read_all([trial], 1, 1, skipped) == []
    assert skipped == {"features that are not finite": 1}


def test_trials_of_another_feature_schema_are_known_with_features_of_this_one(lab: Lab, path: Path) -> None:
    lab.search(lab.job(trials=16))
    with sqlite3.connect(path) as conn:
        conn.execute("UPDATE trials SET feature_schema = 99, features = x'0000'")
    job = lab.search(lab.job(trials=24))
    assert (started(lab, job)["known"], job.done) == (16, 8)


OTHER = "ba" * 32


def tuned_elsewhere(lab: Lab, of: FakeSpace, trials: int = 32, hardware: str = HARDWARE) -> None:
    """A search of another workload."""
    lab.store.put_workload(OTHER, "hill", '{"program": "hill"}', "hill()")
    lab.store.put_hardware(hardware, "{}")
    usual, lab.space, lab.history = lab.space, of, "ignore"
    job = lab.job(trials=trials)
    with sqlite3.connect(lab.path) as conn:
        conn.execute("UPDATE jobs SET workload = ? WHERE id = ?", (OTHER, job.id))
    lab.search(job)
    with sqlite3.connect(lab.path) as conn:
        conn.execute("UPDATE jobs SET hardware = ? WHERE id = ?", (hardware, job.id))
        conn.execute("UPDATE schedules SET hardware = ? WHERE workload = ?", (hardware, OTHER))
    lab.space, lab.history = usual, "use"


@pytest.fixture
def elsewhere(lab: Lab, path: Path) -> Lab:
    lab.path = path
    tuned_elsewhere(lab, tiles())
    return lab


def test_a_search_learns_from_other_workloads(elsewhere: Lab) -> None:
    job = elsewhere.search(elsewhere.job(trials=8))
    said = started(elsewhere, job)
    assert (said["known"], said["learned_from"]) == (0, {"trials": 32, "searches": 1})


def test_what_was_fast_elsewhere_is_tried_first_in_a_quarter_of_a_batch(elsewhere: Lab) -> None:
    sample = elsewhere.store.sampled_trials(PastSearch(OTHER, TARGET, HARDWARE, None, 1.0), 2, 1)
    fastest = sorted(sample, key=lambda trial: trial.seconds or 9)
    job = elsewhere.search(elsewhere.job(trials=8))
    measured = elsewhere.store.trials(job.id)
    assert [trial.origin == "transferred" for trial in measured] == [True, *[False] * 3, True, *[False] * 3]
    assert [measured[0].trace, measured[4].trace] == [trial.trace for trial in fastest[:2]]


def test_what_turns_out_slow_is_followed_by_no_more_of_it(elsewhere: Lab) -> None:
    usual = elsewhere.seconds
    other = next(job for job in elsewhere.store.jobs().items if job.workload == OTHER)
    fast = [json.loads(trial.trace) for trial in elsewhere.store.trials(other.id)]
    elsewhere.seconds = lambda trace: usual(trace) * (100 if trace in fast else 1)
    job = elsewhere.search(elsewhere.job(trials=24))
    numbers = [t.number for t in elsewhere.store.trials(job.id) if t.origin == "transferred"]
    assert numbers == [0, 4]


def test_trials_of_other_schemas_teach_nothing_and_are_counted(elsewhere: Lab, path: Path) -> None:
    with sqlite3.connect(path) as conn:
        conn.execute("UPDATE trials SET feature_schema = 99 WHERE number >= 20")
    said = started(elsewhere, elsewhere.search(elsewhere.job(trials=8)))
    assert said["learned_from"]["trials"] + said["skipped"]["features of another schema"] == 32


def test_a_search_that_ignores_history_learns_nothing_from_others(elsewhere: Lab) -> None:
    elsewhere.history = "ignore"
    job = elsewhere.search(elsewhere.job(trials=8))
    said = started(elsewhere, job)
    assert (said["learned_from"]["trials"], said["transferred"]) == (0, 0)


def test_suggested_points_are_measured_first_and_say_so(lab: Lab) -> None:
    knobs = {f"k{n}": 2 for n in range(6)}
    lab.suggestions = [{"sketch": "s1", "knobs": knobs}, {"version": 1, "steps": {"sketch": "s0", **knobs}}]
    first, second = lab.store.trials(lab.search(lab.job(trials=8)).id)[:2]
    assert [json.loads(trial.trace)["steps"] for trial in (first, second)] == [
        {"sketch": "s1", **knobs},
        {"sketch": "s0", **knobs},
    ]


@pytest.mark.parametrize(
    ("suggestion", "reason"),
    [
        ({"sketch": "s9", "knobs": {}}, "there is no sketch 's9'; the sketches are 's0', 's1'"),
        ({"knobs": {}}, "it names no sketch; the sketches are 's0', 's1'"),
        (
            {"sketch": "s0", "knobs": {"k9": 1}},
            "sketch 's0' has no knob 'k9'; its knobs are k0, k1, k2, k3, k4, k5",
        ),
        ({"sketch": "s0", "knobs": {"k0": 1}}, "knob 'k1' of sketch 's0' needs an integer, and has none"),
        (
            {"sketch": "s0", "knobs": {f"k{n}": "4" for n in range(6)}},
            "knob 'k0' of sketch 's0' needs an integer, not '4'",
        ),
        (
            {"sketch": "s0", "knobs": {f"k{n}": 3 for n in range(6)}},
            "knob 'k0' of sketch 's0' takes one of 1, 2, 4, 8, 16, 32, 64, 128, not 3",
        ),
        (
            {"sketch": "s0", "knobs": {f"k{n}": 16 for n in range(6)}},
            "breaks the constraint 'registers' of sketch 's0'",
        ),
        (
            {"steps": {"sketch": "s0", "k0": 1}},
            "it is no point of the search space: no sketch has its steps",
        ),
        ({}, "it is neither a trace (`version`, `steps`) nor `sketch` and `knobs`; its keys are []"),
    ],
)
def test_a_wrong_suggestion_fails_the_job_and_says_what_is_wrong(
    lab: Lab, suggestion: dict[str, Any], reason: str
) -> None:
    lab.suggestions = [suggestion]
    assert ended(lab.search(lab.job())) == ("failed", f"suggestions[0]: {reason}", 0)
