"""Products of rows with rows: sums in lanes along the reduction, whatever the shape and the dtype."""

import numpy as np
import pytest

from tilewright.compiler import interpret, topi
from tilewright.compiler.build import build
from tilewright.compiler.codegen.llvm.jit import emit_assembly
from tilewright.compiler.codegen.lower import lower
from tilewright.compiler.space import Sketch, default_schedule, space_of
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
    population = sketch.columns.random(3, np.random.default_rng(n))
    assert len(population)
    for row in population:
        arrays = interpret.random_inputs(func, 0)
        build(sketch.resolve(row).apply(func), target)(*arrays)
        assert interpret.check(expected, arrays).ok


WITH_DOTS = "llvm -mcpu=x86-64-v4 -mattr=+avx512vnni,+avx512bf16"


@pytest.mark.parametrize("dtype", ["int8", "uint8", "bfloat16"])
@pytest.mark.parametrize(
    ("m", "n", "k"),
    [(1, 7, 128), (1, 5, 100), (2, 9, 256), (5, 1, 192), (3, 17, 64), (1, 6, 1000), (4, 9, 332)],
)
def test_narrow_rows_are_summed_up(m: int, n: int, k: int, dtype: str) -> None:
    func = topi.create({"op": "dense", "m": m, "n": n, "k": k, "dtype": dtype, "weights": "nk"})
    space = space_of(func, Target.parse("llvm"))
    expected = interpret.expected(func, interpret.random_inputs(func, 0))
    for sketch in space.sketches:
        for row in sketch.columns.random(3, np.random.default_rng(n)):
            arrays = interpret.random_inputs(func, 0)
            build(sketch.resolve(row).apply(func))(*arrays)
            assert interpret.check(expected, arrays).ok


@pytest.mark.parametrize(("m", "k"), [(1, 512), (4, 512), (1, 1000), (4, 500)])
@pytest.mark.parametrize(("dtype", "word"), [("int8", "vpdpbusd"), ("bfloat16", "vdpbf16ps")])
def test_narrow_rows_take_several_steps_in_each_lane(m: int, k: int, dtype: str, word: str) -> None:
    target = Target.parse(WITH_DOTS)
    func = topi.create({"op": "dense", "m": m, "n": 256, "k": k, "dtype": dtype, "weights": "nk"})
    schedule = default_schedule(func, target)
    # Turning rows of weights for lanes along them would take longer than the sums.
    assert all("W" not in b.name for _, b in schedule.func.blocks())
    assert f"\t{word}\t" in emit_assembly(lower(schedule.func, target).text, target)


@pytest.mark.parametrize("dtype", ["int8", "bfloat16"])
@pytest.mark.parametrize(("m", "k"), [(2, 1001), (4, 1000)])
def test_few_rows_pack_nothing_whatever_their_length(m: int, k: int, dtype: str) -> None:
    func = topi.create({"op": "dense", "m": m, "n": 1000, "k": k, "dtype": dtype, "weights": "nk"})
    schedule = default_schedule(func, Target.parse(WITH_DOTS))
    assert all("W" not in b.name for _, b in schedule.func.blocks())


@pytest.mark.parametrize(
    "spec", [WITH_DOTS, "llvm -mcpu=x86-64-v4", "llvm -mcpu=x86-64-v3", "llvm -mcpu=x86-64-v2"]
)
@pytest.mark.parametrize("dtype", ["float32", "bfloat16", "int8"])
@pytest.mark.parametrize("weights", ["nk", "kn"])
def test_one_row_has_configs_in_every_sketch(weights: str, dtype: str, spec: str) -> None:
    """Of one row each vector is used where it is loaded: it takes no register from the sums."""
    request = {"op": "dense", "m": 1, "n": 1024, "k": 1024, "dtype": dtype, "weights": weights}
    for constant in (False, True):
        space = space_of(topi.create({**request, "constant_weights": constant}), Target.parse(spec))
        assert space.refused == {}
        assert all(s.knobs and len(s.columns.random(9, np.random.default_rng(0))) for s in space.sketches)
