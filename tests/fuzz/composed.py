"""Programs of several stages, as networks have them, and such that index in more than one direction."""

from __future__ import annotations

from tilewright.compiler import te
from tilewright.compiler.ir import PrimFunc


def attention() -> PrimFunc:
    """Two products with a softmax between them."""
    q = te.placeholder((4, 6), "float32", name="Q")
    k = te.placeholder((7, 6), "float32", name="K")
    v = te.placeholder((7, 5), "float32", name="V")
    d = te.reduce_axis((0, 6), name="d")
    m, n, r = (te.reduce_axis((0, 7), name=name) for name in "mnr")
    s = te.compute((4, 7), lambda i, j: te.sum(q[i, d] * k[j, d], axis=d), name="S")
    top = te.compute((4,), lambda i: te.max(s[i, m], axis=m), name="top")
    e = te.compute((4, 7), lambda i, j: te.exp(s[i, j] - top[i]), name="E")
    total = te.compute((4,), lambda i: te.sum(e[i, n], axis=n), name="total")
    p = te.compute((4, 7), lambda i, j: e[i, j] / total[i], name="P")
    out = te.compute((4, 5), lambda i, j: te.sum(p[i, r] * v[r, j], axis=r), name="out")
    return te.create_prim_func([q, k, v, out], name="attention")


def pooled_convolution() -> PrimFunc:
    """Padding, a convolution, a bias and relu, and the maxima of two by two."""
    x = te.placeholder((2, 7, 6), "int32", name="X")
    w = te.placeholder((5, 2, 3, 3), "int32", name="W")
    pad = te.compute(
        (2, 9, 8),
        lambda c, i, j: te.if_then_else(
            te.all(i >= 1, i < 8, j >= 1, j < 7), x[c, i - 1, j - 1], te.const(0, "int32")
        ),
        name="pad",
    )
    c, u, v = (te.reduce_axis((0, e), name=s) for s, e in (("c", 2), ("u", 3), ("v", 3)))
    y = te.compute(
        (5, 7, 6), lambda o, i, j: te.sum(pad[c, i + u, j + v] * w[o, c, u, v], axis=[c, u, v]), name="Y"
    )
    relu = te.compute((5, 7, 6), lambda o, i, j: te.maximum(y[o, i, j] + te.cast(o, "int32"), 0), name="R")
    a, b = te.reduce_axis((0, 2), name="a"), te.reduce_axis((0, 2), name="b")
    pool = te.compute((5, 3, 3), lambda o, i, j: te.max(relu[o, i * 2 + a, j * 2 + b], axis=[a, b]), name="Q")
    return te.create_prim_func([x, w, pool], name="pooled")


def outputs_read_again() -> PrimFunc:
    """Three outputs, the first of which the others read."""
    a = te.placeholder((6, 10), "int32", name="A")
    b = te.compute((6, 10), lambda i, j: a[i, j] * 2, name="B")
    c = te.compute((10, 6), lambda i, j: b[j, i] + 1, name="C")
    k = te.reduce_axis((0, 10), name="k")
    d = te.compute((6,), lambda i: te.sum(b[i, k], axis=k), name="D")
    return te.create_prim_func([a, b, c, d], name="outputs_read_again")


def wrapped() -> PrimFunc:
    """Reads from the end, around the end, and of two shapes."""
    a = te.placeholder((12,), "int32", name="A")
    b = te.compute((12,), lambda i: a[11 - i] + 1, name="B")
    c = te.compute((3, 4), lambda i, j: b[(i * 4 + j + 5) % 12] * 2, name="C")
    d = te.compute((12,), lambda i: c[i // 4, i % 4] - b[i], name="D")
    return te.create_prim_func([a, d], name="wrapped")


def up_and_down() -> PrimFunc:
    """Each element twice, and pairs added up."""
    a = te.placeholder((9,), "int32", name="A")
    b = te.compute((9,), lambda i: a[i] * 3, name="B")
    c = te.compute((18,), lambda i: b[i // 2] + te.cast(i % 2, "int32"), name="C")
    d = te.compute((9,), lambda i: c[2 * i] + c[2 * i + 1], name="D")
    return te.create_prim_func([a, d], name="up_and_down")


def symbolic_rows_and_columns() -> PrimFunc:
    n, m = te.var("n"), te.var("m")
    a = te.placeholder((n, m), "int32", name="A")
    b = te.compute((n, m), lambda i, j: a[i, j] + 1, name="B")
    k = te.reduce_axis((0, m), name="k")
    s = te.compute((n,), lambda i: te.max(b[i, k], axis=k), name="S")
    out = te.compute((m, n), lambda j, i: b[i, j] - s[i], name="O")
    return te.create_prim_func([a, out], name="symbolic_rows_and_columns")


def symbolic_convolution() -> PrimFunc:
    n = te.var("n")
    x = te.placeholder((n + 2,), "int32", name="X")
    w = te.placeholder((3,), "int32", name="W")
    k = te.reduce_axis((0, 3), name="k")
    y = te.compute((n,), lambda i: te.sum(x[i + k] * w[k], axis=k), name="Y")
    z = te.compute((n,), lambda i: y[i] * 2, name="Z")
    return te.create_prim_func([x, w, z], name="symbolic_convolution")
