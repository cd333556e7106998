"""Products of rows with rows: sums in lanes along the reduction, whatever the shape and the dtype."""

import numpy as np
import pytest

from tilewright.compiler import interpret, topi
from tilewright.compiler.build import build
from tilewright.compiler.space import Sketch, space_of
from tilewright.compiler.target import Target


def dot_of(workload: dict[str, object], target: Target) -> Sketch:
    sketches = space_of(topi.create(workload), target).sketches
    return next(s for s in sketches if "lanes k, added up" in s.name)


@pytest.mark.parametrize("dtype", ["float32", "float64", "float16", "bfloat16", "int32"])
@pytest.mark.parametrize(("m", "n", "k"), [(2, 3, 16), (5, 7, 37), (4, 33, 64), (13, 5, 127)])
def test_every_tile_of_rows_is_summed_up(m: int, n: int, k: int, dtype: str, target: Target) -> None:
    workload = {"op": "dense", "m": m, "n": n, "k": k, "dtype": dtype, "weights": "nk", "bias": True}
    func = topi.create(workload)
    sketch = dot_of(workload, target)
    expected = interpret.expected(func, interpret.random_inputs(func, 0))
    for row in sketch.columns.random(3, np.random.default_rng(m)):
        arrays = interpret.random_inputs(func, 0)
        build(sketch.resolve(row).apply(func), target)(*arrays)
        assert interpret.check(expected, arrays).ok


@pytest.mark.parametrize("n", [3, 33])
def test_a_costly_epilogue_takes_vectors(n: int, target: Target) -> None:
    workload = {"op": "dense", "m": 3, "n": n, "k": 40, "weights": "nk", "bias": True, "activation": "gelu"}
    func, sketch = topi.create(workload), dot_of(workload, target)
    expected = interpret.expected(func, interpret.random_inputs(func, 0))
    for row in sketch.columns.random(2, np.random.default_rng(n)):
        arrays = interpret.random_inputs(func, 0)
        build(sketch.resolve(row).apply(func), target)(*arrays)
        assert interpret.check(expected, arrays).ok


def test_features_are_those_of_the_block_that_multiplies(target: Target) -> None:
    sketch = dot_of({"op": "dense", "m": 4, "n": 64, "k": 256, "weights": "nk"}, target)
    assert sketch.main == "Y_rf"


def test_rows_that_are_read_once_and_columns_have_other_rules(target: Target) -> None:
    for workload in (
        {"op": "dense", "m": 1, "n": 64, "k": 256, "weights": "nk"},
        {"op": "matmul", "m": 4, "n": 64, "k": 256},
    ):
        names = [s.name for s in space_of(topi.create(workload), target).sketches]
        assert "lanes k, added up" not in names


def test_a_matrix_times_a_column_is_a_reduction_of_rows(target: Target) -> None:
    space = space_of(topi.create({"op": "matmul", "m": 64, "n": 1, "k": 256}), target)
    assert [s.name for s in space.sketches] == ["rows"]


@pytest.mark.parametrize(("n", "k"), [(16, 16), (19, 37), (33, 16), (64, 5)])
def test_panels_of_rows_are_turned(n: int, k: int, target: Target) -> None:
    func = topi.create({"op": "batch_matmul", "b": 2, "m": 40, "n": n, "k": k, "transpose_b": True})
    expected = interpret.expected(func, interpret.random_inputs(func, 0))
    sketch = next(s for s in space_of(func, target).sketches if s.name == "lanes j, pack B")
    for row in sketch.columns.random(3, np.random.default_rng(n)):
        arrays = interpret.random_inputs(func, 0)
        build(sketch.resolve(row).apply(func), target)(*arrays)
        assert interpret.check(expected, arrays).ok
