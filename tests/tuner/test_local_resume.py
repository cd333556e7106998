"""A local search that is killed, interrupted, paused or extended comes to what it would have come to."""

from __future__ import annotations

import json
import math
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from lab import Killed
from mortal import Mortal
from synthetic import FakeMachine, space, task, tiles

import tilewright
from tilewright.compiler import topi
from tilewright.compiler.schedule import ScheduleError
from tilewright.compiler.space import SpaceError
from tilewright.compiler.target import Hardware, Target
from tilewright.compiler.target.hardware import detect
from tilewright.db import AlreadyComplete, Conflict, Store, open_store
from tilewright.db.process_identity import ProcessIdentity
from tilewright.db.records import Job
from tilewright.db.sql import sqlite_database
from tilewright.tuner import job_log, local
from tilewright.tuner import tune as tune_module
from tilewright.tuner.budget import Budget
from tilewright.tuner.errors import CannotResume
from tilewright.tuner.opening import budget_of, open_task
from tilewright.tuner.record import TuningRecord
from tilewright.tuner.standing import enlarged, standing_job
from tilewright.tuner.strategies import load_strategy
from tilewright.tuner.tune import Tuner

HERE = Hardware.of({"architecture": "test"})


@pytest.fixture(autouse=True)
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing here depends on what is on the disk when the machine loses its power, nor on how long a search
    takes: the same search writes the same, and as often."""
    monkeypatch.setattr(sqlite_database, "_SYNCHRONOUS", "OFF")
    monkeypatch.setattr(job_log, "PROGRESS_SECONDS", math.inf)


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    with open_store(f"sqlite:///{tmp_path}/t.db") as store:
        yield store


def tune(store: Any, machine: FakeMachine | None = None, **options: Any) -> TuningRecord:
    options = {"task": task(tiles()), "trials": 24, "strategy": "random", "history": "ignore", **options}
    return Tuner(hardware=HERE, store=store, **options).run(machine or FakeMachine())


def found(store: Store, record: TuningRecord) -> tuple[Any, ...]:
    """All that the search of a job came to."""
    assert record.job is not None and record.best is not None
    trials = store.trials(record.job)
    best = store.best(record.workload, record.target, record.hardware)
    assert best is not None
    said = [(t.number, t.batch, t.candidate_key, t.outcome, t.first_seconds or t.seconds) for t in trials]
    return said, record.best.candidate.number, record.seconds, record.state, record.reason, best.trace


def last_job(store: Store) -> Job:
    return store.jobs().items[0]


def writes_of(store: Store, **options: Any) -> int:
    counter = Mortal(store, 10_000)
    tune(counter, **options)
    return len(counter.wrote)


def killed_after(store: Store, writes: int, **options: Any) -> Job:
    with pytest.raises(Killed):
        tune(Mortal(store, writes), **options)
    job = last_job(store)
    assert job.state == "running"
    return job


def test_a_search_killed_after_any_write_comes_to_the_same_when_it_is_resumed(store: Store) -> None:
    whole = found(store, tune(store, trials=10))
    # Each write once; a job begins with two.
    for writes in range(2, writes_of(store, trials=10)):
        job = killed_after(store, writes, trials=10)
        assert found(store, tune(store, trials=10, resumes=job.id)) == whole, f"after {writes} writes"


@pytest.mark.parametrize(("challenger", "wins"), [(0.9e-3, True), (1.02e-3, False)])
def test_a_search_killed_around_its_duel_leaves_the_same_best_known(
    tmp_path: Path, challenger: float, wins: bool
) -> None:
    """Against what another job left; between the crown of its own best and the decision too."""
    truth = {0: 1e-3, 1: challenger, 2: challenger * 1.01}

    def run(store: Any, *values: int, **options: Any) -> TuningRecord:
        machine = FakeMachine(seconds=lambda trace: truth[trace["steps"]["a"]])
        return tune(store, machine, task=task(space({"a": values})), trials=len(values), **options)

    def came_to(store: Store, record: TuningRecord) -> tuple[Any, ...]:
        best = store.best(record.workload, record.target, record.hardware)
        duel = store.duels(record.workload, record.target, record.hardware)[0]
        assert best is not None
        fought = sorted((store.trial(trial).trace, taken) for trial, taken in duel.times.items())
        return found(store, record), best.seconds, best.challenger, store.trial(duel.winner).trace, fought

    with open_store(f"sqlite:///{tmp_path}/past.db") as store:
        run(store, 0)

    def from_there(name: str) -> str:
        shutil.copy(tmp_path / "past.db", tmp_path / f"{name}.db")
        return f"sqlite:///{tmp_path}/{name}.db"

    with open_store(from_there("whole")) as store:
        counter = Mortal(store, 10_000)
        whole = came_to(store, run(counter, 1, 2))
    assert (json.loads(whole[3])["steps"]["a"] != 0) == wins
    assert counter.wrote[-4:] == ["crown", "decide", "add_event", "finish_job"]
    for writes in range(len(counter.wrote) - 5, len(counter.wrote)):
        with open_store(from_there(f"killed-{writes}")) as store:
            with pytest.raises(Killed):
                run(Mortal(store, writes), 1, 2)
            assert came_to(store, run(store, 1, 2, resumes=last_job(store).id)) == whole, f"{writes} writes"


@pytest.mark.parametrize("part", [0.3, 0.7])
def test_a_search_by_a_cost_model_that_is_killed_comes_to_the_same(store: Store, part: float) -> None:
    options = {"strategy": "evolutionary", "trials": 22}
    whole = found(store, tune(store, **options))
    job = killed_after(store, round(writes_of(store, **options) * part), **options)
    assert found(store, tune(store, **options, resumes=job.id)) == whole


def test_a_search_killed_again_and_again_comes_to_the_same(store: Store) -> None:
    whole = found(store, tune(store))
    job = killed_after(store, 9)
    for writes in (4, 11, 3, 17):
        with pytest.raises(Killed):
            tune(Mortal(store, writes), resumes=job.id)
    assert found(store, tune(store, resumes=job.id)) == whole


def test_nothing_is_measured_twice_by_a_search_that_is_resumed(store: Store) -> None:
    first, second = FakeMachine(), FakeMachine()
    with pytest.raises(Killed):
        tune(Mortal(store, 20), first)
    job = last_job(store)
    settled = store.trial_counts(job.id)["settled"]
    tune(store, second, resumes=job.id)
    begun = [item.item for item in second.items]
    assert begun[: 24 - settled] == [f"trial-{n}" for n in range(settled, 24)]


def test_an_interrupted_search_is_found_and_goes_on(store: Store) -> None:
    whole = found(store, tune(store))

    def interrupt(number: int) -> None:
        if number == 13:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        tune(store, FakeMachine(before=interrupt))
    standing = standing_job(store, task(tiles()), HERE.key, 0, "random", "")
    assert standing is not None
    assert (standing.state, standing.reason) == (
        "paused",
        "interrupted after 13 trials: resume the job to go on",
    )
    assert found(store, tune(store, resumes=standing.id)) == whole


@pytest.mark.parametrize(
    ("seed", "strategy", "space"), [(1, "random", ""), (0, "evolutionary", ""), (0, "random", "mine")]
)
def test_a_job_of_another_search_is_not_taken_for_this_one(
    store: Store, seed: int, strategy: str, space: str
) -> None:
    with pytest.raises(Killed):
        tune(Mortal(store, 9))
    store.pause_job(last_job(store).id)
    assert standing_job(store, task(tiles()), HERE.key, seed, strategy, space) is None


@pytest.mark.parametrize("strategy", ["random", "evolutionary"])
def test_a_search_that_is_extended_finds_what_one_with_the_larger_budget_finds(
    store: Store, strategy: str
) -> None:
    whole = found(store, tune(store, trials=40, strategy=strategy))
    short = tune(store, trials=21, strategy=strategy)
    assert short.job is not None
    job = store.extend_job(short.job, trials=40)
    again = found(store, tune(store, trials=40, strategy=strategy, resumes=job.id))
    assert again[:2] == whole[:2]


def test_a_search_that_is_killed_while_it_is_extended_comes_to_the_same(store: Store) -> None:
    whole = found(store, tune(store, trials=40))
    short = tune(store, trials=21)
    assert short.job is not None
    store.extend_job(short.job, trials=40)
    for writes in (1, 2, 5, 9):
        with pytest.raises(Killed):
            tune(Mortal(store, writes), trials=40, resumes=short.job)
    assert found(store, tune(store, trials=40, resumes=short.job))[:2] == whole[:2]


def test_a_search_that_began_with_the_history_goes_on_with_what_it_was_then(tmp_path: Path) -> None:
    options = {"strategy": "evolutionary", "history": "use", "trials": 24, "seed": 3}
    with open_store(f"sqlite:///{tmp_path}/past.db") as store:
        tune(store, trials=10)
    for name in ("whole", "broken"):
        shutil.copy(tmp_path / "past.db", tmp_path / f"{name}.db")
    with open_store(f"sqlite:///{tmp_path}/whole.db") as store:
        record = tune(store, **options)
        whole = found(store, record)
    with open_store(f"sqlite:///{tmp_path}/broken.db") as store:
        job = killed_after(store, 14, **options)
        tune(store, trials=16, seed=8)
        again = tune(store, **options, resumes=job.id)
        assert (record.known_count, record.trial_count) == (again.known_count, again.trial_count) == (10, 14)
        assert found(store, again)[:2] == whole[:2]


def test_a_search_that_somebody_pauses_stores_its_result_and_stops(store: Store) -> None:
    whole = found(store, tune(store))

    def pause(number: int) -> None:
        if number == 9:
            store.pause_job(last_job(store).id)

    record = tune(store, FakeMachine(before=pause))
    assert (record.state, record.reason, record.trial_count) == ("paused", "paused", 9)
    assert record.job is not None
    assert store.trial_counts(record.job)["settled"] == 10
    assert found(store, tune(store, resumes=record.job)) == whole


def test_a_search_that_somebody_cancels_gives_what_it_found(store: Store) -> None:
    def cancel(number: int) -> None:
        if number == 9:
            store.cancel_job(last_job(store).id)

    record = tune(store, FakeMachine(before=cancel))
    assert (record.state, record.reason, record.trial_count) == ("cancelled", "cancelled", 9)
    assert record.best is not None and record.seconds == record.best.outcome.seconds


def test_of_two_processes_that_tune_one_job_only_the_later_one_writes(store: Store) -> None:
    whole = found(store, tune(store))

    def take_over(number: int) -> None:
        if number == 9:
            job = last_job(store).id
            store.pause_job(job)
            tune(store, resumes=job)

    record = tune(store, FakeMachine(before=take_over))
    assert (record.state, record.trial_count) == ("completed", 9)
    trials = [(t.number, t.outcome) for t in store.trials(record.job or "")]
    assert trials == [(n, "ok") for n, *_ in whole[0]]


def test_the_seconds_of_earlier_processes_count(store: Store) -> None:
    with pytest.raises(Killed):
        tune(Mortal(store, 9))
    job = last_job(store)
    time.sleep(0.2)
    record = tune(store, resumes=job.id, trials=24, seconds=0.1)
    assert (record.state, record.reason) == ("completed", "the 0.1 s of the budget are used up")


def test_the_seconds_that_a_job_stands_still_do_not_count(store: Store) -> None:
    with pytest.raises(Killed):
        tune(Mortal(store, 9))
    job = last_job(store)
    store.pause_job(job.id)
    time.sleep(1.5)
    record = tune(store, resumes=job.id, trials=24, seconds=60.0)
    paused = store.job(job.id).paused_seconds
    assert (record.state, record.trial_count, paused >= 1.5) == ("completed", 24, True)


def test_a_complete_job_is_not_resumed(store: Store) -> None:
    record = tune(store)
    with pytest.raises(AlreadyComplete):
        tune(store, resumes=record.job)


def test_a_job_that_another_process_tunes_is_not_resumed(store: Store) -> None:
    with pytest.raises(Killed):
        tune(Mortal(store, 9))
    job = last_job(store)
    parent = ProcessIdentity.read(job.process)
    assert parent is not None
    with subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE) as other:
        import psutil

        alive = ProcessIdentity(parent.machine, other.pid, psutil.Process(other.pid).create_time())
        store.pause_job(job.id)
        store.resume_local(job.id, alive.text)
        with pytest.raises(Conflict, match=f"is being tuned by process {other.pid} on .*: pause it first"):
            tune(store, resumes=job.id)
        other.kill()
    tune(store, resumes=job.id)


def test_a_larger_budget_extends_and_a_smaller_one_does_not(store: Store) -> None:
    record = tune(store, trials=8, patience=30)
    job = store.job(record.job or "")
    assert budget_of(enlarged(store, job, Budget(4, patience=20))) == Budget(8, patience=30)
    assert budget_of(enlarged(store, job, Budget(12, patience=40))) == Budget(12, patience=40)
    assert budget_of(enlarged(store, store.job(job.id), Budget(12))) == Budget(12)


SCRIPT = """
import sys
import tilewright as tw
from tilewright.compiler import topi
from tilewright.db import open_store
func = topi.create({"op": "matmul", "m": 32, "n": 32, "k": 32, "dtype": "float32"})
with open_store(sys.argv[1]) as store:
    record = tw.tune(func, trials=int(sys.argv[2]), store=store, resume=sys.argv[3] == "resume")
    print(record.job, record.state, record.trial_count)
