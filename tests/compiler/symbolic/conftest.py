"""Programs over sizes of every kind."""

from collections.abc import Callable, Mapping

import pytest

from tilewright.compiler import te
from tilewright.compiler.ir import PrimFunc


def chain() -> PrimFunc:
    """Three elementwise stages."""
    n = te.var("n")
    a, b = te.placeholder((n,), "float32", "A"), te.placeholder((n,), "float32", "B")
    c = te.compute((n,), lambda i: a[i] + b[i], name="C")
    d = te.compute((n,), lambda i: c[i] + c[i], name="D")
    e = te.compute((n,), lambda i: d[i] + a[i], name="E")
    return te.create_prim_func([a, b, e], name="chain")


def matmul() -> PrimFunc:
    """A product with a bias and a relu behind it."""
    m, n, k = te.var("m"), te.var("n"), te.var("k")
    a, b = te.placeholder((m, k), "float32", "A"), te.placeholder((k, n), "float32", "B")
    bias = te.placeholder((n,), "float32", "bias")
    axis = te.reduce_axis((0, k), "p")
    c = te.compute((m, n), lambda i, j: te.sum(a[i, axis] * b[axis, j], axis=axis), name="C")
    d = te.compute((m, n), lambda i, j: te.maximum(c[i, j] + bias[j], 0), name="D")
    return te.create_prim_func([a, b, bias, d], name="matmul")


def dense() -> PrimFunc:
    """A product of integers whose second factor is transposed; one size is a number."""
    m, n = te.var("m"), te.var("n")
    a, b = te.placeholder((m, 6), "int32", "A"), te.placeholder((n, 6), "int32", "B")
    axis = te.reduce_axis((0, 6), "k")
    c = te.compute((m, n), lambda i, j: te.sum(a[i, axis] * b[j, axis], axis=axis), name="C")
    return te.create_prim_func([a, b, c], name="dense")


def softmax() -> PrimFunc:
    """Two reductions along rows, the second over what the first was used for."""
    m, n = te.var("m"), te.var("n")
    x = te.placeholder((m, n), "float32", "X")
    r, s = te.reduce_axis((0, n), "r"), te.reduce_axis((0, n), "s")
    most = te.compute((m,), lambda i: te.max(x[i, r], axis=r), name="most")
    e = te.compute((m, n), lambda i, j: te.exp(x[i, j] - most[i]), name="E")
    total = te.compute((m,), lambda i: te.sum(e[i, s], axis=s), name="total")
    y = te.compute((m, n), lambda i, j: e[i, j] / total[i], name="Y")
    return te.create_prim_func([x, y], name="softmax")


def columns() -> PrimFunc:
    """A sum along columns, in float64."""
    m, n = te.var("m"), te.var("n")
    x = te.placeholder((m, n), "float64", "X")
    r = te.reduce_axis((0, m), "r")
    y = te.compute((n,), lambda j: te.sum(x[r, j], axis=r), name="Y")
    return te.create_prim_func([x, y], name="columns")


def stencil() -> PrimFunc:
    """Neighbours of a doubled array; outside of it stands 0."""
    n = te.var("n")
    a = te.placeholder((n,), "float32", "A")
    b = te.compute((n,), lambda i: a[i] * 2, name="B")

    def sides(i: te.Index) -> te.Value:
        left = te.if_then_else(i >= 1, b[i - 1], 0)
        right = te.if_then_else(i < n - 1, b[i + 1], 0)
        return left + b[i] + right

    c = te.compute((n,), sides, name="C")
    return te.create_prim_func([a, c], name="stencil")


def window() -> PrimFunc:
    """Sums of three neighbours: two elements fewer than there are."""
    n = te.var("n")
    less = te.maximum(n - 2, 0)
    a = te.placeholder((n,), "int32", "A")
    b = te.compute((n,), lambda i: a[i] + 1, name="B")
    c = te.compute((less,), lambda i: b[i] + b[i + 1] + b[i + 2], name="C")
    return te.create_prim_func([a, c], name="window")


def transpose() -> PrimFunc:
    """A transposed array with something added."""
    m, n = te.var("m"), te.var("n")
    a = te.placeholder((m, n), "int16", "A")
    b = te.compute((n, m), lambda i, j: a[j, i] + 1, name="B")
    c = te.compute((n, m), lambda i, j: b[i, j] * 3, name="C")
    return te.create_prim_func([a, c], name="transpose")


def flatten() -> PrimFunc:
    """Two dimensions made one, and reversed."""
    m, n = te.var("m"), te.var("n")
    a = te.placeholder((m, n), "float32", "A")
    b = te.compute((m * n,), lambda i: a[i // n, i % n], name="B")
    c = te.compute((m * n,), lambda i: b[m * n - 1 - i], name="C")
    return te.create_prim_func([a, c], name="flatten")


def twice() -> PrimFunc:
    """Every element two times, then a zero: 2 n + 1 elements."""
    n = te.var("n")
    a = te.placeholder((n,), "int64", "A")
    b = te.compute((n * 2,), lambda i: a[i // 2] + te.cast(n, "int64"), name="B")
    c = te.compute((n * 2 + 1,), lambda i: te.if_then_else(i < n * 2, b[i], 0), name="C")
    return te.create_prim_func([a, c], name="twice")


def rows() -> PrimFunc:
    """Rows of 5 with a bias for each row: broadcast along both dimensions."""
    n = te.var("n")
    a, b = te.placeholder((n, 5), "float32", "A"), te.placeholder((n,), "float32", "B")
    c = te.placeholder((5,), "float32", "C")
    d = te.compute((n, 5), lambda i, j: a[i, j] * b[i], name="D")
    e = te.compute((n, 5), lambda i, j: d[i, j] + c[j], name="E")
    return te.create_prim_func([a, b, c, e], name="rows")


PROGRAMS: Mapping[str, Callable[[], PrimFunc]] = {
    f.__name__: f
    for f in (
        chain,
        matmul,
        dense,
        softmax,
        columns,
        stencil,
        window,
        transpose,
        flatten,
        twice,
        rows,
    )
}


@pytest.fixture(params=PROGRAMS, ids=lambda n: n)
def program(request: pytest.FixtureRequest) -> PrimFunc:
    return PROGRAMS[request.param]()
