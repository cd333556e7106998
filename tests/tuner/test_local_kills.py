"""A local search that is killed, and resumed, comes to what it would have come to."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
from lab import Killed
from local_tuning import HERE, found, last_job, tune
from mortal import Mortal
from synthetic import FakeMachine, space, task, tiles

from tilewright.db import Store, open_store
from tilewright.db.records import Job
from tilewright.tuner.record import TuningRecord
from tilewright.tuner.standing import standing_job

pytestmark = pytest.mark.usefixtures("impatient")


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
