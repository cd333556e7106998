"""Scheduled programs of every kind, by each code generator, on arrays between unreadable pages."""

from collections.abc import Callable
from dataclasses import replace
from functools import cache
from typing import Any, NamedTuple

import numpy as np
import pytest

from tilewright.compiler import interpret, te, topi
from tilewright.compiler.arith import Poly, Var, poly
from tilewright.compiler.codegen.errors import BuildError
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
from tilewright.compiler.space import default_schedule
from tilewright.compiler.target import Target

Array = np.ndarray[Any, Any]
#: AVX2 where the machine has it.
OPTIONS = "-mcpu=x86-64-v3" if "avx2" in Target.parse("llvm").features else ""


class Case(NamedTuple):
    """A program, and a schedule of it that means the same."""

    program: PrimFunc
    scheduled: PrimFunc


def matmul(m: int, n: int, k: int, dtype: str = "float32") -> PrimFunc:
    a, b = te.placeholder((m, k), dtype, name="A"), te.placeholder((k, n), dtype, name="B")
    r = te.reduce_axis((0, k), name="k")
    return te.create_prim_func(
        [a, b, te.compute((m, n), lambda i, j: te.sum(a[i, r] * b[r, j], axis=r), name="C")]
    )


def tile(m: int, n: int, k: int, dtype: str = "float32", *, overlap: bool = False, pack: str = "") -> Case:
    """A register tile of 4 rows and 2 vectors of 8, with the second operand packed or not."""
    func = matmul(m, n, k, dtype)
    sch = Schedule(func)
    block = next(b.name for _, b in func.blocks() if b.is_reduction)
    c = sch.get_block(block)
    if pack:
        sch.cache_read(c, 1, pack, order=(1, 0))  # type: ignore[arg-type]
    write = sch.cache_write(c, 0, "register")
    i, j, r = sch.get_loops(c)
    i0, i1, i2 = sch.split(i, [None, 2, 4], overlap=int(overlap))
    j0, j1, j2, lane = sch.split(j, [None, 2, 2, 8], overlap=2 * overlap)
    k0, k1 = sch.split(r, [None, 2])
    sch.reorder(i0, j0, i1, j1, k0, k1, i2, j2, lane)
    sch.vectorize(lane)
    for loop in (k1, i2, j2):
        sch.unroll(loop)
    w0, w1 = sch.reverse_compute_at(write, j1)
    w2, w3 = sch.split(w1, [None, 8])
    sch.vectorize(w3)
    sch.unroll(w0)
    sch.unroll(w2)
    return Case(func, sch.func)


def vectorized(func: PrimFunc, loop: int = -1, block: str = "out") -> Case:
    sch = Schedule(func)
    sch.vectorize(sch.get_loops(sch.get_block(block))[loop])
    return Case(func, sch.func)


def copy(n: int, dtype: str) -> PrimFunc:
    a = te.placeholder((n,), dtype, name="A")
    return te.create_prim_func([a, te.compute((n,), lambda i: a[i], name="out")])


def padded(loop: int) -> Case:
    a = te.placeholder((5, 19), "float32", name="A")

    def value(i: te.Index, j: te.Index) -> te.Value:
        return te.if_then_else(te.all(i >= 1, i < 6, j >= 1, j < 20), a[i - 1, j - 1] * 2.0, 0.0)

    return vectorized(te.create_prim_func([a, te.compute((7, 21), value, name="out")]), loop)


def broadcast_under_a_condition_on_lanes() -> Case:
    a = te.placeholder((3,), "float32", name="A")
    out = te.compute(
        (5, 21), lambda i, j: te.if_then_else(te.all(i >= 1, i < 4, j < 9), a[i - 1], -1.0), name="out"
    )
    return vectorized(te.create_prim_func([a, out]))


def transposed(dtype: str, loop: int) -> Case:
    a = te.placeholder((7, 23), dtype, name="A")
    return vectorized(te.create_prim_func([a, te.compute((23, 7), lambda j, i: a[i, j], name="out")]), loop)


def fused_lanes(columns: int) -> Case:
    a = te.placeholder((9, columns), "float32", name="A")
    b = te.placeholder((9,), "float32", name="B")
    out = te.compute((9, columns), lambda i, j: a[i, j] + b[i], name="out")
    sch = Schedule(te.create_prim_func([a, b, out]))
    func = sch.func
    _, inner = sch.split(sch.fuse(*sch.get_loops(sch.get_block("out"))), [None, 16])
    sch.vectorize(inner)
    return Case(func, sch.func)


