"""The printed form of a program reads back exactly."""

import ml_dtypes
import numpy as np
import pytest

import tilewright as tw
from tilewright.compiler import te, topi
from tilewright.compiler.arith import Var, ceil_div, floor_div, maximum, minimum, poly
from tilewright.compiler.ir import (
    Binary,
    Block,
    Buffer,
    Cast,
    Compare,
    Const,
    DType,
    For,
    InBounds,
    IndexValue,
    IterKind,
    Load,
    PrimFunc,
    Select,
    Unary,
    nest,
    parse_script,
    script,
    structural_equal,
)
from tilewright.compiler.ir.expr import BINARY_OPS, COMPARE_OPS, UNARY_OPS
from tilewright.compiler.ir.rules import refused

from .workloads import GOLDEN_KEYS

DTYPES = (
    [f"{sign}int{bits}" for sign in ("", "u") for bits in (8, 16, 32, 64)]
    + ["float16", "bfloat16", "float32", "float64", "bool"]
)  # fmt: skip


def reads_back(func: PrimFunc, check: bool = True) -> PrimFunc:
    text = script(func)
    read = parse_script(text, check=check)
    assert script(read) == text
    assert structural_equal(read, func), text
    return read


@pytest.mark.parametrize("request_", [r for r, _ in GOLDEN_KEYS])
def test_every_workload_reads_back(request_):
    func = topi.create(request_)
    read = reads_back(func)
    assert [b.name for _, b in read.blocks()] == [b.name for _, b in func.blocks()]


def test_every_kind_of_node_reads_back(every_node):
    reads_back(every_node)


def test_a_reduction_reads_back(row_sums):
    reads_back(row_sums)


def test_a_program_that_was_read_runs(row_sums):
    read = parse_script(script(row_sums))
    a, s = np.arange(6, dtype="f4").reshape(2, 3), np.full(2, np.nan, "f4")
    tw.build(read)(a, s)
    np.testing.assert_array_equal(s, a.sum(1))


def one(value, dtype, *inputs, extents=(4, 3), **fields):
    """OUT[i, j] = value(i, j, *inputs) over 4 x 3."""
    i, j = (Var(n, e) for n, e in zip("ij", extents, strict=True))
    buffers = [Buffer(f"A{n}", tuple(map(poly, extents)), DType.parse(d)) for n, d in enumerate(inputs)]
    out = Buffer("OUT", tuple(map(poly, extents)), DType.parse(dtype))
    at = (poly(i), poly(j))
    loops = [Var(v.name, v.extent) for v in (i, j)]
    e = value(i, j, *(Load(b, at) for b in buffers))
    block = Block("OUT", (i, j), (IterKind.SPATIAL,) * 2, tuple(map(poly, loops)), out, at, e, **fields)
    return PrimFunc("one", (*buffers, out), (), nest(loops, block))


@pytest.mark.parametrize("dtype", DTYPES)
def test_every_operation_of_every_dtype_reads_back(dtype):
    for op in BINARY_OPS:
        if refused(op, DType.parse(dtype)) is None:
            reads_back(one(lambda i, j, a, b, op=op: Binary(op, a, Binary(op, b, a)), dtype, dtype, dtype))
            reads_back(one(lambda i, j, a, b, op=op: Binary(op, Binary(op, b, a), a), dtype, dtype, dtype))
    for op in COMPARE_OPS:
        if refused(op, DType.parse(dtype)) is None:
            reads_back(one(lambda i, j, a, b, op=op: Compare(op, a, b), "bool", dtype, dtype))
    for op in UNARY_OPS:
        if refused(op, DType.parse(dtype)) is None:
            reads_back(one(lambda i, j, a, op=op: Unary(op, Unary(op, a)), dtype, dtype))


@pytest.mark.parametrize(
    ("outer", "dtype"),
    [(op, d) for op in BINARY_OPS for d in ("int32", "float32", "bool") if not refused(op, DType.parse(d))],
)
def test_operations_in_each_other_keep_their_order(outer, dtype):
    for inner in BINARY_OPS:
        if refused(inner, DType.parse(dtype)) is None:
            reads_back(
                one(
                    lambda i, j, a, b, inner=inner: Binary(
                        outer, Binary(inner, a, b), Binary(inner, b, Binary(outer, a, b))
                    ),
                    dtype,
                    dtype,
                    dtype,
                )
            )


def constants(dtype):
    t = DType.parse(dtype)
    if t.is_bool:
        return [True, False]
    if t.is_int:
        low, high = t.limits
        return [low, -1 if low else 0, 0, 1, 7, high]
    info = ml_dtypes.finfo(t.numpy)
    values = [0.0, -0.0, 1.0, 0.1, -1.5, 1 / 3, info.max, info.min, info.tiny, info.smallest_subnormal]
    return [float(t.numpy.type(v)) for v in [*values, np.inf, -np.inf, np.nan]]