"""


@pytest.mark.slow
def test_a_tuning_process_that_is_killed_is_resumed_by_the_next(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path}/t.db"
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}

    def command(resume: str) -> list[str]:
        return [sys.executable, "-c", SCRIPT, url, "24", resume]

    with subprocess.Popen(command("new"), env=environment, stdout=subprocess.PIPE) as first:
        deadline = time.monotonic() + 60
        with open_store(url) as store:
            while not store.jobs().items or last_job(store).done < 5:
                assert time.monotonic() < deadline and first.poll() is None
                time.sleep(0.02)
        first.send_signal(signal.SIGKILL)
    with open_store(url) as store:
        job = last_job(store)
        before = [(t.candidate_key, t.seconds) for t in store.trials(job.id) if t.outcome == "ok"]
    second = subprocess.run(command("resume"), env=environment, capture_output=True, text=True, check=True)
    with open_store(url) as store:
        after = store.trials(job.id)
        told = {t.candidate_key: t.first_seconds or t.seconds for t in after}
        kept = [(key, told[key]) for key, _ in before]
    assert second.stdout.split() == [job.id, "completed", "24"]
    assert (kept, len({t.candidate_key for t in after})) == (before, 24)
    assert json.loads(job.process)["pid"] == first.pid


class Broken:
    """A strategy whose second proposal throws."""

    def describe(self) -> str:
        return "broken"

    def propose(self, view: Any, count: int, rng: Any) -> Iterator[Any]:
        if view.batch:
            raise ValueError("low == high")
        yield from load_strategy("random").propose(view, count, rng)


@pytest.mark.parametrize("cpus", [1, 2])
def test_a4_a_strategy_that_throws_fails_the_job_and_is_raised(
    store: Store, monkeypatch: pytest.MonkeyPatch, cpus: int
) -> None:
    monkeypatch.setattr(local, "_cpus", lambda: cpus)
    monkeypatch.setattr(tune_module, "load_strategy", lambda name: Broken())
    with pytest.raises(ValueError, match="low == high"):
        tune(store)
    job = last_job(store)
    assert (job.state, job.reason, set(store.trial_counts(job.id)) >= {"pending"}) == (
        "failed",
        "low == high",
        True,
    )
    assert store.trial_counts(job.id)["pending"] == store.trial_counts(job.id)["started"] == 0


def matmul() -> Any:
    return topi.create({"op": "matmul", "m": 8, "n": 8, "k": 8})


def one_point(sch: Any) -> None:
    """A space whose only knob has one value."""
    block = sch.get_block("C")
    i = sch.get_loops(block)[0]
    sch.split(i, [None, sch.sample_categorical([4])])


def stored(store: Store, **more: Any) -> Job:
    """A paused job of tune on this machine's hardware."""
    here = detect()
    options = {"task": open_task(matmul(), Target.parse("llvm")), "hardware": here, **more}
    with pytest.raises(Killed):
        Tuner(trials=8, strategy="random", store=Mortal(store, 4), **options).run(FakeMachine())
    return store.pause_job(last_job(store).id)


