"""The pipeline: printed, and the program means the same after every pass."""

import numpy as np
import pytest

from tilewright.compiler import te
from tilewright.compiler.interpret import run
from tilewright.compiler.ir import PrimFunc
from tilewright.compiler.passes import lowering
from tilewright.compiler.schedule import Schedule
from tilewright.compiler.target import Target

AVX2 = Target.parse("llvm -mcpu=x86-64-v3")


def test_a_pipeline_prints_its_passes_with_their_options() -> None:
    assert str(lowering(AVX2)) == (
        "CheckConcrete() -> LowerInit() -> LegalizeVectors(vector_bytes=32, unroll_limit=16) -> "
        "Simplify(threads=1) -> CheckVectors() -> CheckReads() -> CheckSteps() -> CheckOverlap() -> "
        "CheckAhead() -> Compact() -> AlignStorage() -> CheckRegisters(most=65536)"
    )


def tile(matmul: PrimFunc, overlap: int, lanes: int) -> PrimFunc:
    """A register tile with a packed B, and a reduction that is split with a tail."""
    sch = Schedule(matmul)
    c = sch.get_block("C")
    pack = sch.cache_read(c, 1, "local", order=(1, 0))
    write = sch.cache_write(c, 0, "register")
    i, j, k = sch.get_loops(c)
    i0, i1 = sch.split(i, [None, 3], overlap=overlap)
    j0, j1, lane = sch.split(j, [None, 2, lanes], overlap=2 * overlap)
    k0, k1 = sch.split(k, [None, 4])
    sch.reorder(j0, i0, k0, k1, i1, j1, lane)
    sch.vectorize(lane)
    for loop in (k1, i1, j1):
        sch.unroll(loop)
    rows, columns = sch.reverse_compute_at(write, i0)
    sch.unroll(rows)
    sch.vectorize(columns)
    sch.compute_at(pack, j0)
    return sch.func


@pytest.mark.parametrize("lanes", [2, 3, 4])
@pytest.mark.parametrize("overlap", [0, 1], ids=["masks", "overlap"])
def test_every_pass_keeps_the_meaning_of_a_tiled_product(matmul: PrimFunc, overlap: int, lanes: int) -> None:
    rng = np.random.default_rng(0)
    a, b = rng.standard_normal((8, 6)).astype("f4"), rng.standard_normal((6, 10)).astype("f4")
    expected = np.full((8, 10), np.nan, "f4")
    run(matmul, [a, b, expected])
    for step, func in lowering(AVX2).stages(tile(matmul, overlap, lanes)):
        out = np.full((8, 10), np.nan, "f4")
        run(func, [a, b, out])
        np.testing.assert_array_equal(out, expected, err_msg=repr(step))


def test_every_pass_keeps_the_meaning_of_a_padded_window() -> None:
    x = te.placeholder((9,), "int32", name="X")
    pad = te.compute((11,), lambda i: te.if_then_else(te.all(i >= 1, i < 10), x[i - 1], 0), name="P")
    r = te.reduce_axis((0, 3), name="r")
    func = te.create_prim_func([x, te.compute((9,), lambda i: te.sum(pad[i + r], axis=r), name="C")])
    sch = Schedule(func)
    i, _ = sch.get_loops(sch.get_block("C"))
    i0, i1 = sch.split(i, [None, 4])
    sch.compute_at(sch.get_block("P"), i0)
    sch.vectorize(i1)
    values = np.arange(9, dtype="i4")
    expected = np.convolve(values, np.ones(3, "i4"), "same")
    for step, stage in lowering(AVX2).stages(sch.func):
        out = np.full(9, -1, "i4")
        run(stage, [values, out])
        np.testing.assert_array_equal(out, expected, err_msg=repr(step))
