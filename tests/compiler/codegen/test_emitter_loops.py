"""Loops, register tiles and their tails against NumPy."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from tilewright.compiler import te
from tilewright.compiler.arith import Poly, Var, poly
from tilewright.compiler.codegen.errors import BuildError
from tilewright.compiler.codegen.lower import lower
from tilewright.compiler.ir import (
    FLOAT32,
    Binary,
    Block,
    Buffer,
    Const,
    Expr,
    For,
    IterKind,
    Load,
    LoopKind,
    PrimFunc,
)
from tilewright.compiler.runtime import Function
from tilewright.compiler.schedule import Schedule
from tilewright.compiler.target import Target

Array = np.ndarray[Any, Any]
Build = Callable[..., Function]


def matmul(m: int, n: int, k: int, dtype: str = "float32") -> PrimFunc:
    a, b = te.placeholder((m, k), dtype, name="A"), te.placeholder((k, n), dtype, name="B")
    r = te.reduce_axis((0, k), name="k")
    return te.create_prim_func(
        [a, b, te.compute((m, n), lambda i, j: te.sum(a[i, r] * b[r, j], axis=r), name="C")]
    )


def tiled(
    func: PrimFunc, *, rows: int, vectors: int, lanes: int, unroll: int, overlap: bool, inner: int = 2
) -> PrimFunc:
    """A register tile of rows x (vectors * lanes) under two loops each way, written back when complete."""
    sch = Schedule(func)
    c = sch.get_block("C")
    write = sch.cache_write(c, 0, "register")
    i, j, k = sch.get_loops(c)
    i0, i1, i2 = sch.split(i, [None, inner, rows], overlap=int(overlap))
    j0, j1, j2, lane = sch.split(j, [None, inner, vectors, lanes], overlap=2 * overlap)
    k0, k1 = sch.split(k, [None, unroll])
    sch.reorder(i0, j0, i1, j1, k0, k1, i2, j2, lane)
    sch.vectorize(lane)
    for loop in (k1, i2, j2):
        sch.unroll(loop)
    w0, w1 = sch.reverse_compute_at(write, j1)
    w2, w3 = sch.split(w1, [None, lanes])
    sch.vectorize(w3)
    sch.unroll(w0)
    sch.unroll(w2)
    return sch.func


@pytest.mark.parametrize("versioned", [False, True], ids=["masked", "versioned"])
@pytest.mark.parametrize("overlap", [False, True], ids=["masks", "overlap"])
@pytest.mark.parametrize(
    ("m", "n", "k"), [(1, 1, 1), (3, 17, 5), (4, 32, 4), (8, 64, 12), (13, 50, 7), (25, 70, 9), (5, 100, 1)]
)
def test_a_register_tile_gives_the_product_for_sizes_that_it_does_not_divide(
    built: Build, guarded: Any, m: int, n: int, k: int, overlap: bool, versioned: bool
) -> None:
    func = tiled(matmul(m, n, k), rows=4, vectors=2, lanes=8, unroll=2, overlap=overlap)
    rng = np.random.default_rng(m * n * k)
    a, b = (guarded.array(rng.standard_normal(s).astype("f4")) for s in ((m, k), (k, n)))
    c = guarded.array(np.full((m, n), np.nan, "f4"))
    built(func, versioned=versioned)(a, b, c)
    np.testing.assert_allclose(c, a.astype("f8") @ b.astype("f8"), rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("dtype", ["float64", "int32", "int64", "uint32"])
def test_a_register_tile_works_in_every_dtype(built: Build, dtype: str) -> None:
    func = tiled(matmul(13, 50, 7, dtype), rows=4, vectors=2, lanes=8, unroll=2, overlap=True)
    rng = np.random.default_rng(0)
    a, b = (rng.integers(0, 2**20, s).astype(dtype) for s in ((13, 7), (7, 50)))
    c = np.empty((13, 50), dtype)
    built(func)(a, b, c)
    np.testing.assert_array_equal(c, a @ b)


@pytest.mark.parametrize("target", ["llvm -mcpu=x86-64-v3", "llvm -mcpu=x86-64"])
def test_lanes_wider_than_the_machine_are_split(built: Build, target: str) -> None:
    func = tiled(matmul(9, 40, 6), rows=2, vectors=1, lanes=16, unroll=3, overlap=False)
    rng = np.random.default_rng(0)
    a, b = (rng.standard_normal(s).astype("f4") for s in ((9, 6), (6, 40)))
    c = np.full((9, 40), np.nan, "f4")
    built(func, Target.parse(target))(a, b, c)
    np.testing.assert_allclose(c, a @ b, rtol=1e-5, atol=1e-5)


def test_a_reduction_over_nothing_but_one_step_starts_from_its_init(built: Build) -> None:
    a = te.placeholder((5, 1), "float32", name="A")
    r = te.reduce_axis((0, 1), name="k")
    func = te.create_prim_func([a, te.compute((5,), lambda i: te.sum(a[i, r], axis=r), name="C")])
    x, y = np.arange(5, dtype="f4").reshape(5, 1), np.full(5, np.nan, "f4")
    built(func)(x, y)
    np.testing.assert_array_equal(y, x[:, 0])


def test_two_reductions_in_registers_use_each_others_result(built: Build) -> None:
    a = te.placeholder((6, 33), "float32", name="A")
    k, q = te.reduce_axis((0, 33), name="k"), te.reduce_axis((0, 33), name="l")
    top = te.compute((6,), lambda i: te.max(a[i, k], axis=k), name="top")
    e = te.compute((6, 33), lambda i, j: te.exp(a[i, j] - top[i]), name="e")
    s = te.compute((6,), lambda i: te.sum(e[i, q], axis=q), name="s")
    sch = Schedule(te.create_prim_func([a, te.compute((6, 33), lambda i, j: e[i, j] / s[i], name="out")]))
    i, j = sch.get_loops(sch.get_block("out"))
    for name in ("s", "e", "top"):
        sch.set_scope(sch.get_block(name), 0, "register" if name != "e" else "local")
        sch.compute_at(sch.get_block(name), i)
    sch.vectorize(j)
    x = np.random.default_rng(0).standard_normal((6, 33)).astype("f4")
    y = np.full((6, 33), np.nan, "f4")
    built(sch.func)(x, y)
    z = np.exp(x.astype("f8") - x.max(1, keepdims=True))
    np.testing.assert_allclose(y, z / z.sum(1, keepdims=True), rtol=1e-5)


@pytest.mark.parametrize("reader", [4, 8, 16, None], ids=["narrower", "same", "wider", "scalar"])
def test_register_vectors_may_be_read_in_other_pieces_than_they_were_written_in(
    built: Build, reader: int | None
) -> None:
    a = te.placeholder((3, 16), "float32", name="A")
    k = te.reduce_axis((0, 3), name="k")
    s = te.compute((16,), lambda i: te.sum(a[k, i], axis=k), name="s")
    sch = Schedule(te.create_prim_func([a, te.compute((16,), lambda i: s[i] * 2.0, name="out")]))
    sch.set_scope(sch.get_block("s"), 0, "register")
    i, r = sch.get_loops(sch.get_block("s"))
    outer, lane = sch.split(i, [None, 8])
    sch.reorder(r, outer, lane)
    sch.vectorize(lane)
    sch.unroll(outer)
    (o,) = sch.get_loops(sch.get_block("out"))
    if reader is None:
        sch.unroll(o)
    else:
        pieces, lanes = sch.split(o, [None, reader])
        sch.unroll(pieces)
        sch.vectorize(lanes)
    x = np.arange(48, dtype="f4").reshape(3, 16)
    y = np.full(16, np.nan, "f4")
    built(sch.func)(x, y)
    np.testing.assert_array_equal(y, x.sum(0) * 2)


def one(
    name: str, buffer: Buffer, index: Poly, value: Expr, loops: list[Var], *predicates: Poly, carried: int = 0
) -> Block:
    """A block over the loops' own variables, the last `carried` of which carry a reduction."""
    iters = tuple(loops)
    kinds = (IterKind.SPATIAL,) * (len(iters) - carried) + (IterKind.REDUCE,) * carried
    binds = tuple(poly(v) for v in loops)
    return Block(name, iters, kinds, binds, buffer, (index,), value, predicates=predicates)


