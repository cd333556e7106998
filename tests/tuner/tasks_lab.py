"""Several tasks with spaces and times of their own, on a machine that is made up."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from synthetic import FakeMachine, FakeSpace, task, tile_seconds, tiles

from tilewright.compiler import te
from tilewright.compiler.ir import PrimFunc
from tilewright.compiler.target import Hardware
from tilewright.measure.messages import MeasureInput, MeasureResult
from tilewright.tuner.budget import Budget
from tilewright.tuner.task import TuningTask
from tilewright.tuner.tasks import TasksTuner
from tilewright.tuner.tasks_record import TasksRecord
from tilewright.tuner.weighted_task import WeightedTask

HERE = Hardware.of({"architecture": "test"})
Seconds = Callable[[Mapping[str, Any]], float]


def func(name: str) -> PrimFunc:
    x = te.placeholder((8,), "float32", name="X")
    return te.create_prim_func([x, te.compute((8,), lambda i: x[i], name="Y")], name=name)


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
