"""One of several tasks that fails stops no other."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from synthetic import FakeSpace, space, tiles
from tasks_lab import Lab, Machine, func, states, trials

from tilewright.compiler import topi
from tilewright.compiler.build import build
from tilewright.compiler.ir import PrimFunc
from tilewright.compiler.schedule import Schedule
from tilewright.compiler.space import rules
from tilewright.compiler.space.groups import Group
from tilewright.compiler.space.rules import Structure
from tilewright.compiler.target import Target
from tilewright.db import StoreUnavailable, open_store
from tilewright.measure.errors import MeasureError
from tilewright.measure.messages import MeasureInput, MeasureResult
from tilewright.tuner.budget import Budget
from tilewright.tuner.tasks import tune_tasks
from tilewright.tuner.weighted_task import WeightedTask


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
