"""Small programs of every kind, which the fuzzer schedules."""

from __future__ import annotations

from collections.abc import Callable

from tilewright.compiler import te, topi
from tilewright.compiler.ir import PrimFunc


def operator(**request: object) -> Callable[[], PrimFunc]:
    return lambda: topi.create(request)


def unary(function: Callable[[te.Value], object], dtype: str, shape: tuple[int, ...] = (5, 13)) -> PrimFunc:
    a = te.placeholder(shape, dtype, name="A")
    b = te.compute(shape, lambda i, j: function(a[i, j]), name="B")
    return te.create_prim_func([a, b], name="unary")


def binary(function: Callable[[te.Value, te.Value], object], dtype: str) -> PrimFunc:
    a = te.placeholder((7, 11), dtype, name="A")
    b = te.placeholder((7, 11), dtype, name="B")
    c = te.compute((7, 11), lambda i, j: function(a[i, j], b[i, j]), name="C")
    return te.create_prim_func([a, b, c], name="binary")


def rows_of_bytes(left: str, right: str, wide: str = "int32") -> PrimFunc:
    """Products of narrow rows, which processors add up two or four at a time."""
    a, b = te.placeholder((4, 16), left, name="A"), te.placeholder((21, 16), right, name="B")
    k = te.reduce_axis((0, 16), name="k")

    def element(i: te.Index, j: te.Index) -> te.Value:
        return te.sum(te.cast(a[i, k], wide) * te.cast(b[j, k], wide), axis=k)

    return te.create_prim_func([a, b, te.compute((4, 21), element, name="C")], name="bytes")


def broadcast() -> PrimFunc:
    a = te.placeholder((6, 1, 9), "float32", name="A")
    b = te.placeholder((5, 1), "float32", name="B")
    c = te.compute((6, 5, 9), lambda i, j, k: a[i, 0, k] * b[j, 0], name="C")
    return te.create_prim_func([a, b, c], name="broadcast")


def stencil() -> PrimFunc:
    a = te.placeholder((4, 15), "float32", name="A")
    b = te.compute((4, 15), lambda i, j: a[i, j] * 2, name="B")
    c = te.compute((4, 13), lambda i, j: b[i, j] + b[i, j + 1] + b[i, j + 2], name="C")
    return te.create_prim_func([a, c], name="stencil")


def stencil2d() -> PrimFunc:
    a = te.placeholder((9, 11), "int16", name="A")
    b = te.compute((9, 11), lambda i, j: a[i, j] + 1, name="B")
    c = te.compute(
        (7, 9), lambda i, j: b[i, j + 1] + b[i + 2, j + 1] - b[i + 1, j] * b[i + 1, j + 2], name="C"
    )
    return te.create_prim_func([a, c], name="stencil2d")


def padded() -> PrimFunc:
    """A stencil over an array with zeros around it."""
    a = te.placeholder((5, 8), "float32", name="A")
    p = te.compute(
        (7, 10),
        lambda i, j: te.if_then_else(
            te.all(i >= 1, i < 6, j >= 1, j < 9), a[i - 1, j - 1], te.const(0, "float32")
        ),
        name="P",
    )
    c = te.compute((5, 8), lambda i, j: p[i, j] + p[i + 1, j + 1] * 4 - p[i + 2, j + 2], name="C")
    return te.create_prim_func([a, c], name="padded")


def shifted() -> PrimFunc:
    """Reads that are guarded in place, without a padded copy."""
    a = te.placeholder((23,), "int32", name="A")
    b = te.compute(
        (23,),
        lambda i: te.if_then_else(te.all(i >= 3, i < 21), a[i - 3] + a[i + 2], te.const(7, "int32")),
        name="B",
    )
    return te.create_prim_func([a, b], name="shifted")