@pytest.mark.parametrize("dtype", DTYPES)
def test_every_constant_reads_back_exactly(dtype):
    t = DType.parse(dtype)
    op = "xor" if t.is_bool else "sub"
    for value in constants(dtype):
        c = Const(value, t)
        reads_back(one(lambda i, j, c=c: c, dtype))
        reads_back(one(lambda i, j, a, c=c: Binary(op, c, Binary(op, a, c)), dtype, dtype))
        reads_back(one(lambda i, j, c=c: Cast(DType.parse("int16"), c), "int16"))
        reads_back(one(lambda i, j, c=c: Compare("eq", c, c), "bool"))
        reads_back(one(lambda i, j, a, c=c: Compare("eq", c, a), "bool", dtype))
        reads_back(one(lambda i, j, c=c: Cast(DType.parse("float64"), Binary(op, c, c)), "float64"))
        if not t.is_bool:
            reads_back(one(lambda i, j, c=c: Unary("neg", Unary("neg", c)), dtype))


@pytest.mark.parametrize("dtype", [d for d in DTYPES if d != "bool"])
def test_indices_as_values_are_told_from_constants_and_conversions(dtype):
    t = DType.parse(dtype)
    other = DType.parse("int16")
    reads_back(one(lambda i, j: IndexValue(poly(i) * 3 - j, t), dtype))
    reads_back(one(lambda i, j: IndexValue(poly(3), t), dtype))
    reads_back(one(lambda i, j: Const(3, t) if t.is_int else Const(3.0, t), dtype))
    reads_back(one(lambda i, j: Cast(t, IndexValue(poly(3), other)), dtype))
    reads_back(one(lambda i, j: Cast(t, Const(3, other)), dtype))
    reads_back(one(lambda i, j: Cast(t, IndexValue(minimum(i, 2), other)), dtype))
    reads_back(one(lambda i, j: Cast(t, Binary("min", IndexValue(poly(i), other), Const(2, other))), dtype))


def test_conditions_on_indices_are_told_from_comparisons_of_values():
    int64 = DType.parse("int64")
    inside = [
        (),
        (lambda i, j: poly(i) - 2,),
        (lambda i, j: 1 - poly(i), lambda i, j: poly(j) - i),
        (lambda i, j: -poly(i) - 1, lambda i, j: poly(-1)),
        (lambda i, j: floor_div(i, 2) - maximum(j, 1) * 3 + ceil_div(i, 3),),
    ]
    for parts in inside:
        reads_back(one(lambda i, j, parts=parts: InBounds(tuple(p(i, j) for p in parts)), "bool"))
        reads_back(
            one(
                lambda i, j, a, parts=parts: Select(
                    Binary("and", InBounds(tuple(p(i, j) for p in parts)), Compare("lt", a, Const(2, int64))),
                    a,
                    Const(-1, int64),
                ),
                "int64",
                "int64",
            )
        )
    reads_back(one(lambda i, j: Compare("lt", IndexValue(poly(i), int64), Const(2, int64)), "bool"))
    reads_back(one(lambda i, j: Compare("lt", Const(1, int64), Const(2, int64)), "bool"))


def test_negative_divisions_and_equal_terms_read_back():
    reads_back(
        one(lambda i, j: IndexValue(5 - floor_div(i, 2) - floor_div(j, 2) * i, DType.parse("int8")), "int8")
    )
    reads_back(
        one(lambda i, j: IndexValue(-floor_div(poly(i) + j, 2) * 3, DType.parse("int8")), "int8"),
    )


def test_arrays_without_dimensions_read_back():
    a = te.placeholder((3,), "float32", name="A")
    k = te.reduce_axis((0, 3), name="k")
    total = te.compute((), lambda: te.sum(a[k], axis=k), name="total")
    shifted = te.compute((3,), lambda i: a[i] - total[()], name="shifted")
    reads_back(te.create_prim_func([a, shifted], name="f"))


