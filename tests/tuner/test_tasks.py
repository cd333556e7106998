"""Several tasks with one budget."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from inspect import signature
from pathlib import Path
from typing import Any

import pytest
from synthetic import FakeMachine, FakeSpace, space, task, tile_seconds, tiles

from tilewright.compiler import te, topi
from tilewright.compiler.build import build
from tilewright.compiler.ir import PrimFunc
from tilewright.compiler.schedule import Schedule
from tilewright.compiler.space import rules
from tilewright.compiler.space.groups import Group
from tilewright.compiler.space.rules import Structure
from tilewright.compiler.target import Hardware, Target, TargetError
from tilewright.db import Store, StoreUnavailable, open_store
from tilewright.measure.errors import MeasureError
from tilewright.measure.messages import MeasureInput, MeasureResult
from tilewright.tuner.budget import Budget
from tilewright.tuner.errors import NotASqlStore, UnknownStrategy
from tilewright.tuner.snapshot import Snapshot
from tilewright.tuner.strategies import DEFAULT
from tilewright.tuner.task import TuningTask
from tilewright.tuner.tasks import TasksTuner, tune_tasks
from tilewright.tuner.tasks_record import TasksRecord
from tilewright.tuner.tune import Tuner
from tilewright.tuner.weighted_task import Entry, WeightedTask, named_tasks

HERE = Hardware.of({"architecture": "test"})
Seconds = Callable[[Mapping[str, Any]], float]


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    with open_store(f"sqlite:///{tmp_path}/t.db") as store:
        yield store


class Clock:
    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


def func(name: str) -> PrimFunc:
    x = te.placeholder((8,), "float32", name="X")
    return te.create_prim_func([x, te.compute((8,), lambda i: x[i], name="Y")], name=name)


def flat(seconds: float) -> Seconds:
    return lambda trace: seconds


@dataclass
class Machine(FakeMachine):
    """Measures each task by its own formula; `task` finds it by the program."""

    of: Mapping[str, Seconds] = field(default_factory=dict)
    broken: Mapping[str, Exception] = field(default_factory=dict)

    def measure(self, item: MeasureInput, ahead: MeasureInput | None = None) -> MeasureResult:
        name = item.workload["program"]
        if name in self.broken:
            raise self.broken[name]
        self.seconds = self.of.get(name, tile_seconds)
        return super().measure(item)


@dataclass
class Lab:
    """Tasks by name, with spaces and times of their own."""

    names: tuple[str, ...] = ("a", "b")
    weights: Mapping[str, float] = field(default_factory=dict)
    spaces: Mapping[str, Any] = field(default_factory=dict)
    limits: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    machine: Machine = field(default_factory=Machine)

    def tune(self, budget: Budget, **options: Any) -> TasksRecord:
        tasks = {
            name: WeightedTask(
                func=func(name), weight=self.weights.get(name, 1.0), **self.limits.get(name, {})
            )
            for name in self.names
        }
        options = {"strategy": "random", **options}
        tuner = TasksTuner(tasks=tasks, hardware=HERE, budget=budget, open=self.open, **options)
        return tuner.run(self.machine)

    def open(self, weighted: WeightedTask) -> TuningTask:
        name = weighted.func.name
        of = self.spaces.get(name, tiles())
        if isinstance(of, Exception):
            raise of
        key = f"{self.names.index(name):02d}" * 32
        named = FakeSpace(of.sketches, key, of.refused)
        return replace(task(named), name=name, workload={"program": name})


def trials(record: TasksRecord) -> dict[str, int]:
    return {result.name: result.trial_count for result in record.results}


def states(record: TasksRecord) -> dict[str, str]:
    return {result.name: result.state for result in record.results}


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


def test_one_task_whose_space_cannot_be_made_stops_no_other() -> None:
    lab = Lab(names=("a", "b", "c", "d", "e"), spaces={"c": KeyError("no such loop")})
    record = lab.tune(Budget(60))
    assert states(record) == {"a": "completed", "b": "completed", "c": "space_error"} | {
        name: "completed" for name in "de"
    }
    assert (record.results[2].reason, record.results[2].seconds, record.results[2].trial_count) == (
        "task 'c': KeyError: 'no such loop'",
        None,
        0,
    )
    assert record.trial_count == 60
    assert record.weighted_seconds is None
    assert record.failed == (record.results[2],)


def test_one_task_without_a_legal_candidate_stops_no_other() -> None:
    nothing = space({"a": (1, 2)}, rules={"registers": lambda pop: pop[:, 0] > 0})
    record = Lab(spaces={"a": nothing}).tune(Budget(40))
    assert (states(record), trials(record)) == ({"a": "failed", "b": "completed"}, {"a": 0, "b": 40})
    assert record.results[0].reason == (
        "task 'a': NoLegalCandidate: no legal candidate: none of 2 configurations tried of 1 sketch (s0) "
        "satisfies every constraint (violations: registers: 2)"
    )


def test_one_task_whose_trials_all_fail_gets_a_few_turns_and_stops_no_other() -> None:
    class Failing(Machine):
        def measure(self, item: MeasureInput, ahead: MeasureInput | None = None) -> MeasureResult:
            self.fails = lambda _: "run_error" if item.workload["program"] == "a" else None
            return super().measure(item)

    record = Lab(machine=Failing()).tune(Budget(100))
    assert states(record) == {"a": "failed", "b": "completed"}
    assert trials(record) == {"a": 16, "b": 84}
    assert record.results[0].reason == (
        "none of 16 trials gave a time (run_error: 16); all 100 trials of the budget of all tasks are done; "
        "the first one: run_error on purpose"
    )


def test_what_a_task_raises_in_the_middle_of_its_search_stops_no_other() -> None:
    of = tiles()

    class Odd(FakeSpace):
        pass

    broken = Odd(of.sketches)
    columns = of.sketches[0].columns
    object.__setattr__(columns, "features", lambda pop: 1 // 0)
    record = Lab(spaces={"a": broken}).tune(Budget(30))
    assert states(record) == {"a": "failed", "b": "completed"}
    assert record.results[0].reason.startswith("task 'a': ZeroDivisionError: ")


@pytest.mark.parametrize("error", [MeasureError("no process"), StoreUnavailable("the disk is gone")])
def test_what_concerns_all_tasks_is_raised(error: Exception) -> None:
    lab = Lab()
    lab.machine.broken = {"b": error}
    with pytest.raises(type(error)):
        lab.tune(Budget(30))


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


def test_tasks_are_searched_as_one_is_where_nothing_else_is_said() -> None:
    assert signature(tune_tasks).parameters["strategy"].default == DEFAULT
    assert TasksTuner(tasks={}, hardware=HERE, budget=Budget(8)).strategy == DEFAULT


def test_one_workload_may_be_tuned_for_two_targets() -> None:
    named = named_tasks([(func("f"), 1.0), (func("f"), 1.0, "llvm -num-threads=2")], "llvm")
    assert list(named) == ["f", "f (2)"]


def test_real_kernels_are_tuned_together_and_one_with_a_bad_space_stops_none(tmp_path: Path) -> None:
    def wrong(sch: Schedule) -> None:
        raise LookupError("I know no such block")

    matmul, dense = (
        topi.create(request)
        for request in (
            {"op": "matmul", "m": 16, "n": 24, "k": 8, "dtype": "float32"},
            {"op": "dense", "m": 8, "n": 40, "k": 24, "bias": True},
        )
    )
    with open_store(f"sqlite:///{tmp_path}/t.db") as store:
        record = tune_tasks(
            [(matmul, 2.0), (dense, 1.0), WeightedTask(func=func("copy"), space=wrong)],
            trials=10,
            store=store,
            progress=False,
        )
        assert states(record) == {"matmul": "completed", "dense": "completed", "copy": "space_error"}
        assert record.results[2].reason == "task 'copy': LookupError: I know no such block"
        assert record.trial_count == 10
        assert all(r.record and r.record.trace for r in record.results[:2])


def test_a_rule_that_fails_on_one_of_five_workloads_is_named_and_all_five_are_tuned_and_built(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def fragile(func: PrimFunc, group: Group, target: Target) -> Iterator[Structure]:
        if func.name == "dense":
            raise IndexError("tuple index out of range")
        yield from ()

    monkeypatch.setattr(rules, "RULES", (fragile, *rules.RULES))
    funcs = [
        topi.create(request)
        for request in (
            {"op": "matmul", "m": 16, "n": 24, "k": 8, "dtype": "float32"},
            {"op": "dense", "m": 7, "n": 40, "k": 24, "bias": True},
            {"op": "softmax", "m": 8, "n": 40},
            {"op": "layer_norm", "m": 8, "n": 40},
        )
    ]
    record = tune_tasks([(each, 1.0) for each in [*funcs, func("copy")]], trials=20, progress=False)
    assert [(r.name, r.seconds is not None, list(r.space_errors)) for r in record.results] == [
        ("matmul", True, []),
        ("dense", True, ["fragile"]),
        ("softmax", True, []),
        ("layer_norm", True, []),
        ("copy", True, []),
    ]
    (message,) = record.results[1].space_errors.values()
    assert message.startswith("rule 'fragile' fails on 'dense': IndexError: tuple index out of range (at ")
    for each in funcs:
        assert build(each).schedule_source.kind == "default"
