"""Search spaces and machines made of formulas: what a search does on them is known and fast."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.random import Generator

from tilewright.measure.messages import Failure, MeasureInput, MeasureResult
from tilewright.tuner.candidate import Candidate
from tilewright.tuner.outcome import Outcome
from tilewright.tuner.session import TuningSession
from tilewright.tuner.task import TuningTask

WORKLOAD = "ab" * 32
TARGET = "cd" * 32
HARDWARE = "ef" * 32

Rule = Callable[[np.ndarray], np.ndarray]


@dataclass(frozen=True)
class Knob:
    name: str
    domain: tuple[int, ...]


@dataclass(frozen=True)
class FakeTrace:
    steps: Mapping[str, Any]

    def to_json(self) -> dict[str, Any]:
        return {"version": 1, "steps": dict(self.steps)}

    def canonical_json(self) -> str:
        return json.dumps(self.to_json(), sort_keys=True, separators=(",", ":"))


@dataclass(frozen=True)
class FakeColumns:
    """Knobs with rules by label: a rule says which rows break it."""

    knobs: tuple[Knob, ...]
    rules: Mapping[str, Rule]
    index: int = 0

    def valid(self, pop: np.ndarray) -> np.ndarray:
        broken = [rule(pop) for rule in self.rules.values()]
        return ~np.any(broken, axis=0) if broken else np.ones(len(pop), dtype=bool)

    def violations(self, pop: np.ndarray) -> dict[str, int]:
        return {label: int(rule(pop).sum()) for label, rule in self.rules.items()}

    def features(self, pop: np.ndarray) -> np.ndarray:
        rows = np.zeros((len(pop), 17), dtype=np.float32)
        rows[:, : len(self.knobs)] = pop
        rows[:, 8 : 8 + len(self.knobs)] = np.cumprod(pop, axis=1)
        rows[:, 16] = self.index
        return rows

    def every(self, most: int) -> np.ndarray | None:
        if math.prod(len(knob.domain) for knob in self.knobs) > most:
            return None
        grid = np.meshgrid(*(knob.domain for knob in self.knobs), indexing="ij")
        rows = np.stack([g.ravel() for g in grid], axis=1) if grid else np.empty((1, 0), dtype=np.int64)
        return rows[self.valid(rows)]

    def random(self, n: int, rng: Generator) -> np.ndarray:
        found = np.empty((0, len(self.knobs)), dtype=np.int64)
        for _ in range(8):
            drawn = [rng.choice(np.array(knob.domain), max(2 * n, 512)) for knob in self.knobs]
            rows = np.stack(drawn, axis=1)
            found = np.concatenate([found, rows[self.valid(rows)]])
            if len(found) >= n:
                break
        return found[:n]

    def mutate(self, pop: np.ndarray, n: int, rng: Generator) -> np.ndarray:
        first, second = pop[rng.integers(0, len(pop), n)], pop[rng.integers(0, len(pop), n)]
        child = np.where(rng.random(first.shape) < 0.25, second, first)
        for column, knob in enumerate(self.knobs):
            anew = rng.random(n) < 1.5 / len(self.knobs)
            child[anew, column] = rng.choice(np.array(knob.domain), int(anew.sum()))
        return child[self.valid(child)]

    def neighbours(self, pop: np.ndarray) -> np.ndarray:
        """Another value of one knob, the nearest in its domain first."""
        found = [(0, tuple(row)) for row in pop.tolist()]
        for row in pop:
            for column, knob in enumerate(self.knobs):
                at = knob.domain.index(int(row[column]))
                for to, value in enumerate(knob.domain):
                    moved = row.copy()
                    moved[column] = value
                    found.append((abs(to - at), tuple(moved.tolist())))
        found.sort(key=lambda pair: pair[0])
        rows = [row for row in dict.fromkeys(row for _, row in found) if list(row) not in pop.tolist()]
        every = np.array(rows, dtype=np.int64).reshape(len(rows), len(self.knobs))
        return every[self.valid(every)]


@dataclass(frozen=True)
class FakeDecisions:
    knobs: Mapping[str, int]
    exact: bool


@dataclass(frozen=True)
class FakeSketch:
    name: str
    columns: FakeColumns

    def decisions(self, trace: Mapping[str, Any]) -> FakeDecisions | None:
        steps = trace.get("steps")
        names = {knob.name for knob in self.columns.knobs}
        if not isinstance(steps, dict) or not names <= steps.keys():
            return None
        exact = steps.keys() == {"sketch", *names} and steps["sketch"] == self.name
        return FakeDecisions({name: steps[name] for name in names}, exact)

    def resolve(self, row: Sequence[int]) -> FakeTrace:
        names = (knob.name for knob in self.columns.knobs)
        values = dict(zip(names, (int(v) for v in row), strict=True))
        return FakeTrace({"sketch": self.name, **values})


@dataclass(frozen=True)
class FakeSpace:
    sketches: tuple[FakeSketch, ...]
    workload_key: str = WORKLOAD
    refused: Mapping[str, str] = field(default_factory=dict)


def space(*shapes: Mapping[str, Sequence[int]], rules: Mapping[str, Rule] | None = None) -> FakeSpace:
    """One sketch for each shape (knob name -> values): s0, s1, …"""
    return FakeSpace(
        tuple(
            FakeSketch(
                f"s{index}",
                FakeColumns(
                    tuple(Knob(name, tuple(domain)) for name, domain in shape.items()), rules or {}, index
                ),
            )
            for index, shape in enumerate(shapes)
        )
    )


POWERS = tuple(2**n for n in range(8))


def tiles(sketches: int = 2) -> FakeSpace:
    """Six tile factors a sketch and a budget of registers, about one configuration in four legal."""
    shape = {f"k{n}": POWERS for n in range(6)}
    return space(*[shape] * sketches, rules={"registers": lambda pop: pop[:, 0] * pop[:, 1] > 64})


def tile_seconds(trace: Mapping[str, Any]) -> float:
    """A smooth bowl over the logarithms of the factors, whose sketches differ by a tenth; least in s1."""
    steps = trace["steps"]
    logs = [np.log2(steps[f"k{n}"]) for n in range(6)]
    goal = (2, 4, 3, 5, 1, 6)
    bowl = sum((x - g) ** 2 * (1 + n % 3) for n, (x, g) in enumerate(zip(logs, goal, strict=True)))
    crossed = abs(logs[2] + logs[3] - 8)
    return float(1e-3 * (1 + 0.02 * bowl + 0.05 * crossed) * (1.1 if steps["sketch"] == "s0" else 1.0))


def task(of: FakeSpace, codegen: str = "1") -> TuningTask:
    return TuningTask(
        name="bowl",
        workload={"program": "bowl"},
        script="bowl()",
        target={"kind": "llvm"},
        target_key=TARGET,
        space=of,
        codegen=codegen,
        feature_schema=1,
        flops=2_000_000,
    )


def session(of: FakeSpace, strategy: Any, trials: int, **options: Any) -> TuningSession:
    return TuningSession(of, strategy, trials, target=TARGET, codegen=options.pop("codegen", "1"), **options)


def timed(candidate: Candidate, seconds: Callable[[Mapping[str, Any]], float] = tile_seconds) -> Outcome:
    return Outcome.timed(seconds(json.loads(candidate.trace)))


def run(
    of: TuningSession,
    outcome: Callable[[Candidate], Outcome] = timed,
    shuffle: Generator | None = None,
) -> list[Candidate]:
    """Ask as early as allowed and tell each batch (in a shuffled order) until the search is finished."""
    told: list[Candidate] = []
    while not of.finished:
        while of.ready:
            of.ask()
        waiting = list(of.outstanding)
        batch = [candidate for candidate in waiting if candidate.batch == waiting[0].batch] if waiting else []
        if shuffle is not None:
            # Results of the batch after may come before those that are waited for.
            batch = [waiting[n] for n in shuffle.permutation(len(waiting))]
        for candidate in batch:
            of.tell(candidate.number, outcome(candidate))
            told.append(candidate)
            if of.finished:
                break
    return told


@dataclass
class FakeMachine:
    """Measures by formula; counts, and may fail."""

    seconds: Callable[[Mapping[str, Any]], float] = tile_seconds
    fails: Callable[[int], str | None] = lambda number: None
    of_workload: bool = False
    before: Callable[[int], None] = lambda number: None
    items: list[MeasureInput] = field(default_factory=list)

    def measure(self, item: MeasureInput, ahead: MeasureInput | None = None) -> MeasureResult:
        number = len(self.items)
        self.items.append(item)
        self.before(number)
        kind = self.fails(number)
        if kind is not None:
            message = f"{kind} on purpose"
            failure = Failure(kind, message, of_workload=self.of_workload)  # type: ignore[arg-type]
            return MeasureResult.failed(item, failure)
        seconds = self.seconds(item.trace)
        return MeasureResult(item.item, item.attempt, seconds, (seconds,), error=0.1)
