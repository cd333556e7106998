"""LowerInit: inits become blocks of their own."""

import pytest

from tilewright.compiler.arith import Var, floor_div, floor_mod, poly
from tilewright.compiler.codegen.errors import BuildError
from tilewright.compiler.ir import FLOAT32, Binary, Block, Buffer, Const, For, IterKind, Load, PrimFunc
from tilewright.compiler.passes.lower_init import LowerInit
from tilewright.compiler.schedule import Schedule


def test_the_init_stands_before_the_reduction_loop(matmul: PrimFunc) -> None:
    assert str(LowerInit().run(matmul)) == (
        "def matmul(A: float32[8, 6], B: float32[6, 10], C: float32[8, 10]):\n"
        "    for i in range(8):\n"
        "        for j in range(10):\n"
        "            with block('C_init'):\n"
        "                C[i, j] = 0.0\n"
        "            for k in range(6):\n"
        "                C[i, j] += A[i, k] * B[k, j]\n"
    )


def test_it_runs_over_copies_of_the_spatial_loops_below(matmul: PrimFunc) -> None:
    sch = Schedule(matmul)
    _, j, k = sch.get_loops(sch.get_block("C"))
    j0, j1 = sch.split(j, [None, 4])
    sch.reorder(k, j0, j1)
    sch.unroll(j0)
    sch.vectorize(j1)
    assert str(LowerInit().run(sch.func)) == (
        "def matmul(A: float32[8, 6], B: float32[6, 10], C: float32[8, 10]):\n"
        "    for i in range(8):\n"
        "        for j_0 in unrolled(3):\n"
        "            for j_1 in vectorized(4):\n"
        "                with block('C_init', i=spatial(i), j=spatial(j_0 * 4 + j_1, 10)):\n"
        "                    if j_0 * 4 + j_1 < 10:\n"
        "                        C[i, j] = 0.0\n"
        "        for k in range(6):\n"
        "            for j_0 in unrolled(3):\n"
        "                for j_1 in vectorized(4):\n"
        "                    with block('C', i=spatial(i), j=spatial(j_0 * 4 + j_1, 10), k=reduce(k)):\n"
        "                        if j_0 * 4 + j_1 < 10:\n"
        "                            C[i, j] += A[i, k] * B[k, j]\n"
    )


def test_predicates_of_the_steps_do_not_hold_back_the_init(matmul: PrimFunc) -> None:
    sch = Schedule(matmul)
    sch.split(sch.get_loops(sch.get_block("C"))[2], [None, 4])
    assert str(LowerInit().run(sch.func)) == (
        "def matmul(A: float32[8, 6], B: float32[6, 10], C: float32[8, 10]):\n"
        "    for i in range(8):\n"
        "        for j in range(10):\n"
        "            with block('C_init'):\n"
        "                C[i, j] = 0.0\n"
        "            for k_0 in range(2):\n"
        "                for k_1 in range(4):\n"
        "                    with block('C', i=spatial(i), j=spatial(j), k=reduce(k_0 * 4 + k_1, 6)):\n"
        "                        if k_0 * 4 + k_1 < 6:\n"
        "                            C[i, j] += A[i, k] * B[k, j]\n"
    )


def test_the_init_of_a_tile_that_does_not_exist_does_not_run(matmul: PrimFunc) -> None:
    sch = Schedule(matmul)
    i, j, k = sch.get_loops(sch.get_block("C"))
    i0, i1, i2 = sch.split(i, [None, 4, 8], overlap=1)
    sch.reorder(i1, j, k, i2, i0)
    assert str(LowerInit().run(sch.func)) == (
        "def matmul(A: float32[8, 6], B: float32[6, 10], C: float32[8, 10]):\n"
        "    for i_1 in range(4):\n"
        "        for j in range(10):\n"
        "            for i_2 in range(8):\n"
        "                for i_0 in range(1):\n"
        "                    with block('C_init', i=spatial(i_2), j=spatial(j)):\n"
        "                        if i_0 * 32 + i_1 * 8 < 8:\n"
        "                            C[i, j] = 0.0\n"
        "            for k in range(6):\n"
        "                for i_2 in range(8):\n"
        "                    for i_0 in range(1):\n"
        "                        with block('C', i=spatial(i_2), j=spatial(j), k=reduce(k)):\n"
        "                            if i_0 * 32 + i_1 * 8 < 8:\n"
        "                                C[i, j] += A[i, k] * B[k, j]\n"
    )


def test_a_reduction_that_no_loop_carries_is_set_up_in_place() -> None:
    i, k, loop = Var("i", 4), Var("k", 1), Var("i", 4)
    a, c = Buffer("A", (poly(4),), FLOAT32), Buffer("C", (poly(4),), FLOAT32)
    at = (poly(i),)
    block = Block(
        "C", (i, k), (IterKind.SPATIAL, IterKind.REDUCE), (poly(loop), poly(0)), c, at,
        Binary("add", Load(c, at), Load(a, at)), Const(0.0, FLOAT32),
    )  # fmt: skip
    assert str(LowerInit().run(PrimFunc("sums", (a, c), (), (For(loop, (block,)),)))) == (
        "def sums(A: float32[4], C: float32[4]):\n"
        "    for i in range(4):\n"
        "        with block('C_init'):\n"
        "            C[i] = 0.0\n"
        "        with block('C', i=spatial(i), k=reduce(0, 1)):\n"
        "            C[i] += A[i]\n"
    )


def test_a_bound_that_only_the_steps_know_is_refused() -> None:
    """k = 2 f0 + f1 // 3 and i = f1 % 3 of a fused loop over 3 x 5, split by 6, with i up to 2 only."""
    i, k = Var("i", 2), Var("k", 5)
    f0, f1 = Var("f0", 3), Var("f1", 6)
    a, c = Buffer("A", (poly(5),), FLOAT32), Buffer("C", (poly(2),), FLOAT32)
    fused = poly(f0) * 6 + f1
    block = Block(
        "C", (i, k), (IterKind.SPATIAL, IterKind.REDUCE),
        (floor_mod(f1, 3), poly(f0) * 2 + floor_div(f1, 3)), c, (poly(i),),
        Binary("add", Load(c, (poly(i),)), Load(a, (poly(k),))), Const(0.0, FLOAT32), (fused - 14,),
    )  # fmt: skip
    with pytest.raises(BuildError) as caught:
        LowerInit().run(PrimFunc("sums", (a, c), (), (For(f0, (For(f1, (block,)),)),)))
    assert str(caught.value).split("\n")[0] == (
        "lower_init: 'i' is bounded only together with a loop that carries the reduction; "
        "decompose the reduction before fusing"
    )