def overlapped(n: int) -> Case:
    sch = Schedule(copy(n, "float32"))
    func = sch.func
    (i,) = sch.get_loops(sch.get_block("out"))
    _, inner = sch.split(i, [None, 16], overlap=1)
    sch.vectorize(inner)
    return Case(func, sch.func)


def widths() -> Case:
    n = 77
    a, b = te.placeholder((n,), "int8", name="A"), te.placeholder((n,), "float64", name="B")
    c, d = te.placeholder((n,), "bool", name="C"), te.placeholder((n,), "bfloat16", name="D")

    def value(i: te.Index) -> te.Value:
        x = te.if_then_else(c[i], te.cast(a[i], "float64"), b[i]) + te.cast(d[i], "float64")
        return te.cast(te.round(x * 4.0), "int16")

    return vectorized(te.create_prim_func([a, b, c, d, te.compute((n,), value, name="out")]))


def softmax() -> Case:
    """Two reductions in registers that use each other's result."""
    a = te.placeholder((6, 33), "float32", name="A")
    k, q = te.reduce_axis((0, 33), name="k"), te.reduce_axis((0, 33), name="l")
    top = te.compute((6,), lambda i: te.max(a[i, k], axis=k), name="top")
    e = te.compute((6, 33), lambda i, j: te.exp(a[i, j] - top[i]), name="e")
    s = te.compute((6,), lambda i: te.sum(e[i, q], axis=q), name="s")
    sch = Schedule(te.create_prim_func([a, te.compute((6, 33), lambda i, j: e[i, j] / s[i], name="out")]))
    func = sch.func
    i, j = sch.get_loops(sch.get_block("out"))
    for name in ("s", "e", "top"):
        sch.set_scope(sch.get_block(name), 0, "register" if name != "e" else "local")
        sch.compute_at(sch.get_block(name), i)
    sch.vectorize(j)
    return Case(func, sch.func)


def register_pieces(reader: int | None) -> Case:
    """Register vectors of 8 that are read in other pieces than they were written in."""
    a = te.placeholder((3, 16), "float32", name="A")
    k = te.reduce_axis((0, 3), name="k")
    s = te.compute((16,), lambda i: te.sum(a[k, i], axis=k), name="s")
    sch = Schedule(te.create_prim_func([a, te.compute((16,), lambda i: s[i] * 2.0, name="out")]))
    func = sch.func
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
    return Case(func, sch.func)


def fused_reduction(tail: bool) -> Case:
    a = te.placeholder((5, 31), "float32", name="A")
    k = te.reduce_axis((0, 31), name="k")
    sch = Schedule(te.create_prim_func([a, te.compute((5,), lambda i: te.sum(a[i, k], axis=k), name="C")]))
    func = sch.func
    i, r = sch.get_loops(sch.get_block("C"))
    outer, inner = sch.split(i, [None, 3])
    sch.decompose_reduction(sch.get_block("C"), outer)
    if tail:
        sch.fuse(inner, r)
    else:
        sch.parallel(outer)
    return Case(func, sch.func)


def stages(scope: str, n: int, at: bool) -> Case:
    """An intermediate of some scope: on the stack, or as a workspace; whole, or a row at a time."""
    a = te.placeholder((6, n), "float32", name="A")
    b = te.compute((6, n), lambda i, j: a[i, j] + 1.0, name="B")
    sch = Schedule(
        te.create_prim_func([a, te.compute((6, n - 2), lambda i, j: b[i, j] * b[i, j + 2], name="out")])
    )
    func = sch.func
    sch.set_scope(sch.get_block("B"), 0, scope)  # type: ignore[arg-type]
    i, j = sch.get_loops(sch.get_block("out"))
    if at:
        sch.compute_at(sch.get_block("B"), i)
    sch.vectorize(j)
    return Case(func, sch.func)


def no_dimensions() -> Case:
    a = te.placeholder((), "float32", name="A")
    b = te.placeholder((7,), "float32", name="B")
    k = te.reduce_axis((0, 7), name="k")
    s = te.compute((), lambda: te.sum(b[k], axis=k), name="s")
    func = te.create_prim_func([a, b, te.compute((), lambda: a[()] * s[()], name="out")])
    return Case(func, func)


