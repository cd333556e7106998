"""Loops that sketches share out to threads."""

from typing import Any

import numpy as np
import pytest

import tilewright as tw
from tilewright.compiler import interpret, topi
from tilewright.compiler.ir import LoopKind, PrimFunc
from tilewright.compiler.schedule import ScheduleError
from tilewright.compiler.space import default_schedule, space_of, threads
from tilewright.compiler.target import Target

from .conftest import WORKLOADS


def parallel(func: PrimFunc) -> list[str]:
    """The parallel loops, each with its extent."""
    found = {f.var: None for path, _ in func.blocks() for f in path if f.kind is LoopKind.PARALLEL}
    return [f"{v.name} in {v.extent!r}" for v in found]


def on(n: int) -> Target:
    return Target.parse(f"llvm -mcpu=x86-64-v3 -num-threads={n}")


MATMUL: dict[str, Any] = {"op": "matmul", "m": 512, "n": 512, "k": 512}


def test_every_sketch_of_a_large_product_shares_out_a_loop() -> None:
    func = topi.create(MATMUL)
    for sketch in space_of(func, on(2)).sketches:
        assert len(parallel(sketch.func)) == 1, sketch.name


def test_a_target_of_one_thread_has_no_parallel_loops() -> None:
    for sketch in space_of(topi.create(MATMUL), on(1)).sketches:
        assert parallel(sketch.func) == []


def test_a_small_nest_is_not_worth_a_launch() -> None:
    for sketch in space_of(topi.create({"op": "matmul", "m": 64, "n": 64, "k": 64}), on(2)).sketches:
        assert parallel(sketch.func) == []


def test_no_config_leaves_threads_idle_for_long() -> None:
    func = topi.create(MATMUL)
    for sketch in space_of(func, on(2)).sketches:
        for row in sketch.columns.random(20, np.random.default_rng(0)):
            made = sketch.resolve(row).apply(func).func
            loop = next(f for p, _ in made.blocks() for f in p if f.kind is LoopKind.PARALLEL)
            n = loop.var.extent.const
            assert n is not None and -(-n // 2) * 2 * 20 <= n * 21


def test_short_loops_are_fused_until_there_is_a_choice() -> None:
    func = topi.create({"op": "batch_matmul", "b": 12, "m": 128, "n": 128, "k": 64})
    loops = {loop for s in space_of(func, on(4)).sketches for loop in parallel(s.func)}
    assert any(loop.endswith(" * 12") for loop in loops), loops


def test_the_default_schedule_uses_the_threads() -> None:
    assert len(parallel(default_schedule(topi.create(MATMUL), on(2)).func)) == 1


@pytest.mark.parametrize("name", WORKLOADS)
def test_candidates_on_threads_compute_the_right_thing(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(threads, "MIN_STEPS", 1)
    monkeypatch.setattr(threads, "MIN_ELEMENTS", 1)
    func, target = topi.create(WORKLOADS[name]), Target.parse("llvm -num-threads=3")
    expected = interpret.expected(func, interpret.random_inputs(func, 0))
    built = 0
    for sketch in space_of(func, target).sketches:
        for row in sketch.columns.random(2, np.random.default_rng(2)):
            arrays = interpret.random_inputs(func, 0)
            try:
                schedule = sketch.resolve(row).apply(func)
            except ScheduleError:  # one tile holds all of so small a workload
                continue
            tw.build(schedule, target)(*arrays)
            result = interpret.check(expected, arrays)
            assert result.ok, f"{sketch.name}: {result.message}"
            built += 1
    assert built


@pytest.mark.parametrize(("shape", "axes"), [([1024, 520], [0, 1]), ([1, 1024, 520], [1, 2])])
def test_a_sum_of_everything_is_dealt_out_by_rows(shape: list[int], axes: list[int]) -> None:
    func = topi.create({"op": "reduce", "shape": shape, "function": "sum", "axes": axes})
    target = Target.parse("llvm -num-threads=2")
    for sketch in space_of(func, target).sketches:
        assert len(parallel(sketch.func)) == 1, sketch.name
    arrays = interpret.random_inputs(func, 0)
    expected = interpret.expected(func, interpret.random_inputs(func, 0))
    tw.build(func, target)(*arrays)
    assert interpret.check(expected, arrays).ok


def test_sums_in_strict_order_are_not_dealt_out() -> None:
    func = topi.create({"op": "reduce", "shape": [1024, 520], "function": "sum"})
    for sketch in space_of(func, Target.parse("llvm -math=strict -num-threads=2")).sketches:
        assert parallel(sketch.func) == []
