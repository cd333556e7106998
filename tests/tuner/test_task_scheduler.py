"""Which of several tasks gets the next trials."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tilewright.tuner.task_scheduler import Share, TaskScheduler, Turn

Curve = Callable[[int], float | None]
"""From trials to best seconds."""


def divided(
    tasks: Sequence[Share], curves: Sequence[Curve], turns: int, patience: int | None = None
) -> tuple[list[Turn], Counter[str]]:
    """The turns, and the trials of each task, where a turn is 8 trials."""
    scheduler, taken = TaskScheduler(tasks), list[Turn]()
    trials: Counter[str] = Counter()
    since: Counter[int] = Counter()
    best: dict[int, float | None] = {}
    for _ in range(turns):
        turn = scheduler.next()
        if turn is None:
            break
        taken.append(turn)
        name = tasks[turn.task].name
        trials[name] += 8
        now = curves[turn.task](trials[name])
        since[turn.task] = since[turn.task] + 8 if best.get(turn.task) == now else 0
        best[turn.task] = now
        scheduler.told(turn.task, trials[name], now)
        if patience is not None and since[turn.task] >= patience:
            scheduler.over(turn.task)
    return taken, trials


def flat(seconds: float) -> Curve:
    return lambda trials: seconds


def falling(seconds: float) -> Curve:
    return lambda trials: seconds * (0.2 + 8 / trials)


def never(trials: int) -> None:
    return None


def test_every_task_is_warmed_up_before_any_has_a_second_turn() -> None:
    taken, _ = divided([Share(name) for name in "abc"], [falling(1.0), flat(9.0), flat(1.0)], 4)
    assert [(turn.task, turn.why) for turn in taken] == [
        (0, "warm-up"),
        (1, "warm-up"),
        (2, "warm-up"),
        (1, "gradient"),
    ]


def test_the_promise_is_ansors_gradient() -> None:
    scheduler = TaskScheduler([Share("a", weight=3.0), Share("b")])
    for trials, best in ((8, 10.0), (16, 7.0), (32, 4.0)):
        scheduler.told(0, trials, best)
    # Four rounds: the window of 3 reaches back to the first, since which 6 s were gained; hoped for: 4 s / 4.
    assert scheduler.promise(0) == pytest.approx(3.0 * (0.2 * 6.0 / 3.0 + 0.8 * 4.0 / 4.0))


def test_a_task_that_is_far_behind_one_of_its_kind_promises_to_catch_up() -> None:
    scheduler = TaskScheduler([Share("a", flops=100.0, kind="k"), Share("b", flops=10.0, kind="k")])
    scheduler.told(0, 80, 50.0)
    scheduler.told(1, 8, 1.0)
    # At half the 10 operations a second of b, a would take 20 s: that is 30 s less, more than 50 s / 10.
    assert scheduler.promise(0) == pytest.approx(0.8 * 30.0)
    assert scheduler.promise(1) == pytest.approx(0.8 * 1.0)


@pytest.mark.parametrize(
    "other", [Share("b", flops=10.0, kind="other"), Share("b", kind="k"), Share("b", flops=10.0, kind="")]
)
def test_tasks_of_other_kinds_or_unknown_operations_promise_nothing_for_one_another(other: Share) -> None:
    scheduler = TaskScheduler([Share("a", flops=100.0, kind=other.kind and "k"), other])
    scheduler.told(0, 80, 50.0)
    scheduler.told(1, 8, 1.0)
    assert scheduler.promise(0) == pytest.approx(0.8 * 5.0)


def test_the_heavier_of_two_like_tasks_gets_more() -> None:
    _, trials = divided([Share("heavy", weight=9.0), Share("light")], [falling(1.0), falling(1.0)], 40)
    assert trials["heavy"] > 2 * trials["light"] > 0


def test_a_task_that_no_longer_gains_leaves_the_rest_to_the_other() -> None:
    tasks, curves = [Share("flat"), Share("falling")], [flat(1.0), falling(1.0)]
    _, trials = divided(tasks, curves, 60, patience=32)
    # 8 trials, and 32 in vain.
    assert trials == {"flat": 40, "falling": 440}


def test_a_task_without_a_time_gets_a_few_turns_and_then_only_what_nobody_wants() -> None:
    _, trials = divided([Share("dead"), Share("falling")], [never, falling(1.0)], 30)
    assert trials == {"dead": 32, "falling": 208}


def test_tasks_of_which_none_has_a_time_take_turns() -> None:
    taken, _ = divided([Share("a"), Share("b")], [never, never], 20)
    assert Counter(turn.task for turn in taken) == {0: 10, 1: 10}


def test_the_last_task_gets_what_is_left() -> None:
    scheduler = TaskScheduler([Share("a"), Share("b")])
    scheduler.over(0)
    assert scheduler.next() == Turn(1, "the only one")
    scheduler.over(1)
    assert scheduler.next() is None


@settings(max_examples=50, deadline=None)
@given(
    weights=st.lists(st.floats(0.01, 100.0), min_size=2, max_size=5),
    starts=st.lists(st.floats(1e-6, 1.0), min_size=5, max_size=5),
)
def test_the_same_results_divide_the_budget_in_the_same_way_and_starve_nobody(
    weights: list[float], starts: list[float]
) -> None:
    tasks = [Share(str(n), weight) for n, weight in enumerate(weights)]
    curves = [falling(start) for start in starts[: len(tasks)]]
    first, second = divided(tasks, curves, 30), divided(tasks, curves, 30)
    assert first == second
    assert set(first[1]) == {str(n) for n in range(len(tasks))}


@pytest.mark.parametrize("weight", [0.0, -1.0, float("nan"), float("inf")])
def test_a_weight_that_is_none_is_refused_by_the_tasks_name(weight: float) -> None:
    with pytest.raises(ValueError, match=r"^the weight of task 'a' is finite and above 0, not "):
        Share("a", weight)


def test_at_least_one_turn_warms_a_task_up() -> None:
    with pytest.raises(ValueError, match=r"^each task is warmed up for at least 1 turn, not 0$"):
        TaskScheduler([Share("a")], warm_up=0)
