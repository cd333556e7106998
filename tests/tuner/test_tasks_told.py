"""What is stored and told of several tasks, what they are called, and which are refused."""

from __future__ import annotations

import pytest
from tasks_lab import Lab, func

from tilewright.compiler import topi
from tilewright.compiler.target import TargetError
from tilewright.db import Store
from tilewright.tuner.budget import Budget
from tilewright.tuner.errors import NotASqlStore, UnknownStrategy
from tilewright.tuner.snapshot import Snapshot
from tilewright.tuner.tasks import tune_tasks
from tilewright.tuner.weighted_task import Entry, WeightedTask, named_tasks


def test_every_turn_says_why(store: Store) -> None:
    record = Lab().tune(Budget(40), store=store)
    assert [turn.why for turn in record.turns[:2]] == ["warm-up", "warm-up"]
    assert {turn.why for turn in record.turns[2:]} == {"gradient"}
    assert all((turn.promise or 0) > 0 for turn in record.turns[2:])
    assert [result.turns for result in record.results] == [
        sum(turn.task == n for turn in record.turns) for n in range(2)
    ]


def test_the_store_has_a_job_for_each_task(store: Store) -> None:
    record = Lab().tune(Budget(24), store=store)
    jobs = [store.job(result.record.job or "") for result in record.results if result.record]
    assert [(job.state, job.done, job.reason) for job in jobs] == [
        ("completed", result.trial_count, record.reason) for result in record.results
    ]
    # Nothing was asked for that was not measured.
    assert [store.trial_counts(job.id)["cancelled"] for job in jobs] == [0, 0]


def test_an_interruption_ends_the_jobs_of_all_tasks(store: Store) -> None:
    def interrupt(number: int) -> None:
        if number == 10:
            raise KeyboardInterrupt

    lab = Lab()
    lab.machine.before = interrupt
    with pytest.raises(KeyboardInterrupt):
        lab.tune(Budget(40), store=store)
    assert {job.state for job in store.jobs().items} <= {"cancelled", "paused"}
    assert {job.reason.split(":")[0] for job in store.jobs().items} == {
        "interrupted after 4 trials",
        "interrupted after 6 trials",
    }


def test_an_observer_hears_of_every_trial_by_its_task() -> None:
    seen: list[tuple[str, int]] = []

    def observe(name: str, snapshot: Snapshot) -> None:
        seen.append((name, snapshot.done))

    Lab().tune(Budget(9), observer=observe)
    assert list(dict.fromkeys(seen)) == [(n, d) for n in "ab" for d in range(1, 5)] + [(seen[8][0], 5)]


@pytest.mark.parametrize(
    ("entries", "message"),
    [
        ([], "there is no task to tune"),
        ([func("f")], "a task is \\(func, weight\\[, target\\]\\) or WeightedTask\\(func=…\\), not "),
        ([(func("f"), 1.0), (func("g"), 2.0)], "tasks 'f' and 'g' are one workload: give it once, with both"),
        ([(func("f"), 0.0)], "the weight of task 'f' is finite and above 0, not 0.0"),
        ([(func("f"), "3")], "the weight of task 'f' is finite and above 0, not '3'"),
        (
            [WeightedTask(func="f")],  # type: ignore[arg-type]
            "a task is \\(func, weight\\[, target\\]\\) or WeightedTask\\(func=…\\), not W",
        ),
        ([WeightedTask(func=func("f"), patience=0)], "a budget's patience is at least 1, not 0"),
    ],
)
def test_tasks_that_are_none_are_refused_before_anything_is_measured(
    entries: list[Entry], message: str
) -> None:
    with pytest.raises(ValueError, match=f"^{message}"):
        tune_tasks(entries, trials=4, progress=False)


def test_a_target_that_is_none_is_refused() -> None:
    with pytest.raises(TargetError):
        tune_tasks([(func("f"), 1.0, "vax")], progress=False)


def test_a_strategy_or_a_store_that_is_none_is_refused() -> None:
    with pytest.raises(UnknownStrategy):
        Lab().tune(Budget(8), strategy="lucky")
    with pytest.raises(NotASqlStore):
        Lab().tune(Budget(8), store=object())


def test_tasks_are_called_by_their_programs_or_as_they_wish() -> None:
    small, large = (
        topi.create({"op": "matmul", "m": m, "n": 8, "k": 8, "dtype": "float32"}) for m in (8, 16)
    )
    named = named_tasks([(small, 1.0), (large, 2.0), WeightedTask(func=func("f"), name="copy")], "llvm")
    assert [(name, task.weight) for name, task in named.items()] == [
        ("matmul", 1.0),
        ("matmul (2)", 2.0),
        ("copy", 1.0),
    ]


def test_a_name_that_is_taken_is_no_tasks_second_name() -> None:
    sizes = [topi.create({"op": "matmul", "m": m, "n": 8, "k": 8, "dtype": "float32"}) for m in (8, 16, 32)]
    names = ["a", "a", "a (2)"]
    tasks = [WeightedTask(func=func, name=name) for func, name in zip(sizes, names, strict=True)]
    assert list(named_tasks(tasks, "llvm")) == ["a", "a (2)", "a (2) (2)"]


def test_one_workload_may_be_tuned_for_two_targets() -> None:
    named = named_tasks([(func("f"), 1.0), (func("f"), 1.0, "llvm -num-threads=2")], "llvm")
    assert list(named) == ["f", "f (2)"]
