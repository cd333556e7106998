"""Operators over sizes that a call tells: one kernel gives NumPy's result for every size."""

import numpy as np
import pytest

from tilewright.compiler import te, topi
from tilewright.compiler.build import build

N, M = te.var("n"), te.var("m")
RNG = np.random.default_rng(9)
SIZES = [(1, 1), (2, 7), (13, 3), (16, 33)]


def t(*shape, dtype="float32"):
    return te.placeholder(shape, dtype, name="T")


def norm(x, g, b):
    return (x - x.mean(-1, keepdims=True)) / np.sqrt(x.var(-1, keepdims=True) + 1e-5) * g + b


def soft(x):
    e = np.exp(x - x.max(-1, keepdims=True))
    return e / e.sum(-1, keepdims=True)


#: For each operator: its inputs, the output, and NumPy's function.
OPERATORS = {
    "matmul": ([(N, 8), (8, M)], topi.matmul, np.matmul),
    "matmul over a size": ([(3, N), (N, M)], topi.matmul, np.matmul),
    "batch matmul": ([(N, 4, 5), (N, 5, M)], topi.matmul, np.matmul),
    "dense": ([(N, 8), (8, M), (M,)], topi.dense, lambda x, w, b: x @ w + b),
    "add": ([(N, M), (N, M)], topi.add, np.add),
    "add to each row": ([(N, M), (M,)], topi.add, np.add),
    "add to each column": ([(N, M), (N, 1)], topi.add, np.add),
    "softmax": ([(N, M)], topi.softmax, soft),
    "layer norm": ([(N, M), (M,), (M,)], topi.layer_norm, norm),
    "sum": ([(N, M)], lambda x: topi.reduce(x, "sum", 1), lambda x: x.sum(1)),
    "mean": ([(N, M, 3)], lambda x: topi.reduce(x, "mean", [0, 2]), lambda x: x.mean((0, 2))),
    "argmax": ([(N, M)], lambda x: topi.reduce(x, "argmax", 1), lambda x: x.argmax(1)),
    "argmin of all": ([(N, M)], lambda x: topi.reduce(x, "argmin"), lambda x: x.argmin()),
    "cumulative": ([(N, M)], topi.cumulative, lambda x: x.cumsum(1)),
    "transpose": ([(N, M)], lambda x: topi.transpose(x, [1, 0]), np.transpose),
    "pool": (
        [(N, M, 6, 6)],
        lambda x: topi.pool2d(x, "max", 2),
        lambda x: x.reshape(*x.shape[:2], 3, 2, 3, 2).max((3, 5)),
    ),
}


@pytest.mark.parametrize("name", OPERATORS)
def test_one_kernel_for_every_size(name):
    shapes, operator, numpy = OPERATORS[name]
    tensors = [t(*s) for s in shapes]
    kernel = build(te.create_prim_func([*tensors, operator(*tensors)]))
    for n, m in SIZES:
        concrete = [tuple(n if e is N else m if e is M else e for e in s) for s in shapes]
        inputs = [RNG.standard_normal(s).astype("float32") for s in concrete]
        want = np.asarray(numpy(*(x.astype("float64") for x in inputs)))
        out = np.zeros(want.shape, kernel.params[-1].dtype)
        kernel(*inputs, out)
        np.testing.assert_allclose(out, want, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (
            lambda: topi.matmul(t(4, N), t(M, 5)),
            "topi.matmul: T: float32[4, n] has n columns and T: float32[m, 5] has m rows",
        ),
        (
            lambda: topi.add(t(N), t(M)),
            "topi.add: the shapes of T: float32[n] and T: float32[m] do not broadcast: n and m in "
            "dimension 0",
        ),
        (
            lambda: topi.conv2d(t(1, 2, N, 8), t(3, 2, 3, 3)),
            "topi.conv2d: dimension 2 of 'x' must be an integer, got T: float32[1, 2, n, 8]",
        ),
        (
            lambda: topi.pool1d(t(1, 2, N), "avg", 2),
            "topi.pool1d: dimension 2 of 'x' must be an integer, got T: float32[1, 2, n]",
        ),
        (
            lambda: topi.dense(t(N, 8), t(8, M), t(N)),
            "topi.dense: 'bias' must have m elements, one for each column, got T: float32[n]",
        ),
    ],
)
def test_sizes_that_do_not_fit_are_refused(call, message):
    with pytest.raises(te.TensorError) as e:
        call()
    assert str(e.value).split("\n")[0] == message
