"""Which job a local search takes up, and what it needs for that."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from lab import Killed
from local_tuning import HERE, last_job, tune
from mortal import Mortal
from synthetic import FakeMachine, task, tiles

import tilewright
from tilewright.compiler import topi
from tilewright.compiler.schedule import ScheduleError
from tilewright.compiler.space import SpaceError
from tilewright.compiler.target import Target
from tilewright.compiler.target.hardware import detect
from tilewright.db import Store
from tilewright.db.records import Job
from tilewright.tuner import local
from tilewright.tuner import tune as tune_module
from tilewright.tuner.errors import CannotResume
from tilewright.tuner.opening import open_task
from tilewright.tuner.standing import standing_job
from tilewright.tuner.strategies import load_strategy
from tilewright.tuner.tune import Tuner

pytestmark = pytest.mark.usefixtures("impatient")


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
