"""Small programs of every kind that schedules are tried on."""

from collections.abc import Callable, Mapping

import pytest

from tilewright.compiler import te, topi
from tilewright.compiler.ir import PrimFunc


def stencil() -> PrimFunc:
    """Two stages; the second reads three neighbours of the first."""
    a = te.placeholder((4, 15), "float32", name="A")
    b = te.compute((4, 15), lambda i, j: a[i, j] * 2, name="B")
    c = te.compute((4, 13), lambda i, j: b[i, j] + b[i, j + 1] + b[i, j + 2], name="C")
    return te.create_prim_func([a, c], name="stencil")


def chain() -> PrimFunc:
    """Four elementwise stages, one of them transposed."""
    a = te.placeholder((5, 7), "int32", name="A")
    b = te.compute((5, 7), lambda i, j: a[i, j] + 1, name="B")
    c = te.compute((7, 5), lambda i, j: b[j, i] * 3, name="C")
    d = te.compute((7, 5), lambda i, j: c[i, j] - 2, name="D")
    e = te.compute((7, 5), lambda i, j: te.maximum(d[i, j], 0), name="E")
    return te.create_prim_func([a, e], name="chain")


def rows() -> PrimFunc:
    """A reduction whose result every element of its row reads."""
    a = te.placeholder((6, 9), "float32", name="A")
    k = te.reduce_axis((0, 9), name="k")
    total = te.compute((6,), lambda i: te.sum(a[i, k], axis=k), name="total")
    out = te.compute((6, 9), lambda i, j: a[i, j] - total[i], name="out")
    return te.create_prim_func([a, out], name="rows")


def outputs() -> PrimFunc:
    """Three outputs, two of which share a reduction, and a fourth that reads them."""
    a = te.placeholder((6, 10), "float32", name="A")
    k = te.reduce_axis((0, 10), name="k")

    def element(i: te.Index) -> tuple[te.Value, ...]:
        top = te.max(a[i, k], axis=k)
        return top, te.argmin(a[i, k] * 2.0, axis=k), top - te.min(a[i, k], axis=k)

    top, place, width = te.compute((6,), element, name="O")
    scaled = te.compute((6, 10), lambda i, j: (a[i, j] - top[i]) / (width[i] + 1.0), name="scaled")
    return te.create_prim_func([a, top, place, width, scaled], name="outputs")


PROGRAMS: Mapping[str, Callable[[], PrimFunc]] = {
    "matmul": lambda: topi.create({"op": "matmul", "m": 5, "n": 18, "k": 7}),
    "int8 matmul": lambda: topi.create({"op": "matmul", "m": 4, "n": 9, "k": 5, "dtype": "int8"}),
    "bfloat16 matmul": lambda: topi.create({"op": "matmul", "m": 4, "n": 9, "k": 5, "dtype": "bfloat16"}),
    "float64 dense": lambda: topi.create(
        {"op": "dense", "m": 3, "n": 17, "k": 6, "dtype": "float64", "bias": True, "activation": "relu"}
    ),
    "conv2d": lambda: topi.create(
        {"op": "conv2d", "ci": 2, "h": 5, "w": 6, "co": 3, "kh": 3, "kw": 3, "pad": 1, "activation": "relu"}
    ),
    "depthwise": lambda: topi.create(
        {"op": "depthwise_conv2d", "c": 5, "h": 4, "w": 4, "kh": 3, "kw": 3, "layout": "NHWC"}
    ),
    "softmax": lambda: topi.create({"op": "softmax", "m": 3, "n": 11}),
    "add": lambda: topi.create({"op": "add", "shape": [3, 13]}),
    "transpose": lambda: topi.create({"op": "transpose", "shape": [5, 9], "axes": [1, 0]}),
    "one": lambda: topi.create({"op": "matmul", "m": 1, "n": 1, "k": 1}),
    "argmax": lambda: topi.create({"op": "reduce", "shape": [5, 9], "function": "argmax", "axes": [1]}),
    "all": lambda: topi.create(
        {"op": "reduce", "shape": [7, 10], "function": "all", "axes": [0], "dtype": "bool"}
    ),
    "avg pool": lambda: topi.create(
        {"op": "pool2d", "c": 2, "h": 5, "w": 6, "function": "avg", "window": 3, "pad": 1, "dtype": "int8"}
    ),
    "transposed conv": lambda: topi.create(
        {"op": "conv2d_transpose", "ci": 2, "h": 3, "w": 4, "co": 2, "kh": 3, "kw": 2, "stride": 2}
    ),
    "cumulative": lambda: topi.create({"op": "cumulative", "shape": [2, 9]}),
    "outputs": outputs,
    "stencil": stencil,
    "chain": chain,
    "rows": rows,
}


@pytest.fixture(params=PROGRAMS, ids=lambda n: n)
def program(request: pytest.FixtureRequest) -> PrimFunc:
    return PROGRAMS[request.param]()