def awkward_names() -> Case:
    """Names that mean something in C."""
    a, b = te.placeholder((9,), "float32", name="int"), te.placeholder((9,), "float32", name="größe")
    c = te.compute((9,), lambda double: te.exp(a[double]) + b[double], name="expf")
    func = te.create_prim_func([a, b, te.compute((9,), lambda i: c[i] * 2.0, name="INFINITY")], name="sin")
    return Case(func, func)


def default(request: dict[str, object]) -> Case:
    func = topi.create(request)
    return Case(func, default_schedule(func, Target.parse("llvm")).func)


def one(
    buffer: Buffer, index: Poly, value: Expr, loops: list[Var], *predicates: Poly, steps: int = 0
) -> Block:
    """A block over the loops' own variables, the last `steps` of which carry a reduction."""
    kinds = (IterKind.SPATIAL,) * (len(loops) - steps) + (IterKind.REDUCE,) * steps
    binds = tuple(poly(v) for v in loops)
    name = f"{buffer.name}{len(loops)}{steps}"
    return Block(name, tuple(loops), kinds, binds, buffer, (index,), value, predicates=predicates)


def jumped_over() -> Case:
    """for i: { acc = 0; for j: if 4 i + j < 6: acc += A[4 i + j]; out[i] = acc }: none of i = 2 and 3."""
    i, j = Var("i", 4), Var("j", 4)
    a, out = Buffer("A", (poly(6),), FLOAT32), Buffer("out", (poly(4),), FLOAT32)
    acc = Buffer("acc", (poly(1),), FLOAT32, "register")
    at, held = poly(i) * 4 + j, Load(acc, (poly(0),))
    add = one(acc, poly(0), Binary("add", held, Load(a, (at,))), [i, j], at - 6, steps=1)
    body = (one(acc, poly(0), Const(0.0, FLOAT32), [i]), For(j, (add,)), one(out, poly(i), held, [i]))
    func = PrimFunc("sums", (a, out), (acc,), (For(i, body),))
    return Case(func, func)


def carried_through_a_tile() -> Case:
    """for i: { acc = 0; for j: { t = A[a row of 4, masked]; acc += the row }; out[i] = acc }"""
    i, j, u = Var("i", 2), Var("j", 4), Var("u", 4)
    a, out = Buffer("A", (poly(27),), FLOAT32), Buffer("out", (poly(2),), FLOAT32)
    acc, t = Buffer("acc", (poly(1),), FLOAT32, "register"), Buffer("t", (poly(4),), FLOAT32, "register")
    at, held = poly(i) * 16 + poly(j) * 4 + u, Load(acc, (poly(0),))
    row = one(t, poly(u), Load(a, (at,)), [i, j, u], at - 27)
    step = one(acc, poly(0), Binary("add", held, Load(t, (poly(u),))), [i, j, u], at - 27, steps=2)
    inner = For(j, (For(u, (row,), LoopKind.UNROLLED), For(u, (step,), LoopKind.UNROLLED)))
    body = (one(acc, poly(0), Const(0.0, FLOAT32), [i]), inner, one(out, poly(i), held, [i]))
    func = PrimFunc("sums", (a, out), (acc, t), (For(i, body),))
    return Case(func, func)


