"""What stands as best-known by one job, when another job has found something."""

from __future__ import annotations

import json
import shutil
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from lab import Killed, Lab, failure
from mortal import Mortal
from synthetic import HARDWARE, TARGET, WORKLOAD, space

from tilewright.db import Store, open_store
from tilewright.db.best_records import BestSchedule
from tilewright.db.fleet_records import LeaseItem, NewWorker
from tilewright.db.records import Job, Settlement
from tilewright.db.sql import sqlite_database


@dataclass
class Pair:
    """A lab in which one job has left candidate `a` = 0 as best, and another one finds `a` = 1. `truth`: what
    the two take, by worker's name; a reading of the search itself may be luckier (`lucky`)."""

    lab: Lab
    truth: dict[str, dict[int, float]]
    lucky: dict[int, float] = field(default_factory=dict)
    fails: dict[tuple[str, int], str] = field(default_factory=dict)
    timed: list[tuple[str, int]] = field(default_factory=list)
    others: dict[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.lab.settle = lambda item: self.settled("w", item)

    def settled(self, worker: str, item: LeaseItem) -> Settlement:
        a = int(json.loads(item.trace)["steps"]["a"])
        again = item.attempt > 1
        if again:
            self.timed.append((worker, a))
        if again and (kind := self.fails.get((worker, a))):
            return failure(item, kind, "it shook")
        seconds = self.truth[worker][a] if again else self.lucky.get(a, self.truth[worker][a])
        return Settlement(item.trial, item.attempt, seconds, (seconds,), error=0.1)

    def attach(self, name: str) -> None:
        """Another worker of the same kind, which takes what is wanted of it alone."""
        hello = NewWorker(name, "s", HARDWARE, 1, "{}", "{}", "1")
        self.others[name] = self.lab.store.register_worker(hello).id
        self.lab.during = lambda nap: self.work_elsewhere()

    def work_elsewhere(self) -> None:
        waiting = [r for job in self.lab.store.jobs().items for r in self.lab.store.retimings(job.id)]
        if not any(r.outcome == "pending" for r in waiting):
            return
        for name, worker in self.others.items():
            lease = self.lab.store.claim(worker, "s", HARDWARE, 8, 30.0)
            for item in lease.items if lease else ():
                self.lab.store.start(lease.id, item.trial, item.attempt)
                self.lab.store.settle(lease.id, [self.settled(name, item)])

    def search(self, a: int) -> Job:
        self.lab.space = space({"a": [a]})
        return self.lab.search(self.lab.job(trials=1, strategy="random"))

    def best(self) -> BestSchedule:
        best = self.lab.store.best(WORKLOAD, TARGET, HARDWARE)
        assert best is not None
        return best


@pytest.fixture
def pair(store: Store) -> Pair:
    return Pair(Lab(store, space=space({"a": [0]})), {"w": {0: 1.0e-3, 1: 0.9e-3}})


def winner(best: BestSchedule) -> int:
    return int(json.loads(best.trace)["steps"]["a"])


def test_a_faster_one_takes_the_place_after_both_were_timed_in_turn_on_one_device(pair: Pair) -> None:
    first, second = pair.search(0), pair.search(1)
    assert (winner(pair.best()), pair.best().seconds, pair.best().challenger) == (1, 0.9e-3, None)
    assert pair.timed[:4] == [("w", 1), ("w", 0), ("w", 0), ("w", 1)]
    (duel,) = pair.lab.store.duels(WORKLOAD, TARGET, HARDWARE)
    assert (duel.job, duel.incumbent, duel.winner) == (second.id, f"{first.id}.0", f"{second.id}.0")
    assert duel.worker == pair.lab.worker


def test_a_luckier_reading_does_not(pair: Pair) -> None:
    pair.truth["w"][1], pair.lucky[1] = 1.1e-3, 0.8e-3
    pair.search(0)
    job = pair.search(1)
    assert (winner(pair.best()), pair.best().seconds, pair.best().challenger) == (0, 1.0e-3, None)
    assert pair.lab.store.trial(f"{job.id}.0").seconds == 1.1e-3


def test_one_that_was_luckier_then_than_it_is_now_gives_its_place_up(pair: Pair) -> None:
    pair.lucky[0] = 0.88e-3  # a quiet hour: within a few percent of what the next one takes
    pair.search(0)
    pair.search(1)
    assert winner(pair.best()) == 1


def test_one_that_is_far_slower_is_not_timed_against_the_best(pair: Pair) -> None:
    pair.truth["w"][1] = 2e-3
    pair.search(0)
    pair.search(1)
    assert (winner(pair.best()), pair.timed) == (0, [])


def test_without_one_that_stands_nothing_is_timed_again(pair: Pair) -> None:
    pair.search(1)
    assert (winner(pair.best()), pair.timed) == (1, [])


def test_one_that_fails_now_is_retired_by_name(pair: Pair) -> None:
    pair.fails["w", 0] = "wrong_output"
    first = pair.search(0)
    pair.search(1)
    assert winner(pair.best()) == 1
    (gone,) = pair.lab.store.retirements(WORKLOAD, TARGET, HARDWARE)
    assert (gone.trial, gone.reason) == (f"{first.id}.0", "wrong_output when it was timed again")


def test_it_stands_where_both_cannot_be_timed(pair: Pair, monkeypatch: pytest.MonkeyPatch) -> None:
    pair.search(0)
    job = pair.lab.job(trials=1, strategy="random")
    pair.lab.space = space({"a": [1]})

    def leave(nap: int) -> None:
        if pair.lab.store.trial_counts(job.id)["ok"] == 1:
            pair.lab.clock.now += 1.0
            monkeypatch.setattr(pair.lab, "work", lambda: None)

    pair.lab.during = leave
    pair.lab.search(job)
    best = pair.best()
    assert winner(best) == 0
    assert best.challenger is not None and best.challenger.trial == f"{job.id}.0"


def test_a_challenger_that_was_left_is_timed_with_the_next(
    pair: Pair, monkeypatch: pytest.MonkeyPatch
) -> None:
    test_it_stands_where_both_cannot_be_timed(pair, monkeypatch)
    monkeypatch.undo()
    pair.lab.during = lambda nap: None
    pair.truth["w"][2] = 0.95e-3
    pair.search(2)
    assert (winner(pair.best()), pair.best().challenger) == (1, None)


@pytest.mark.parametrize("turn", [0, 1])
def test_two_jobs_that_duel_at_once_both_end_and_what_stands_stays(pair: Pair, turn: int) -> None:
    """Each takes the other's round with the one that stands away."""
    first = pair.search(0)
    store, taken, began = pair.lab.store, [], pair.lab.clock.now
    other = pair.lab.job(trials=4, strategy="random")
    epoch = store.begin_search(other.id)

    def take_away(nap: int) -> None:
        rounds = [r for job in store.jobs().items if job.id != other.id for r in store.retimings(job.id)]
        due = [r.turn for r in rounds if r.outcome == "pending" and r.turn % 64 == turn]
        if due and not taken:
            taken.append(nap)
            store.time_again(other.id, epoch, due[0], [f"{first.id}.0"])

    pair.lab.during = take_away
    second = pair.search(1)
    assert taken and (second.state, pair.lab.clock.now - began < 10.0) == ("completed", True)
    best = pair.best()
    assert (best.trial, best.challenger and best.challenger.trial) == (f"{first.id}.0", f"{second.id}.0")
    assert store.retirements(WORKLOAD, TARGET, HARDWARE) == store.duels(WORKLOAD, TARGET, HARDWARE) == []
    store.cancel_job(other.id)
    pair.lab.during = lambda nap: None
    pair.truth["w"][2] = 0.95e-3
    pair.search(2)
    assert (winner(pair.best()), pair.best().challenger) == (1, None)


@pytest.mark.parametrize("there", [0.7e-3, 1.3e-3])
def test_a_second_device_confirms_a_new_best(pair: Pair, there: float) -> None:
    pair.attach("other")
    pair.truth["other"] = {0: there}
    pair.search(0)
    confirmation = pair.best().confirmation
    assert confirmation is not None
    assert (confirmation.worker, confirmation.seconds) == (pair.others["other"], there)


def test_it_is_confirmed_against_what_it_replaces(pair: Pair) -> None:
    pair.search(0)
    pair.attach("other")
    pair.truth["other"] = {0: 1.0e-3, 1: 0.8e-3}
    pair.search(1)
    assert winner(pair.best()) == 1 and pair.best().confirmed
    on_other = [a for worker, a in pair.timed if worker == "other"]
    assert on_other == [1, 0, 0, 1]


def test_a_second_device_that_says_otherwise_does_not_confirm(pair: Pair) -> None:
    pair.search(0)
    pair.attach("other")
    pair.truth["other"] = {0: 0.8e-3, 1: 1.0e-3}
    pair.search(1)
    assert (winner(pair.best()), pair.best().confirmed) == (1, False)


def test_a_wrong_output_on_a_second_device_retires_the_new_best(pair: Pair) -> None:
    pair.search(0)
    pair.attach("other")
    pair.truth["other"] = {0: 1.0e-3, 1: 1.0e-3}
    pair.fails["other", 1] = "wrong_output"
    pair.search(1)
    assert winner(pair.best()) == 0


def test_without_a_second_device_it_says_that_nobody_confirmed_it(pair: Pair) -> None:
    pair.search(0)
    assert pair.best().confirmed is False


@pytest.mark.parametrize("lucky", [{}, {1: 0.8e-3}])
def test_a_stored_search_killed_around_its_duel_leaves_the_same_best_known(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, lucky: dict[int, float]
) -> None:
    """Where its own best wins, and where that was merely lucky and does not."""
    monkeypatch.setattr(sqlite_database, "_SYNCHRONOUS", "OFF")
    truth = {0: 1.0e-3, 1: 1.1e-3 if lucky else 0.9e-3, 2: 2e-3}

    def opened(store: Store) -> Pair:
        return Pair(Lab(store, space=space({"a": [0]})), {"w": truth}, lucky)

    with open_store(f"sqlite:///{tmp_path}/past.db") as store:
        opened(store).search(0)

    def ended(name: str, writes: int) -> tuple[list[str], tuple[object, ...]]:
        path = shutil.copy(tmp_path / "past.db", tmp_path / f"{name}.db")
        with open_store(f"sqlite:///{path}") as store:
            pair = opened(store)
            pair.lab.space = space({"a": [1, 2]})
            job, mortal = pair.lab.job(trials=2, strategy="random"), Mortal(store, writes)
            try:
                pair.lab.search(job, mortal)
            except Killed:
                pair.lab.search(job)
            best, duel = pair.best(), store.duels(WORKLOAD, TARGET, HARDWARE)[0]
            stands = winner(best), best.seconds, best.samples, best.challenger
            return mortal.wrote, (*stands, store.job(job.id).state, sorted(duel.times.values()))

    wrote, whole = ended("whole", 10_000)
    assert wrote[wrote.index("crown") + 1] == "decide" and whole[0] == (0 if lucky else 1)
    for writes in range(wrote.index("crown"), len(wrote)):
        assert ended(f"killed-{writes}", writes)[1] == whole, f"after {wrote[:writes]}"
