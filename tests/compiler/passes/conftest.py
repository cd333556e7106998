"""Programs that the passes start from."""

import pytest

from tilewright.compiler import te
from tilewright.compiler.ir import PrimFunc


@pytest.fixture
def matmul() -> PrimFunc:
    """C = A B: 8 x 10 x 6."""
    a, b = te.placeholder((8, 6), "float32", name="A"), te.placeholder((6, 10), "float32", name="B")
    k = te.reduce_axis((0, 6), name="k")
    c = te.compute((8, 10), lambda i, j: te.sum(a[i, k] * b[k, j], axis=k), name="C")
    return te.create_prim_func([a, b, c], name="matmul")


@pytest.fixture
def chain() -> PrimFunc:
    """B = 2 A, C = B + 1 over 20."""
    a = te.placeholder((20,), "float32", name="A")
    b = te.compute((20,), lambda i: a[i] * 2.0, name="B")
    c = te.compute((20,), lambda i: b[i] + 1.0, name="C")
    return te.create_prim_func([a, c], name="chain")
