"""Programs for the command line: `tilewright tune examples/workloads.py:matmul` takes the PrimFunc that a
function returns."""

from __future__ import annotations

from tilewright import te
from tilewright.compiler.ir import PrimFunc


def matmul() -> PrimFunc:
    """C = A B, 512 x 512 x 512, float32."""
    a = te.placeholder((512, 512), "float32", name="A")
    b = te.placeholder((512, 512), "float32", name="B")
    k = te.reduce_axis((0, 512), name="k")
    c = te.compute((512, 512), lambda i, j: te.sum(a[i, k] * b[k, j], axis=k), name="C")
    return te.create_prim_func([a, b, c], name="matmul")


def dense_gelu() -> PrimFunc:
    """A layer of BERT-base: 128 x 768 -> 3072 with bias and gelu."""
    x = te.placeholder((128, 768), "float32", name="X")
    w = te.placeholder((768, 3072), "float32", name="W")
    bias = te.placeholder((3072,), "float32", name="bias")
    k = te.reduce_axis((0, 768), name="k")
    dense = te.compute((128, 3072), lambda i, j: te.sum(x[i, k] * w[k, j], axis=k), name="dense")
    shifted = te.compute((128, 3072), lambda i, j: dense[i, j] + bias[j], name="shifted")
    y = te.compute(
        (128, 3072),
        lambda i, j: 0.5 * shifted[i, j] * (1 + te.erf(shifted[i, j] * 0.5**0.5)),
        name="Y",
    )
    return te.create_prim_func([x, w, bias, y], name="dense_gelu")


def blur() -> PrimFunc:
    """A 3 x 3 mean over an image of 1024 x 1024, zeros around it."""
    image = te.placeholder((1024, 1024), "float32", name="image")
    padded = te.compute(
        (1026, 1026),
        lambda i, j: te.if_then_else(te.all(i >= 1, i <= 1024, j >= 1, j <= 1024), image[i - 1, j - 1], 0.0),
        name="padded",
    )
    y = te.reduce_axis((0, 3), name="y")
    x = te.reduce_axis((0, 3), name="x")
    total = te.compute((1024, 1024), lambda i, j: te.sum(padded[i + y, j + x], axis=[y, x]), name="total")
    mean = te.compute((1024, 1024), lambda i, j: total[i, j] / 9, name="mean")
    return te.create_prim_func([image, mean], name="blur")
