"""How several tasks share a budget."""

from __future__ import annotations

from inspect import signature

import pytest
from synthetic import space
from tasks_lab import HERE, Lab, Machine, Seconds, func, states, trials

from tilewright.tuner.budget import Budget
from tilewright.tuner.strategies import DEFAULT
from tilewright.tuner.tasks import TasksTuner, tune_tasks
from tilewright.tuner.tune import Tuner
from tilewright.tuner.weighted_task import WeightedTask


class Clock:
    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


def flat(seconds: float) -> Seconds:
    return lambda trace: seconds


def test_the_budget_of_all_tasks_is_kept_exactly() -> None:
    lab = Lab(names=("a", "b", "c"))
    record = lab.tune(Budget(50))
    assert sum(trials(record).values()) == record.trial_count == 50
    assert record.reason == "all 50 trials of the budget of all tasks are done"
    assert {result.reason for result in record.results} == {record.reason}


def test_a_task_with_a_flat_cost_gets_its_early_stop_quota_and_the_other_one_the_rest() -> None:
    lab = Lab(limits={"a": {"patience": 16}, "b": {"patience": None}})
    lab.machine.of = {"a": flat(1.0)}
    record = lab.tune(Budget(200))
    assert trials(record) == {"a": 17, "b": 183}
    assert record.results[0].reason == (
        "converged: 16 trials in a row brought nothing faster than trial 0 (1 s)"
    )


def test_the_heavier_task_gets_more_trials() -> None:
    record = Lab(weights={"a": 20.0}).tune(Budget(160))
    found = trials(record)
    assert found["a"] > 2 * found["b"] >= 8


def test_all_tasks_may_converge_before_the_budget_is_used_up() -> None:
    lab = Lab(limits={name: {"patience": 8} for name in "ab"})
    lab.machine.of = {name: flat(1.0) for name in "ab"}
    record = lab.tune(Budget(500))
    assert (trials(record), record.reason) == ({"a": 9, "b": 9}, "no task wants more trials")


def test_each_task_keeps_its_own_limits() -> None:
    lab = Lab(
        names=("trials", "target", "seconds"),
        limits={"trials": {"trials": 5}, "target": {"target_seconds": 9.0}, "seconds": {"seconds": 3.0}},
    )
    clock = Clock()

    def second(number: int) -> None:
        clock.now += 1.0

    lab.machine.of, lab.machine.before = {"target": flat(9.0), "seconds": flat(2.0)}, second
    record = lab.tune(Budget(100), clock=clock)
    assert [(r.name, r.trial_count, r.reason) for r in record.results] == [
        ("trials", 5, "all 5 trials of the budget are done"),
        ("target", 1, "trial 0 reached the target: 9 s, at most 9 s"),
        ("seconds", 3, "the 3 s of the budget are used up"),
    ]


def test_the_seconds_of_all_tasks_are_wall_time() -> None:
    clock, lab = Clock(), Lab()

    def second(number: int) -> None:
        clock.now += 1.0

    lab.machine.before = second
    record = lab.tune(Budget(100, seconds=21.0), clock=clock)
    assert (record.trial_count, record.reason) == (21, "the 21 s of the budget of all tasks are used up")
    # The final rounds come after it; each record counts its own turns.
    assert record.wall_seconds == sum(each.record.wall_seconds for each in record.results if each.record)


def test_a_search_of_all_tasks_ends_at_the_target_of_their_weighted_sum() -> None:
    lab = Lab(weights={"a": 3.0})
    lab.machine.of = {"a": flat(1.0), "b": flat(2.0)}
    record = lab.tune(Budget(100, target_seconds=5.0))
    assert (trials(record), record.weighted_seconds, record.reason) == (
        {"a": 4, "b": 4},
        5.0,
        "the weighted sum reached the target: 5 s, at most 5 s",
    )


def test_a_search_of_all_tasks_ends_when_no_task_gets_better() -> None:
    lab = Lab()
    lab.machine.of = {"a": flat(1.0), "b": flat(2.0)}
    record = lab.tune(Budget(100, patience=11))
    # Four of each task, of which the first is its best, and eight more.
    assert (record.trial_count, record.reason) == (
        16,
        "converged: 11 trials in a row brought no task a new best",
    )


def test_a_space_that_is_exhausted_leaves_its_share_to_the_others() -> None:
    lab = Lab(spaces={"a": space({"k0": range(3)})})
    lab.machine.of = {"a": flat(1.0)}
    record = lab.tune(Budget(40))
    assert (states(record), trials(record)) == ({"a": "exhausted", "b": "completed"}, {"a": 3, "b": 37})


def test_a_budget_too_small_for_all_tasks_says_which_had_no_turn() -> None:
    record = Lab(names=("a", "b", "c")).tune(Budget(6))
    assert trials(record) == {"a": 4, "b": 2, "c": 0}
    assert (record.results[2].state, record.results[2].reason) == (
        "failed",
        "it had no turn: all 6 trials of the budget of all tasks are done",
    )


@pytest.mark.parametrize("strategy", ["random", "evolutionary"])
def test_the_same_results_divide_the_budget_in_the_same_way(strategy: str) -> None:
    first, second = (Lab(weights={"a": 2.0}).tune(Budget(72), strategy=strategy) for _ in range(2))
    assert (first.turns, trials(first)) == (second.turns, trials(second))
    assert [r.seconds for r in first.results] == [r.seconds for r in second.results]


def test_a_task_alone_is_searched_as_by_tune() -> None:
    lab = Lab(names=("a",))
    record = lab.tune(Budget(24))
    machine = Machine()
    opened = lab.open(WeightedTask(func=func("a")))
    alone = Tuner(task=opened, hardware=HERE, trials=24, strategy="random").run(machine)
    assert [item.trace for item in lab.machine.items] == [item.trace for item in machine.items]
    assert record.results[0].seconds == alone.seconds


def test_tasks_are_searched_as_one_is_where_nothing_else_is_said() -> None:
    assert signature(tune_tasks).parameters["strategy"].default == DEFAULT
    assert TasksTuner(tasks={}, hardware=HERE, budget=Budget(8)).strategy == DEFAULT
