"""Small pipelines as people write them: the tuner has a legal schedule for each, and it computes the same."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

sys.path.insert(0, str(Path(__file__).parent))

from guarded import Guarded
from pipelines import KINDS, pipeline

from tilewright.compiler import interpret
from tilewright.compiler.build import build
from tilewright.compiler.ir import PrimFunc
from tilewright.compiler.schedule import Schedule, Trace
from tilewright.compiler.space import default_schedule
from tilewright.compiler.target import Target
from tilewright.tuner.opening import open_task
from tilewright.tuner.session import TuningSession
from tilewright.tuner.strategies import load_strategy
from tilewright.tuner.watchdog import in_time

Array = np.ndarray[Any, np.dtype[Any]]

SECONDS = 60.0
"""The longest that all of a pipeline may take: most take a tenth of a second."""

TARGETS = ("llvm", "llvm -num-threads=3")


def schedules(func: PrimFunc, target: Target, count: int) -> Iterator[tuple[str, PrimFunc]]:
    """The default schedule, and the first candidates that a search proposes."""
    yield "the default", default_schedule(func, target).func
    task = open_task(func, target)
    assert (dict(task.space_errors), bool(task.space.sketches)) == ({}, True)
    session = TuningSession(
        task.space,
        load_strategy("random"),
        count,
        target=task.target_key,
        codegen=task.codegen,
        defaults=task.defaults,
    )
    candidates = session.ask()
    assert candidates
    for candidate in candidates:
        yield candidate.sketch, replayed(candidate.trace, func).func


def replayed(trace: str, func: PrimFunc) -> Schedule:
    return Trace.from_json(json.loads(trace)).apply(func)


def inputs(func: PrimFunc, seed: int) -> list[Array]:
    """Small integers in every dtype, so that sums are exact in any order; outputs poisoned."""
    rng = np.random.default_rng(seed)
    return [
        interpret.poisoned(p)
        if p in func.outputs
        else rng.integers(-3, 4, interpret.poisoned(p).shape).astype(p.dtype.numpy)
        for p in func.params
    ]


def compared(expected: interpret.Expected, arrays: Sequence[Array], what: str) -> None:
    result = interpret.check(expected, arrays)
    assert result.ok, f"{what}: {result.message}"


def judge(seed: int, target: str, count: int, built: int) -> None:
    """The schedules of a pipeline under the checked interpreter; the first `built` of them as kernels, too,
    between pages without access."""
    func, kinds = pipeline(seed)
    what = f"pipeline {seed} ({', '.join(kinds)})"
    with in_time(what, SECONDS):
        arrays = inputs(func, seed)
        expected = interpret.expected(func, arrays)
        for number, (name, scheduled) in enumerate(schedules(func, Target.parse(target), count)):
            mine = [array.copy() for array in arrays]
            interpret.run(scheduled, mine)  # raises OutOfBounds
            compared(expected, mine, f"{what}, {name}, interpreted")
            if number < built:
                run_guarded(scheduled, target, arrays, expected, f"{what}, {name}, compiled")


def run_guarded(
    func: PrimFunc, target: str, arrays: Sequence[Array], expected: interpret.Expected, what: str
) -> None:
    kernel = build(func, target)
    for at_end in (True, False):
        memory = [Guarded(array, at_end=at_end) for array in arrays]
        try:
            kernel(*(each.array for each in memory))
            assert all(each.untouched() for each in memory), f"{what}: bytes beside an array were written"
            compared(expected, [each.array for each in memory], what)
        finally:
            for each in memory:
                each.free()


@pytest.mark.parametrize("seed", range(24))
def test_a_pipeline_has_a_legal_schedule_that_computes_the_same(seed: int) -> None:
    judge(seed, TARGETS[seed % 2], count=2, built=1)


@pytest.mark.slow
@pytest.mark.timeout(900)
@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("first", range(24, 144, 20))
def test_many_pipelines_have_legal_schedules_that_compute_the_same(first: int, target: str) -> None:
    for seed in range(first, first + 20):
        judge(seed, target, count=6, built=7)


def test_the_pipelines_are_of_all_kinds_and_the_same_each_time() -> None:
    drawn = [pipeline(seed) for seed in range(144)]
    assert {kind for _, kinds in drawn for kind in kinds} == set(KINDS)
    assert [kinds for _, kinds in drawn] == [pipeline(seed)[1] for seed in range(144)]
