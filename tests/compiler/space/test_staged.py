"""Reductions that are taken block by block, with the sums kept in between."""

import numpy as np
import pytest

from tilewright.compiler import interpret, te, topi
from tilewright.compiler.build import build
from tilewright.compiler.ir import PrimFunc
from tilewright.compiler.space import Sketch, space_of
from tilewright.compiler.space.factors import blocks
from tilewright.compiler.space.staged_tiles import long_reduction
from tilewright.compiler.target import Target

STAGED = "blocks of the reduction"


def staged(func: PrimFunc, target: Target) -> list[Sketch]:
    return [s for s in space_of(func, target).sketches if STAGED in s.name]


def matmul(m: int, n: int, k: int) -> PrimFunc:
    return topi.create({"op": "matmul", "m": m, "n": n, "k": k})


def test_a_long_reduction_gets_a_sketch_for_each_way_of_packing(target: Target) -> None:
    assert [s.name for s in staged(matmul(64, 64, 2048), target)] == [
        "lanes j, blocks of the reduction",
        "lanes j, pack B, blocks of the reduction",
    ]


@pytest.mark.parametrize(("m", "packed"), [(16, False), (512, True)])
def test_few_rows_repay_no_packing_and_many_do(m: int, packed: bool, target: Target) -> None:
    (sketch,) = staged(matmul(m, 64, 2048), target)
    assert ("pack B" in sketch.name) is packed


@pytest.mark.parametrize(
    ("k", "why"), [(512, "it is short"), (1031, "it is prime"), (2 * 1031, "its divisors are too large")]
)
def test_other_reductions_are_taken_whole(k: int, why: str, target: Target) -> None:
    assert staged(matmul(64, 64, k), target) == [], why


def test_constants_are_packed_in_the_order_of_the_tiles_instead(target: Target) -> None:
    request = {"op": "dense", "m": 9, "n": 67, "k": 1032, "constant_weights": True}
    assert staged(topi.create(request), target) == []


def test_the_order_of_additions_is_kept_where_it_is_the_programs() -> None:
    func = matmul(64, 64, 2048)
    (_, main), *_ = func.blocks()
    assert long_reduction(func, main, Target.parse("llvm -math=reassoc")) == 2
    assert long_reduction(func, main, Target.parse("llvm -math=strict")) is None


def test_blocks_divide_the_reduction_and_are_spread_over_their_range(target: Target) -> None:
    (sketch, _) = staged(matmul(64, 64, 5040), target)
    (sizes,) = (k.domain for k in sketch.knobs if k.name == "k_b")
    # Where registers are few, rows are read so often that a first-level cache has to hold them.
    few = target.vector_registers <= 16
    assert sizes == ((8, 24, 60, 120, 315, 1008) if few else (70, 112, 168, 280, 504, 1008))
    assert blocks((1, 2, 3)) == (1, 2, 3)


REQUESTS = {
    "tails everywhere": {"op": "matmul", "m": 13, "n": 101, "k": 1024},
    "epilogue": {"op": "dense", "m": 9, "n": 67, "k": 1032, "bias": True, "activation": "gelu"},
    "batches": {"op": "batch_matmul", "b": 3, "m": 7, "n": 50, "k": 1024},
    "batches, rows by rows": {"op": "batch_matmul", "b": 2, "m": 33, "n": 50, "k": 1024, "transpose_b": True},
    "rows by rows": {"op": "dense", "m": 40, "n": 67, "k": 1024, "weights": "nk", "bias": True},
    "pointwise": {
        "op": "conv2d",
        "ci": 1024,
        "h": 5,
        "w": 5,
        "co": 20,
        "kh": 1,
        "kw": 1,
        "activation": "relu",
    },
    "halves": {"op": "matmul", "m": 13, "n": 35, "k": 1024, "dtype": "float16"},
}


@pytest.mark.parametrize("request_", REQUESTS.values(), ids=REQUESTS.keys())
def test_kernels_compute_what_the_program_says(request_: dict[str, object]) -> None:
    func, target = topi.create(dict(request_)), Target.parse("llvm")
    sketches = staged(func, target)
    assert sketches
    arrays = interpret.random_inputs(func, 7)
    expected = interpret.expected(func, interpret.random_inputs(func, 7))
    for sketch in sketches:
        for row in sketch.columns.random(4, np.random.default_rng(5)):
            mine = [a.copy() for a in arrays]
            mine[-1][...] = np.nan
            build(sketch.resolve(row).apply(func), target=target)(*mine)
            checked = interpret.check(expected, mine)
            assert checked.ok, f"{sketch.name} {sketch.config(row)}: {checked.message}"


def test_the_largest_of_a_long_row_of_products_is_found_block_by_block(target: Target) -> None:
    a, b = te.placeholder((5, 1024), "float32", name="A"), te.placeholder((1024, 40), "float32", name="B")
    k = te.reduce_axis((0, 1024), name="k")
    c = te.compute((5, 40), lambda i, j: te.max(a[i, k] * b[k, j], axis=k), name="C")
    func = te.create_prim_func([a, b, c], name="largest")
    (sketch, *_) = staged(func, target)
    arrays = interpret.random_inputs(func, 1)
    interpret.run(
        sketch.resolve(sketch.columns.random(1, np.random.default_rng(0))[0]).apply(func).func, arrays
    )
    np.testing.assert_array_equal(arrays[2], (arrays[0][:, :, None] * arrays[1]).max(axis=1))