def flat(dtype: str) -> PrimFunc:
    """Floor division and modulo in the indices."""
    a = te.placeholder((6, 7), dtype, name="A")
    b = te.compute((42,), lambda i: a[i // 7, i % 7] + 1, name="B")
    c = te.compute((3, 14), lambda i, j: b[i * 14 + j] * 2, name="C")
    return te.create_prim_func([a, c], name="flat")


def reduce(reducer: str, dtype: str, shape: tuple[int, int] = (5, 17)) -> PrimFunc:
    a = te.placeholder(shape, dtype, name="A")
    k = te.reduce_axis((0, shape[1]), name="k")
    b = te.compute((shape[0],), lambda i: getattr(te, reducer)(a[i, k], axis=k), name="B")
    return te.create_prim_func([a, b], name="reduce")


def whole(dtype: str = "float32") -> PrimFunc:
    a = te.placeholder((13, 9), dtype, name="A")
    i, j = te.reduce_axis((0, 13), name="i"), te.reduce_axis((0, 9), name="j")
    b = te.compute((), lambda: te.sum(a[i, j], axis=[i, j]), name="B")
    return te.create_prim_func([a, b], name="whole")


def columns() -> PrimFunc:
    a = te.placeholder((19, 6), "int32", name="A")
    k = te.reduce_axis((0, 19), name="k")
    b = te.compute((6,), lambda j: te.max(a[k, j], axis=k), name="B")
    return te.create_prim_func([a, b], name="columns")


def user_reducer() -> PrimFunc:
    a = te.placeholder((4, 11), "int32", name="A")
    k = te.reduce_axis((0, 11), name="k")
    product = te.comm_reducer(lambda x, y: x * y, lambda t: te.const(1, t), name="product")
    b = te.compute((4,), lambda i: product(a[i, k], axis=k), name="B")
    return te.create_prim_func([a, b], name="user_reducer")


def two_outputs() -> PrimFunc:
    a = te.placeholder((6, 11), "int32", name="A")
    low, high = te.compute((6, 11), lambda i, j: (a[i, j] - 1, a[i, j] * a[i, j]), name="B")
    return te.create_prim_func([a, low, high], name="two_outputs")


def matmul(dtype: str, transpose: str, m: int = 5, n: int = 11, k: int = 7) -> PrimFunc:
    a = te.placeholder((m, k) if transpose[0] == "n" else (k, m), dtype, name="A")
    b = te.placeholder((k, n) if transpose[1] == "n" else (n, k), dtype, name="B")
    r = te.reduce_axis((0, k), name="k")

    def term(i: te.Index, j: te.Index) -> te.Value:
        x = a[i, r] if transpose[0] == "n" else a[r, i]
        y = b[r, j] if transpose[1] == "n" else b[j, r]
        return te.sum(x * y, axis=r)

    c = te.compute((m, n), term, name="C")
    return te.create_prim_func([a, b, c], name="matmul")


def grouped_conv2d() -> PrimFunc:
    x = te.placeholder((1, 4, 6, 5), "float32", name="X")
    w = te.placeholder((6, 2, 3, 3), "float32", name="W")
    c, u, v = (te.reduce_axis((0, e), name=s) for s, e in (("c", 2), ("u", 3), ("v", 3)))
    y = te.compute(
        (1, 6, 4, 3),
        lambda n, o, i, j: te.sum(x[n, (o // 3) * 2 + c, i + u, j + v] * w[o, c, u, v], axis=[c, u, v]),
        name="Y",
    )
    return te.create_prim_func([x, w, y], name="grouped")


def conv1d(stride: int, dilation: int) -> PrimFunc:
    x = te.placeholder((2, 3, 17), "float32", name="X")
    w = te.placeholder((5, 3, 3), "float32", name="W")
    c, r = te.reduce_axis((0, 3), name="c"), te.reduce_axis((0, 3), name="r")
    out = (17 - dilation * 2 - 1) // stride + 1
    y = te.compute(
        (2, 5, out),
        lambda n, o, i: te.sum(x[n, c, i * stride + r * dilation] * w[o, c, r], axis=[c, r]),
        name="Y",
    )
    return te.create_prim_func([x, w, y], name="conv1d")


def conv3d() -> PrimFunc:
    x = te.placeholder((2, 4, 5, 4), "float32", name="X")
    w = te.placeholder((3, 2, 2, 3, 2), "float32", name="W")
    axes = [te.reduce_axis((0, e), name=s) for s, e in (("c", 2), ("d", 2), ("u", 3), ("v", 2))]
    c, d, u, v = axes
    y = te.compute(
        (3, 3, 3, 3),
        lambda o, z, i, j: te.sum(x[c, z + d, i + u, j + v] * w[o, c, d, u, v], axis=axes),
        name="Y",
    )
    return te.create_prim_func([x, w, y], name="conv3d")


def max_pool() -> PrimFunc:
    x = te.placeholder((3, 9, 9), "int8", name="X")
    u, v = te.reduce_axis((0, 3), name="u"), te.reduce_axis((0, 3), name="v")
    y = te.compute((3, 4, 4), lambda c, i, j: te.max(x[c, i * 2 + u, j * 2 + v], axis=[u, v]), name="Y")
    return te.create_prim_func([x, y], name="max_pool")


def chain() -> PrimFunc:
    a = te.placeholder((5, 7), "int32", name="A")
    b = te.compute((5, 7), lambda i, j: a[i, j] + 1, name="B")
    c = te.compute((7, 5), lambda i, j: b[j, i] * 3, name="C")
    d = te.compute((7, 5), lambda i, j: c[i, j] - 2, name="D")
    e = te.compute((7, 5), lambda i, j: te.maximum(d[i, j], 0), name="E")
    return te.create_prim_func([a, e], name="chain")


def cumulative() -> PrimFunc:
    """Four blocks, each of which needs all of the one before."""
    a = te.placeholder((6, 9), "float32", name="A")
    k, m = te.reduce_axis((0, 9), name="k"), te.reduce_axis((0, 6), name="m")
    total = te.compute((6,), lambda i: te.sum(a[i, k], axis=k), name="total")
    out = te.compute((6, 9), lambda i, j: a[i, j] - total[i], name="out")
    top = te.compute((9,), lambda j: te.max(out[m, j], axis=m), name="top")
    end = te.compute((6, 9), lambda i, j: out[i, j] + top[j], name="end")
    return te.create_prim_func([a, end], name="cumulative")


def prefix() -> PrimFunc:
    """A sum over a triangle: the reads of a step depend on where it is."""
    a = te.placeholder((12,), "int32", name="A")
    k = te.reduce_axis((0, 12), name="k")
    b = te.compute(
        (12,), lambda i: te.sum(te.if_then_else(k <= i, a[k], te.const(0, "int32")), axis=k), name="B"
    )
    return te.create_prim_func([a, b], name="prefix")


def diamond() -> PrimFunc:
    a = te.placeholder((8, 9), "float64", name="A")
    b = te.compute((8, 9), lambda i, j: a[i, j] + 2, name="B")
    c = te.compute((8, 9), lambda i, j: b[i, j] * 2, name="C")
    d = te.compute((8, 9), lambda i, j: b[i, j] - 3, name="D")
    e = te.compute((8, 9), lambda i, j: c[i, j] * d[i, j], name="E")
    return te.create_prim_func([a, e], name="diamond")


def twice() -> PrimFunc:
    """A product and its consumer that reads it transposed."""
    a = te.placeholder((6, 5), "float32", name="A")
    b = te.placeholder((5, 7), "float32", name="B")
    k = te.reduce_axis((0, 5), name="k")
    c = te.compute((6, 7), lambda i, j: te.sum(a[i, k] * b[k, j], axis=k), name="C")
    d = te.compute((7, 6), lambda i, j: c[j, i] + 1, name="D")
    return te.create_prim_func([a, b, d], name="twice")


def chained_products() -> PrimFunc:
    a = te.placeholder((4, 5), "int32", name="A")
    b = te.placeholder((5, 6), "int32", name="B")
    c = te.placeholder((6, 3), "int32", name="C")
    k, m = te.reduce_axis((0, 5), name="k"), te.reduce_axis((0, 6), name="m")
    d = te.compute((4, 6), lambda i, j: te.sum(a[i, k] * b[k, j], axis=k), name="D")
    e = te.compute((4, 3), lambda i, j: te.sum(d[i, m] * c[m, j], axis=m), name="E")
    return te.create_prim_func([a, b, c, e], name="chained")


def epilogue() -> PrimFunc:
    a = te.placeholder((6, 8), "float32", name="A")
    b = te.placeholder((13, 8), "float32", name="B")
    bias = te.placeholder((13,), "float32", name="bias")
    k = te.reduce_axis((0, 8), name="k")
    c = te.compute((6, 13), lambda i, j: te.sum(a[i, k] * b[j, k], axis=k), name="C")
    d = te.compute((6, 13), lambda i, j: te.maximum(c[i, j] + bias[j], 0), name="D")
    return te.create_prim_func([a, b, bias, d], name="epilogue")


def narrow_integers() -> PrimFunc:
    """Operations that wrap, step by step."""
    a = te.placeholder((7, 9), "uint8", name="A")
    b = te.compute((7, 9), lambda i, j: a[i, j] * 100 + 200, name="B")
    c = te.compute((7, 9), lambda i, j: te.cast(te.const(0, "uint8") - b[i, j], "int32"), name="C")
    return te.create_prim_func([a, c], name="narrow")


def shifts() -> PrimFunc:
    return binary(lambda x, y: ((x << 3) ^ (y >> 1)) & te.const(0x55, "int64"), "int64")


def divisions(dtype: str) -> PrimFunc:
    return binary(lambda x, y: te.floordiv(x, y) * 3 + te.truncmod(x, y) - te.floormod(y, x), dtype)


def bools() -> PrimFunc:
    a = te.placeholder((6, 10), "bool", name="A")
    b = te.placeholder((6, 10), "bool", name="B")
    c = te.compute((6, 10), lambda i, j: (a[i, j] & ~b[i, j]) ^ (a[i, j] | b[i, j]), name="C")
    return te.create_prim_func([a, b, c], name="bools")


def casts() -> PrimFunc:
    a = te.placeholder((5, 12), "int16", name="A")
    b = te.compute((5, 12), lambda i, j: te.cast(a[i, j], "float32") * 0.5, name="B")
    c = te.compute((5, 12), lambda i, j: te.cast(te.floor(b[i, j]), "int8"), name="C")
    return te.create_prim_func([a, c], name="casts")


def indices_as_values() -> PrimFunc:
    a = te.placeholder((5, 9), "int32", name="A")
    b = te.compute((5, 9), lambda i, j: a[i, j] + te.cast(i * 3 + j // 2, "int32"), name="B")
    return te.create_prim_func([a, b], name="indexed")


def argmax() -> PrimFunc:
    a = te.placeholder((4, 13), "int32", name="A")
    k = te.reduce_axis((0, 13), name="k")
    b = te.compute((4,), lambda i: te.argmax(a[i, k], axis=k), name="B")
    return te.create_prim_func([a, b], name="argmax")


def dot_rows() -> PrimFunc:
    """Weights in rows of four, as dot-product instructions want them."""
    a = te.placeholder((3, 8), "int8", name="A")
    b = te.placeholder((32, 8), "int8", name="B")
    k = te.reduce_axis((0, 8), name="k")
    c = te.compute(
        (3, 32),
        lambda i, j: te.sum(te.cast(a[i, k], "int32") * te.cast(b[j, k], "int32"), axis=k),
        name="C",
    )
    return te.create_prim_func([a, b, c], name="dot_rows")


def symbolic_add() -> PrimFunc:
    n = te.var("n")
    a = te.placeholder((n,), "float32", name="A")
    b = te.placeholder((n,), "float32", name="B")
    c = te.compute((n,), lambda i: a[i] + b[i], name="C")
    d = te.compute((n,), lambda i: c[i] * 2, name="D")
    e = te.compute((n,), lambda i: d[i] + a[i], name="E")
    return te.create_prim_func([a, b, e], name="symbolic_add")


def symbolic_matmul() -> PrimFunc:
    m, n, k = te.var("m"), te.var("n"), te.var("k")
    a = te.placeholder((m, k), "float32", name="A")
    b = te.placeholder((k, n), "float32", name="B")
    r = te.reduce_axis((0, k), name="r")
    c = te.compute((m, n), lambda i, j: te.sum(a[i, r] * b[r, j], axis=r), name="C")
    return te.create_prim_func([a, b, c], name="symbolic_matmul")


def symbolic_rows() -> PrimFunc:
    n = te.var("n")
    a = te.placeholder((n, 9), "int32", name="A")
    k = te.reduce_axis((0, 9), name="k")
    total = te.compute((n,), lambda i: te.sum(a[i, k], axis=k), name="total")
    out = te.compute((n, 9), lambda i, j: a[i, j] - total[i], name="out")
    return te.create_prim_func([a, out], name="symbolic_rows")
