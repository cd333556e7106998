"""Programs that the IR tests start from."""

import pytest

from tilewright.compiler import te
from tilewright.compiler.ir import PrimFunc


@pytest.fixture
def row_sums() -> PrimFunc:
    """S[i] = sum over k of A[i, k], 2 x 3."""
    a = te.placeholder((2, 3), "float32", name="A")
    k = te.reduce_axis((0, 3), name="k")
    return te.create_prim_func(
        [a, te.compute((2,), lambda i: te.sum(a[i, k], axis=k), name="S")], name="row_sums"
    )


@pytest.fixture
def every_node() -> PrimFunc:
    """A program with each kind of expression and of index function in it."""
    a = te.placeholder((8, 6), "float32", name="A")
    n = te.placeholder((8, 6), "int32", name="N")

    def element(i: te.Index, j: te.Index) -> te.Value:
        padded = te.if_then_else(te.all(i >= 1, i < 8), a[i - 1, j], -1.5)
        looked_up = a[te.minimum(i + j, 7), (i // 2 + j) % 6]
        shape = te.cast(i * 6 + j, "float32")
        bits = te.cast((n[i, j] << 2) ^ ~n[i, j], "float32")
        chosen = te.if_then_else(
            (a[i, j] > 0.5) | ~(n[i, j] == 3), te.exp(padded), te.maximum(looked_up, shape)
        )
        return chosen / bits

    b = te.compute((8, 6), element, name="B")
    return te.create_prim_func([a, n, b], name="every_node")
