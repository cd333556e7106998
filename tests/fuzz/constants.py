"""Programs with constant parameters, of which schedules make things ahead of the calls."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from tilewright.compiler import te
from tilewright.compiler.ir import PrimFunc


def weights(shape: Sequence[int], dtype: str = "float32", name: str = "W") -> te.Tensor:
    return te.placeholder(shape, dtype, name=name, constant=True)


def product(dtype: str = "float32", m: int = 5, n: int = 13, k: int = 7) -> PrimFunc:
    """C = A W."""
    a, w = te.placeholder((m, k), dtype, name="A"), weights((k, n), dtype)
    r = te.reduce_axis((0, k), name="k")
    c = te.compute((m, n), lambda i, j: te.sum(a[i, r] * w[r, j], axis=r), name="C")
    return te.create_prim_func([a, w, c], name="product")


def prepared() -> PrimFunc:
    """Weights that are scaled and transposed, and their sums, before a call's array comes in."""
    a, w, s = te.placeholder((4, 6), name="A"), weights((11, 6)), weights((11,), name="S")
    r, q = te.reduce_axis((0, 6), name="k"), te.reduce_axis((0, 6), name="q")
    ready = te.compute((6, 11), lambda k, j: w[j, k] * s[j] + 1, name="ready")
    total = te.compute((11,), lambda j: te.sum(ready[q, j], axis=q), name="total")
    c = te.compute((4, 11), lambda i, j: te.sum(a[i, r] * ready[r, j], axis=r), name="C")
    d = te.compute((4, 11), lambda i, j: c[i, j] - total[j], name="D")
    return te.create_prim_func([a, w, s, d], name="prepared")


def shared() -> PrimFunc:
    """Two blocks that read one constant, along different dimensions."""
    a, w = te.placeholder((6, 6), "int32", name="A"), weights((6, 6), "int32")
    k, m = te.reduce_axis((0, 6), name="k"), te.reduce_axis((0, 6), name="m")
    b = te.compute((6, 6), lambda i, j: te.sum(a[i, k] * w[k, j], axis=k), name="B")
    c = te.compute((6, 6), lambda i, j: te.max(b[i, m] + w[j, m], axis=m), name="C")
    return te.create_prim_func([a, w, c], name="shared")


def filtered() -> PrimFunc:
    """A convolution whose reads are guarded, with constant taps in bfloat16."""
    x, w = te.placeholder((17,), "bfloat16", name="X"), weights((5, 3), "bfloat16")
    r = te.reduce_axis((0, 3), name="r")

    def element(o: te.Index, i: te.Index) -> te.Value:
        at = i + r - 1
        read = te.if_then_else(te.all(at >= 0, at < 17), x[at], 0)
        return te.sum(read * w[o, r], axis=r)

    return te.create_prim_func([x, w, te.compute((5, 17), element, name="Y")], name="filtered")


def rows() -> PrimFunc:
    """Any number of rows times constant weights."""
    n = te.var("n")
    a, w = te.placeholder((n, 5), "float32", name="A"), weights((5, 9))
    r = te.reduce_axis((0, 5), name="r")
    c = te.compute((n, 9), lambda i, j: te.sum(a[i, r] * w[r, j], axis=r), name="C")
    return te.create_prim_func([a, w, c], name="rows")


SIZES: tuple[Mapping[str, int], ...] = tuple({"n": n} for n in (0, 1, 7, 16))