CASES: dict[str, Callable[[], Case]] = {
    **{
        f"tile {m}x{n}x{k} {'overlap' if o else 'mask'}": lambda m=m, n=n, k=k, o=o: tile(m, n, k, overlap=o)
        for m, n, k in [(1, 1, 1), (4, 32, 4), (13, 50, 7)]
        for o in (False, True)
    },
    **{f"tile {d}": lambda d=d: tile(13, 50, 7, d) for d in ("float64", "int32", "int8")},
    **{f"tile {d}": lambda d=d: tile(5, 19, 3, d) for d in ("float16", "bfloat16")},
    **{f"packed {s}": lambda s=s: tile(9, 40, 6, pack=s) for s in ("global", "local")},
    **{
        f"copy {n} {d}": lambda n=n, d=d: vectorized(copy(n, d))
        for d in ("int8", "float32", "float64", "bool", "float16")
        for n in (1, 7, 65)
    },
    "padded rows": lambda: padded(0),
    "padded columns": lambda: padded(1),
    "broadcast under a condition on lanes": broadcast_under_a_condition_on_lanes,
    **{f"gather {d}": lambda d=d: transposed(d, 1) for d in ("int8", "float32", "bool")},
    **{f"scatter {d}": lambda d=d: transposed(d, 0) for d in ("int8", "float32", "bool")},
    **{f"fused lanes {n}": lambda n=n: fused_lanes(n) for n in (3, 16, 35)},
    **{f"overlapped {n}": lambda n=n: overlapped(n) for n in (16, 17, 100)},
    "elements of different widths": widths,
    "softmax in registers": softmax,
    **{f"register pieces {n}": lambda n=n: register_pieces(n) for n in (4, 8, 16, None)},
    "fused reduction with a tail": lambda: fused_reduction(True),
    "parallel loop": lambda: fused_reduction(False),
    **{
        f"stages {s} {n} {'at' if at else 'whole'}": lambda s=s, n=n, at=at: stages(s, n, at)
        for s in ("global", "local")
        for n in (40, 1200)
        for at in (False, True)
    },
    "no dimensions": no_dimensions,
    "awkward names": awkward_names,
    "a loop that is jumped over": jumped_over,
    "a value carried through a tile": carried_through_a_tile,
    "default conv2d": lambda: default(
        {"op": "conv2d", "ci": 3, "h": 7, "w": 9, "co": 5, "kh": 3, "kw": 3, "pad": 1, "activation": "relu"}
    ),
    "default dense": lambda: default(
        {"op": "dense", "m": 7, "n": 37, "k": 20, "bias": True, "activation": "relu"}
    ),
    "default softmax": lambda: default({"op": "softmax", "m": 5, "n": 21}),
}


@cache
def case(name: str) -> Case:
    return CASES[name]()


#: Those with predicates on register tiles, which get a version without them unless told otherwise.
TILES = [name for name in CASES if name.startswith(("tile 1", "tile 4", "a value"))]


@pytest.fixture(scope="module")
def kernels(batch: Callable[..., Any]) -> dict[str, Function]:
    """Each case's kernel."""
    return dict(zip(CASES, batch([case(name).scheduled for name in CASES], OPTIONS), strict=True))


@pytest.fixture(scope="module")
def single(batch: Callable[..., Any]) -> dict[str, Function]:
    """The kernels of TILES in one version."""
    return dict(zip(TILES, batch([case(name).scheduled for name in TILES], OPTIONS, False), strict=True))


@pytest.mark.parametrize("name", CASES)
def test_a_scheduled_program_means_what_the_program_means(
    kernels: dict[str, Function], guarded: Any, name: str
) -> None:
    means_the_same(kernels[name], case(name).program, guarded)


@pytest.mark.parametrize("name", TILES)
def test_so_does_a_tile_without_a_version_for_whole_ones(
    single: dict[str, Function], guarded: Any, name: str
) -> None:
    means_the_same(single[name], case(name).program, guarded)


def means_the_same(kernel: Function | BuildError, program: PrimFunc, guarded: Any) -> None:
    """On arrays that end at an unreadable page, and on ones that begin there."""
    assert isinstance(kernel, Function), str(kernel)
    inputs = interpret.random_inputs(program, 1)
    for at_start in (False, True):
        arrays = [guarded.array(x, at_start=at_start) for x in inputs]
        kernel(*arrays)
        agrees(program, inputs, arrays)


def agrees(program: PrimFunc, inputs: list[Array], arrays: list[Array]) -> None:
    """The outputs are those of the reference; of a program made by hand, those of the scalar interpreter."""
    if not program.allocs or program.allocs[0].scope == "global":
        result = interpret.check(interpret.expected(program, inputs), arrays)
        assert result.ok, result.message
        return
    expected = [x.copy() for x in inputs]
    interpret.run(program, expected)
    for got, want in zip(arrays, expected, strict=True):
        np.testing.assert_allclose(got, want, rtol=1e-5)


def test_strict_math_rounds_each_product(batch: Callable[..., Any]) -> None:
    (kernel,) = batch([replace(matmul(3, 3, 50), name="strict")], "-math=strict")
    rng = np.random.default_rng(0)
    a, b = rng.standard_normal((3, 50)).astype("f4"), rng.standard_normal((50, 3)).astype("f4")
    c, expected = np.empty((3, 3), "f4"), np.zeros((3, 3), "f4")
    kernel(a, b, c)
    for k in range(50):
        expected = expected + a[:, k, None] * b[None, k]
    np.testing.assert_array_equal(c, expected)
