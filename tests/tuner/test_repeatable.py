"""The search of a stored job comes to the same, whatever happens to it on the way."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st
from lab import Killed, Lab
from mortal import Mortal
from synthetic import HARDWARE

from tilewright.db import StaleSearch, Store, open_store
from tilewright.db.records import Job, NewTrial, Settlement
from tilewright.db.sql import sqlite_database
from tilewright.tuner.run import run_search
from tilewright.tuner.strategies import STRATEGIES

TRIALS = 14
LARGER = 25


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where an empty database lies."""
    folder = tmp_path_factory.mktemp("repeatable")
    open_store(f"sqlite:///{folder}/blank.db").close()
    return folder


@pytest.fixture(autouse=True)
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing here depends on what is on the disk when the machine loses its power."""
    monkeypatch.setattr(sqlite_database, "_SYNCHRONOUS", "OFF")


@pytest.fixture
def store(folder: Path, tmp_path: Path) -> Iterator[Store]:
    with open_store(f"sqlite:///{shutil.copy(folder / 'blank.db', tmp_path / 't.db')}") as store:
        yield store


@pytest.fixture(scope="module")
def references(folder: Path) -> dict[tuple[str, int], tuple[Any, ...]]:
    """What searches find that nothing happens to, by strategy and trials."""
    found = {}
    with open_store(f"sqlite:///{shutil.copy(folder / 'blank.db', folder / 'references.db')}") as store:
        for strategy in STRATEGIES:
            for trials in (TRIALS, LARGER):
                lab = Lab(store, strategy=strategy)
                found[strategy, trials] = outcome(lab, lab.search(lab.job(trials=trials)))
    return found


def outcome(lab: Lab, job: Job) -> tuple[Any, ...]:
    """All that a search came to: its trials in order, its best, and how it ended."""
    assert job.state == "completed"
    trials = [(t.number, t.batch, t.candidate_key, t.outcome, t.seconds) for t in lab.store.trials(job.id)]
    top = lab.store.top_trials(job.id)[0]
    return trials, top.number, top.seconds, job.reason, job.done


def searched_with(lab: Lab, job: Job, store: Any) -> Job:
    """One process that searches, through `store`."""
    epoch = lab.store.begin_search(job.id)
    found = lab.store.job(job.id)
    return run_search(found, store, epoch, open_task=lab.task, clock=lab.clock, sleep=lab.nap)


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_the_same_seed_and_device_give_the_same_trials(store: Store, references: Any, strategy: str) -> None:
    lab = Lab(store, strategy=strategy, at_once=3)
    assert outcome(lab, lab.search(lab.job(trials=TRIALS))) == references[strategy, TRIALS]


def test_another_seed_gives_others(store: Store, references: Any) -> None:
    lab = Lab(store, strategy="random")
    assert outcome(lab, lab.search(lab.job(trials=TRIALS, seed=1))) != references["random", TRIALS]


def test_a_search_killed_after_any_of_its_writes_comes_to_the_same(store: Store, references: Any) -> None:
    lab = Lab(store, strategy="random", at_once=2)
    counter = Mortal(store, 10_000)
    searched_with(lab, lab.job(trials=TRIALS), counter)
    for writes in range(10_000 - counter.left):
        job = lab.job(trials=TRIALS)
        with pytest.raises(Killed):
            searched_with(lab, job, Mortal(store, writes))
        assert outcome(lab, lab.search(job)) == references["random", TRIALS], f"after {writes} writes"


@pytest.mark.parametrize("writes", [4, 9])
@pytest.mark.parametrize("strategy", STRATEGIES)
def test_a_search_by_any_strategy_that_is_killed_comes_to_the_same(
    store: Store, references: Any, strategy: str, writes: int
) -> None:
    lab = Lab(store, strategy=strategy, at_once=2)
    job = lab.job(trials=TRIALS)
    with pytest.raises(Killed):
        searched_with(lab, job, Mortal(store, writes))
    assert outcome(lab, lab.search(job)) == references[strategy, TRIALS]


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_a_job_that_is_extended_comes_to_what_the_larger_budget_comes_to(
    store: Store, references: Any, strategy: str
) -> None:
    lab = Lab(store, strategy=strategy)
    job = lab.search(lab.job(trials=TRIALS))
    store.extend_job(job.id, trials=LARGER)
    assert outcome(lab, lab.search(job)) == references[strategy, LARGER]


def test_a_job_that_is_extended_again_and_again_in_mid_batch_comes_to_the_same(
    store: Store, references: Any
) -> None:
    lab = Lab(store, strategy="random")
    job = lab.search(lab.job(trials=5))
    for trials in (6, 10, 19, LARGER):
        store.extend_job(job.id, trials=trials)
        job = lab.search(job)
    assert outcome(lab, job) == references["random", LARGER]


def test_censored_and_failed_results_are_told_again_as_they_were(store: Store) -> None:
    def settle(item: Any) -> Settlement | None:
        if item.number % 5 == 0:
            return Settlement(item.trial, item.attempt, 2e-3, (2e-3,), censored=True, error=0.1)
        if item.number % 7 == 0:
            return Settlement(item.trial, item.attempt, failure_kind="run_error", failure_message="no")
        return None

    lab = Lab(store, settle=settle, at_once=2)
    whole = outcome(lab, lab.search(lab.job(trials=TRIALS)))
    job = lab.job(trials=TRIALS)
    for writes in (4, 5, 6):
        with pytest.raises(Killed):
            searched_with(lab, job, Mortal(store, writes))
    assert outcome(lab, lab.search(job)) == whole


def test_of_two_searches_of_a_job_only_the_newer_one_writes(store: Store, references: Any) -> None:
    """The older one, which does not know yet, tries each of its writes."""
    lab = Lab(store, strategy="random")
    job = lab.job(trials=TRIALS)
    old = store.begin_search(job.id)
    new = [NewTrial(99, 9, "late", "s0", "{}", b"", 1, 0)]
    assert outcome(lab, lab.search(job)) == references["random", TRIALS]
    before = store.job(job.id), store.trials(job.id), store.events(job.id)
    for write in (
        lambda: store.add_trials(job.id, old, new),
        lambda: store.add_event(job.id, "progress", "{}", old),
        lambda: store.finish_job(job.id, old, "failed", "late"),
        lambda: store.pause_job(job.id, "late", old),
        lambda: store.put_warm_start(job.id, old, "{}"),
        lambda: store.crown(job.id, old, 0, (1.0,)),
    ):
        with pytest.raises(StaleSearch):
            write()
    assert (store.job(job.id), store.trials(job.id), store.events(job.id)) == before


def test_a_search_that_was_overtaken_stops_though_it_has_nothing_to_write(store: Store) -> None:
    lab = Lab(store, strategy="random")
    job = lab.job(trials=TRIALS)

    def overtake(nap: int) -> None:
        if nap == 2:
            lab.at_once = 1
            store.pause_job(job.id)
            store.extend_job(job.id, trials=LARGER)
        assert nap < 100, "it goes on for ever"

    lab.during = overtake
    assert lab.search(job).state == "paused"


ACTIONS = ("kill", "pause", "cancel", "extend", "restart", "lose", "die")


class Fate:
    """What happens to a job while it is searched: at each planned nap one thing."""

    def __init__(self, lab: Lab, job: Job, plan: dict[int, str]) -> None:
        self.lab, self.job, self.plan = lab, job, plan
        self.resume_at = 0
        lab.during = self

    def __call__(self, nap: int) -> None:
        store = self.lab.store
        assert nap < 3000, "it goes on for ever"
        if nap == self.resume_at:
            store.resume_job(self.job.id)
        action = self.plan.pop(nap, None)
        state = store.job(self.job.id).state
        if action in ("kill", "die"):
            if action == "die" and state == "running":
                store.pause_job(self.job.id)
                self.resume_at = self.lab.naps + 1
            raise Killed
        if action == "pause" and state == "running":
            store.pause_job(self.job.id)
            self.resume_at = nap + 15
        if action == "cancel" and state == "running":
            store.cancel_job(self.job.id)
        if action == "extend":
            store.extend_job(self.job.id, trials=LARGER)
        if action == "restart" and state == "running":
            store.begin_search(self.job.id)
        if action == "lose" and state == "running":
            self.lose()

    def lose(self) -> None:
        """A worker takes trials, starts one, and is never heard of again."""
        store, lab = self.lab.store, self.lab
        lease = store.claim(lab.worker, "s", HARDWARE, 3, 30.0)
        if lease is not None:
            store.start(lease.id, lease.items[0].trial, lease.items[0].attempt)
            store.renew(lease.id, 1e-6)
            store.sweep()
            store.clear_crashes(store.trial(lease.items[0].trial).candidate_key, HARDWARE)

    def lived(self) -> Job:
        """The job, searched by one process after the other until it is completed."""
        store = self.lab.store
        for _ in range(100):
            job = store.job(self.job.id)
            if job.state == "completed":
                return job
            if job.state in ("paused", "cancelled"):
                self.lab.naps += 1
                store.resume_job(job.id)
            try:
                self.lab.search(job)
            except Killed:
                continue
        raise AssertionError("it goes on for ever")


# A candidate that two workers were lost with is not tried again: one loss in each plan.
PLANS = st.dictionaries(st.integers(1, 25), st.sampled_from(ACTIONS), max_size=7).filter(
    lambda plan: list(plan.values()).count("lose") < 2
)
LEASES = st.sampled_from([1, 3, 8])


@settings(max_examples=6, deadline=None, derandomize=True, suppress_health_check=list(HealthCheck))
@given(plan=PLANS, at_once=LEASES)
@example(plan={2: "pause", 4: "kill"}, at_once=1)
@example(plan={2: "pause", 4: "extend", 6: "kill"}, at_once=3)
@example(plan={3: "extend", 4: "kill", 5: "pause"}, at_once=3)
@example(plan={2: "lose", 3: "cancel", 5: "restart", 8: "die"}, at_once=1)
def test_nothing_that_happens_to_a_job_changes_what_it_comes_to(
    store: Store, references: Any, plan: dict[int, str], at_once: int
) -> None:
    lab = Lab(store, strategy="random", at_once=at_once)
    job = lab.job(trials=TRIALS)
    ended = Fate(lab, job, dict(plan)).lived()
    assert outcome(lab, ended) == references["random", ended.trials]


@pytest.mark.slow
@pytest.mark.timeout(600)
@settings(max_examples=100, deadline=None, suppress_health_check=list(HealthCheck))
@given(plan=PLANS, at_once=LEASES)
def test_whatever_happens_to_a_job_changes_nothing_of_what_it_comes_to(
    references: Any, plan: dict[int, str], at_once: int
) -> None:
    # A store of its own: what workers were lost with is known to later jobs.
    with tempfile.TemporaryDirectory() as folder, open_store(f"sqlite:///{folder}/t.db") as store:
        lab = Lab(store, strategy="random", at_once=at_once)
        ended = Fate(lab, lab.job(trials=TRIALS), dict(plan)).lived()
        assert outcome(lab, ended) == references["random", ended.trials]


def test_a3_a_search_stopped_at_30_of_100_trials_with_some_queued_reaches_100_and_repeats_none(
    store: Store,
) -> None:
    lab = Lab(store, strategy="random", at_once=3)
    job = lab.job(trials=100)

    def stop(nap: int) -> None:
        if store.job(job.id).done >= 30:
            raise Killed

    lab.during = stop
    with pytest.raises(Killed):
        lab.search(job)
    before = store.trials(job.id)
    queued = [trial.number for trial in before if trial.outcome == "pending"]
    lab.during = lambda nap: None
    ended = lab.search(job)
    after = store.trials(job.id)
    assert (ended.state, ended.done, len(queued) >= 4) == ("completed", 100, True)
    measured = [trial for trial in before if trial.outcome == "ok"]
    assert [after[trial.number] for trial in measured] == measured
    assert {trial.attempt for trial in after} == {1}