def test_a_job_within_a_space_of_its_own_needs_that_space_again(store: Store) -> None:
    job = stored(store, space_name="one_point")
    with pytest.raises(CannotResume) as refused:
        tilewright.resume(job.id, store)
    assert str(refused.value) == (
        f"job {job.id} searches a space of its own, 'one_point': give it as space= again"
    )
    assert store.job(job.id) == job


def test_a_job_of_other_hardware_is_not_resumed_here(store: Store) -> None:
    job = stored(store, hardware=HERE)
    with pytest.raises(CannotResume, match=f"job {job.id} is measured on hardware {HERE.key}, and this is "):
        tilewright.resume(job.id, store)
    assert store.job(job.id) == job


def test_a_job_is_resumed_by_its_id_and_extended(store: Store) -> None:
    job = stored(store)
    record = tilewright.resume(job.id, store, trials=10)
    assert (record.job, record.state, record.trial_count) == (job.id, "completed", 10)


def test_a4_a_knob_with_a_single_value_is_a_space_of_one_point(store: Store) -> None:
    record = tilewright.tune(matmul(), trials=8, space=one_point, store=store)
    assert (record.state, record.trial_count, store.job(record.job or "").state) == (
        "exhausted",
        1,
        "exhausted",
    )


def test_a4_a_knob_without_a_value_is_refused_before_anything_is_recorded(store: Store) -> None:
    def nothing(sch: Any) -> None:
        sch.split(sch.get_loops(sch.get_block("C"))[0], [None, sch.sample_categorical([])])

    with pytest.raises((SpaceError, ScheduleError)):
        tilewright.tune(matmul(), trials=8, space=nothing, store=store)
    assert store.jobs().items == ()