def test_names_that_python_does_not_read_are_spelled_anew():
    i, j = Var("lambda", 2), Var("lambda", 3)
    buffers = tuple(Buffer(n, (poly(2), poly(3)), DType.parse("float32")) for n in ("in", "ﬁ", "a b", "inf"))
    loops = [Var("inf", 2), Var("inf", 3)]
    at = (poly(i), poly(j))
    value = Binary("add", Binary("add", Load(buffers[0], at), Load(buffers[1], at)), Load(buffers[2], at))
    block = Block(
        "a block's name", (i, j), (IterKind.SPATIAL,) * 2, tuple(map(poly, loops)), buffers[3], at, value
    )
    func = PrimFunc("def", buffers, (), nest(loops, block))
    assert script(func) == (
        "def def_(in_: float32[2, 3], fi: float32[2, 3], a_b: float32[2, 3], inf_: float32[2, 3]):\n"
        "    for inf_ in range(2):\n"
        "        for inf__1 in range(3):\n"
        '            with block("a block\'s name"):\n'
        "                inf_[inf_, inf__1] = in_[inf_, inf__1] + fi[inf_, inf__1] + a_b[inf_, inf__1]\n"
    )
    reads_back(func)


def test_what_a_block_adds_to_its_loops_stands_on_its_line():
    i, k = Var("i", 10), Var("k", 7)
    x, y, z = Var("x", 3), Var("y", 4), Var("z", 7)
    a, c = (
        Buffer("A", (poly(10), poly(7)), DType.parse("int32")),
        Buffer("C", (poly(10),), DType.parse("int32")),
    )
    at = (poly(i),)
    block = Block(
        "C",
        (i, k),
        (IterKind.SPATIAL, IterKind.REDUCE),
        (poly(x) * 4 + y, poly(z)),
        c,
        at,
        Binary("add", Load(c, at), Load(a, (poly(i), poly(k)))),
        Const(0, DType.parse("int32")),
        (poly(x) * 4 + y - 10,),
        (("i", 3), ("note", "it's"), ("pragma.x", -1)),
    )
    func = PrimFunc("f", (a, c), (), (For(x, (For(y, (For(z, (block,)),), annotations=(("a-b", "c"),)),)),))
    assert script(func) == (
        "def f(A: int32[10, 7], C: int32[10]):\n"
        "    for x in range(3):\n"
        "        for y in range(4, **{'a-b': 'c'}):\n"
        "            for z in range(7):\n"
        "                with block('C', i_1=spatial(x * 4 + y, 10), k=reduce(z), i=3, note=\"it's\", "
        "**{'pragma.x': -1}):\n"
        "                    if x * 4 + y < 10:\n"
        "                        with init():\n"
        "                            C[i_1] = 0\n"
        "                        C[i_1] += A[i_1, k]\n"
    )
    reads_back(func)


def test_a_block_without_iteration_variables_under_a_loop_reads_back():
    a, b = Buffer("A", (poly(1),), DType.parse("int8")), Buffer("B", (poly(1),), DType.parse("int8"))
    block = Block("B", (), (), (), b, (poly(0),), Load(a, (poly(0),)))
    func = PrimFunc("f", (a, b), (), nest([Var("i", 5)], block))
    assert "with block('B', None):" in script(func)
    reads_back(func)


def test_scopes_and_several_dimensions_of_what_is_allocated_read_back():
    func = topi.create({"op": "matmul", "m": 8, "n": 6, "k": 4})
    sch = tw.Schedule(func)
    c = sch.get_block("C")
    sch.cache_read(c, 0, "local", order=(1, 0))
    sch.cache_write(c, 0, "register")
    assert [b.scope for b in reads_back(sch.func).allocs] == ["local", "register"]


def test_shapes_over_sizes_read_back_and_run():
    n, m = te.var("n"), te.var("i")
    a = te.placeholder((n * 2, m), "float32", name="A")
    b = te.placeholder((n, 3), "float32", name="B")
    k = te.reduce_axis((0, m), name="k")
    s = te.compute((n,), lambda i: te.sum(a[i * 2, k] * 2.0, axis=k), name="S")
    c = te.compute((n, 3), lambda i, j: s[i] + b[i, j] + te.cast(n, "float32"), name="C")
    func = te.create_prim_func([a, b, c], name="f")
    assert script(func) == (
        "def f(A: float32[n * 2, i], B: float32[n, 3], C: float32[n, 3]):\n"
        "    S = alloc(float32[n])\n"
        "    for i_1 in range(n):\n"
        "        for k in range(i):\n"
        "            with block('S'):\n"
        "                with init():\n"
        "                    S[i_1] = 0.0\n"
        "                S[i_1] += A[i_1 * 2, k] * 2.0\n"
        "    for i_1 in range(n):\n"
        "        for j in range(3):\n"
        "            C[i_1, j] = S[i_1] + B[i_1, j] + float32(index(n))\n"
    )
    read = reads_back(func)
    assert [size.name for size in read.sizes] == ["i", "n"]
    x, y = np.ones((10, 7), "f4"), np.arange(15, dtype="f4").reshape(5, 3)
    z = np.zeros((5, 3), "f4")
    tw.build(read)(x, y, z)
    np.testing.assert_array_equal(z, y + 19)
