"""A search of the service: its batches, and that it goes on as if it had never stopped."""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import replace
from typing import Any

import pytest
from lab import Killed, Lab, ended
from synthetic import HARDWARE, TARGET, WORKLOAD, tile_seconds

from tilewright.tuner.run import run_search
from tilewright.tuner.search import POLL_SECONDS


def test_a_search_measures_its_budget_and_completes(lab: Lab) -> None:
    job = lab.search(lab.job(trials=20))
    assert (*ended(job), job.done) == ("completed", "all 20 trials of the budget are done", 20)


def test_the_best_of_a_search_is_what_the_store_knows(lab: Lab) -> None:
    job = lab.search(lab.job())
    fastest = min(tile_seconds(json.loads(trial.trace)) for trial in lab.store.trials(job.id))
    best = lab.store.best(WORKLOAD, TARGET, HARDWARE)
    assert best is not None
    assert (best.job, best.seconds) == (job.id, fastest)


def test_a_stored_trial_carries_its_features_and_the_seed_of_its_inputs(lab: Lab) -> None:
    trial = lab.store.trials(lab.search(lab.job(trials=1, seed=7)).id)[0]
    assert (len(trial.features), trial.feature_schema, trial.input_seed) == (17 * 4, 1, 7)


def test_the_next_batch_is_proposed_while_one_is_measured(lab: Lab) -> None:
    open_at_first_nap: list[int] = []
    lab.during = lambda nap: open_at_first_nap.append(lab.store.trial_counts(job.id)["pending"])
    job = lab.job()
    lab.search(job)
    assert open_at_first_nap[0] == 8


def test_a_job_may_ask_for_larger_batches(lab: Lab) -> None:
    lab.options, lab.at_once = {"batch": 32}, 64
    job = lab.search(lab.job(trials=112))
    sizes = Counter(trial.batch for trial in lab.store.trials(job.id))
    assert [sizes[n] for n in range(len(sizes))] == [16, 16, 32, 32, 16]


def test_results_are_looked_for_less_often_the_longer_none_comes(lab: Lab) -> None:
    naps: list[float] = []

    def sleep(seconds: float) -> None:
        naps.append(seconds)
        lab.clock.now += seconds
        if len(naps) > 100:
            lab.work()

    job = lab.job(trials=4)
    epoch = lab.store.begin_search(job.id)
    run_search(lab.store.job(job.id), lab.store, epoch, open_task=lab.task, clock=lab.clock, sleep=sleep)
    assert (naps[0], naps[:100] == sorted(naps[:100]), max(naps)) == (POLL_SECONDS, True, 0.5)


@pytest.mark.parametrize("naps", [1, 2, 3, 5])
def test_a_killed_search_goes_on_as_if_it_had_never_stopped(lab: Lab, naps: int) -> None:
    whole = lab.keys(lab.search(lab.job()))

    def kill(nap: int) -> None:
        if nap == naps:
            raise Killed

    job, lab.naps, lab.during = lab.job(), 0, kill
    with pytest.raises(Killed):
        lab.search(job)
    lab.during = lambda nap: None
    lab.search(job)
    assert lab.keys(job) == whole


def test_a_search_killed_before_a_batch_was_stored_goes_on(lab: Lab, monkeypatch: pytest.MonkeyPatch) -> None:
    whole = lab.keys(lab.search(lab.job()))
    job, add, calls = lab.job(), lab.store.add_trials, []

    def add_twice(*arguments: Any) -> Any:
        calls.append(arguments)
        if len(calls) == 3:
            raise Killed
        return add(*arguments)

    with monkeypatch.context() as patched, pytest.raises(Killed):
        patched.setattr(type(lab.store), "add_trials", lambda self, *arguments: add_twice(*arguments))
        lab.search(job)
    lab.search(job)
    assert lab.keys(job) == whole


def test_results_that_come_one_at_a_time_change_no_proposal(lab: Lab) -> None:
    together = lab.keys(lab.search(lab.job()))
    lab.at_once = 1
    assert lab.keys(lab.search(lab.job())) == together


def test_trials_of_another_version_are_kept_and_the_search_goes_on_from_them(lab: Lab) -> None:
    def kill(nap: int) -> None:
        if nap == 3:
            raise Killed

    job, lab.during = lab.job(), kill
    with pytest.raises(Killed):
        lab.search(job)
    before = lab.keys(job)
    lab.during, lab.codegen = lambda nap: None, "2"
    lab.search(job)
    after = lab.keys(job)
    assert (after[: len(before)], len(after), len(set(after))) == (before, 48, 48)


def test_features_of_another_schema_are_not_learned_from(lab: Lab) -> None:
    job = lab.job(trials=24)
    lab.search(lab.job(trials=1))
    epoch = lab.store.begin_search(job.id)
    strange = [replace(trial, feature_schema=99, features=b"\x00" * 8) for trial in new_trials(lab, count=8)]
    lab.store.add_trials(job.id, epoch, strange)
    assert ended(lab.search(job))[0] == "completed"


def new_trials(lab: Lab, count: int) -> list[Any]:
    from tilewright.db.records import NewTrial

    return [
        NewTrial(n, 0, f"old{n}", "s0", '{"steps": {"sketch": "s0", ' + KNOBS, b"", 1, 0)
        for n in range(count)
    ]


KNOBS = '"k0": 1, "k1": 1, "k2": 1, "k3": 1, "k4": 1, "k5": 1}}'