def test_a_loop_whose_first_iteration_may_not_exist_is_jumped_over(built: Build) -> None:
    """for i: { acc = 0; for j: if 4 i + j < 6: acc += A[4 i + j]; out[i] = acc }: none of i = 2 and 3."""
    i, j = Var("i", 4), Var("j", 4)
    a, out = Buffer("A", (poly(6),), FLOAT32), Buffer("out", (poly(4),), FLOAT32)
    acc = Buffer("acc", (poly(1),), FLOAT32, "register")
    at = poly(i) * 4 + j
    held = Load(acc, (poly(0),))
    body = (
        one("zero", acc, poly(0), Const(0.0, FLOAT32), [i]),
        For(j, (one("add", acc, poly(0), Binary("add", held, Load(a, (at,))), [i, j], at - 6, carried=1),)),
        one("write", out, poly(i), held, [i]),
    )
    x, y = np.arange(1, 7, dtype="f4"), np.full(4, np.nan, "f4")
    built(PrimFunc("sums", (a, out), (acc,), (For(i, body),)))(x, y)
    np.testing.assert_array_equal(y, [10, 11, 0, 0])


def test_values_carried_through_a_tile_with_two_versions_go_on_from_the_one_that_ran(built: Build) -> None:
    """for i: { acc = 0; for j: { t = A[a row of 4, masked]; acc += the row }; out[i] = acc }"""
    i, j, u = Var("i", 2), Var("j", 4), Var("u", 4)
    a, out = Buffer("A", (poly(27),), FLOAT32), Buffer("out", (poly(2),), FLOAT32)
    acc, t = Buffer("acc", (poly(1),), FLOAT32, "register"), Buffer("t", (poly(4),), FLOAT32, "register")
    at, held = poly(i) * 16 + poly(j) * 4 + u, Load(acc, (poly(0),))
    row = one("row", t, poly(u), Load(a, (at,)), [i, j, u], at - 27)
    add = Binary("add", held, Load(t, (poly(u),)))
    step = one("step", acc, poly(0), add, [i, j, u], at - 27, carried=2)
    tile = For(j, (For(u, (row,), LoopKind.UNROLLED), For(u, (step,), LoopKind.UNROLLED)))
    body = (one("zero", acc, poly(0), Const(0.0, FLOAT32), [i]), tile, one("write", out, poly(i), held, [i]))
    func = PrimFunc("sums", (a, out), (acc, t), (For(i, body),))
    x, y = np.arange(27, dtype="f4"), np.full(2, np.nan, "f4")
    built(func)(x, y)
    assert (y.tolist(), "label %m" in lower(func, Target.parse("llvm")).text) == ([120.0, 231.0], True)


