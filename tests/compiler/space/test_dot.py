"""Products of rows with rows: sums in lanes along the reduction, whatever the shape and the dtype."""

import numpy as np
import pytest

from tilewright.compiler import interpret, topi
from tilewright.compiler.build import build
from tilewright.compiler.space import Sketch, space_of
from tilewright.compiler.target import Target


def dot_of(workload: dict[str, object], target: Target) -> Sketch:
    sketches = space_of(topi.create(workload), target).sketches
    return next(s for s in sketches if s.name == "lanes k, added up")


@pytest.mark.parametrize("dtype", ["float32", "float64", "float16", "bfloat16", "int32"])
@pytest.mark.parametrize(("m", "n", "k"), [(2, 3, 16), (5, 7, 37), (4, 33, 64), (13, 5, 127)])
def test_every_tile_of_rows_is_summed_up(m: int, n: int, k: int, dtype: str, target: Target) -> None:
    func = topi.create({"op": "dense", "m": m, "n": n, "k": k, "dtype": dtype, "weights": "nk", "bias": True})
    sketch = dot_of(
        {"op": "dense", "m": m, "n": n, "k": k, "dtype": dtype, "weights": "nk", "bias": True}, target
    )
    expected = interpret.expected(func, interpret.random_inputs(func, 0))
    for row in sketch.columns.random(3, np.random.default_rng(m)):
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