def test_a_fused_reduction_with_a_tail_does_not_write_past_the_end(built: Build, guarded: Any) -> None:
    a = te.placeholder((5, 31), "float32", name="A")
    k = te.reduce_axis((0, 31), name="k")
    sch = Schedule(te.create_prim_func([a, te.compute((5,), lambda i: te.sum(a[i, k], axis=k), name="C")]))
    i, r = sch.get_loops(sch.get_block("C"))
    outer, inner = sch.split(i, [None, 3])
    sch.decompose_reduction(sch.get_block("C"), outer)
    sch.fuse(inner, r)
    x = guarded.array(np.arange(155, dtype="f4").reshape(5, 31))
    y = guarded.array(np.full(5, np.nan, "f4"))
    built(sch.func)(x, y)
    np.testing.assert_array_equal(y, x.sum(1))


def test_a_loop_without_any_iteration_leaves_no_code(built: Build) -> None:
    i, j = Var("i", 3), Var("j", 5)
    out = Buffer("out", (poly(3),), FLOAT32)
    block = one("late", out, poly(i), Const(1.0, FLOAT32), [i, j], poly(j) + 1 + poly(i) * 5 - 6)
    body = (
        For(i, (one("first", out, poly(i), Const(0.0, FLOAT32), [i]), For(j, (block,))), LoopKind.UNROLLED),
    )
    y = np.full(3, np.nan, "f4")
    built(PrimFunc("late", (out,), (), body))(y)
    np.testing.assert_array_equal(y, [1, 0, 0])


def test_whole_tiles_run_without_masks(host: Target) -> None:
    func = tiled(matmul(40, 100, 8), rows=4, vectors=2, lanes=8, unroll=2, overlap=False)
    text = lower(func, host).text
    whole, _, edge = text.partition("\nm")
    assert ("masked" in whole.split("\nf")[-1], "masked" in edge) == (False, True)


def test_products_are_contracted_into_sums_unless_the_math_is_strict(host: Target) -> None:
    func = matmul(4, 4, 4)
    loose, strict = (lower(func, Target.parse(f"llvm -math={m}")).text for m in ("reassoc", "strict"))
    assert ("llvm.fmuladd" in loose, "llvm.fmuladd" in strict, "contract" in strict) == (True, False, False)


def test_strict_math_rounds_each_product(built: Build) -> None:
    rng = np.random.default_rng(0)
    a, b = rng.standard_normal((3, 50)).astype("f4"), rng.standard_normal((50, 3)).astype("f4")
    c, expected = np.empty((3, 3), "f4"), np.zeros((3, 3), "f4")
    built(matmul(3, 3, 50), Target.parse("llvm -math=strict"))(a, b, c)
    for k in range(50):
        expected = expected + a[:, k, None] * b[None, k]
    np.testing.assert_array_equal(c, expected)


def test_more_instructions_than_allowed_are_refused(host: Target) -> None:
    sch = Schedule(matmul(64, 64, 4))
    for loop in sch.get_loops(sch.get_block("C")):
        sch.unroll(loop)
    with pytest.raises(BuildError) as caught:
        lower(sch.func, host)
    assert (
        str(caught.value).split("\n")[0] == "emit: the kernel needs more than 4000 instructions: unroll less"
    )


def test_the_limit_of_instructions_is_a_parameter(host: Target) -> None:
    with pytest.raises(BuildError, match="more than 10 instructions"):
        lower(matmul(4, 4, 4), host, max_instructions=10)


def test_unrolled_instances_that_do_not_exist_are_counted_too(host: Target) -> None:
    i, out = Var("i", 10**9), Buffer("out", (poly(1),), FLOAT32)
    block = one("C", out, poly(0), Const(1.0, FLOAT32), [i], poly(i) - 1)
    with pytest.raises(BuildError) as caught:
        lower(PrimFunc("far", (out,), (), (For(i, (block,), LoopKind.UNROLLED),)), host)
    assert str(caught.value) == "the kernel unrolls more than 32000 instances of blocks"
