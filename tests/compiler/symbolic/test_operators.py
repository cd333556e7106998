"""Operators of the library over sizes, against NumPy."""

from __future__ import annotations

import numpy as np
import pytest

import tilewright as tw
from tilewright.compiler import te, topi

SIZES = [(1, 1, 1), (0, 3, 4), (5, 7, 3), (16, 64, 8), (33, 65, 17)]


def arrays(rng: np.random.Generator, *shapes: tuple[int, ...]) -> list[np.ndarray]:
    return [rng.standard_normal(s).astype(np.float32) for s in shapes]


def softmax(x: np.ndarray) -> np.ndarray:
    e = np.exp(x - x.max(axis=1, keepdims=True))
    return e / e.sum(axis=1, keepdims=True)


def layer_norm(x: np.ndarray, g: np.ndarray, b: np.ndarray) -> np.ndarray:
    mean, var = x.mean(axis=1, keepdims=True), x.var(axis=1, keepdims=True)
    return (x - mean) / np.sqrt(var + 1e-5) * g + b


#: The operator, what it is in NumPy, and the shapes of its arguments for the sizes m, n and k.
OPERATORS = {
    "matmul": (topi.matmul, np.matmul, lambda m, n, k: [(m, k), (k, n)]),
    "matmul of batches": (topi.matmul, np.matmul, lambda m, n, k: [(3, m, k), (3, k, n)]),
    "dense with a bias and a relu": (
        lambda x, w, b: topi.dense(x, w, b, activation="relu"),
        lambda x, w, b: np.maximum(x @ w + b, 0),
        lambda m, n, k: [(m, k), (k, n), (n,)],
    ),
    "add of a row": (topi.add, np.add, lambda m, n, k: [(m, n), (n,)]),
    "add of a column": (topi.add, np.add, lambda m, n, k: [(m, n), (m, 1)]),
    "multiply": (
        lambda a, b: topi.broadcast(a, b, "multiply"),
        np.multiply,
        lambda m, n, k: [(m, n), (1, n)],
    ),
    "transpose": (lambda a: topi.transpose(a, (1, 0)), np.transpose, lambda m, n, k: [(m, n)]),
    "softmax": (topi.softmax, softmax, lambda m, n, k: [(m, n)]),
    "layer norm": (topi.layer_norm, layer_norm, lambda m, n, k: [(m, n), (n,), (n,)]),
    "sum": (
        lambda a: topi.reduce(a, "sum", axes=[1]),
        lambda a: a.sum(axis=1, dtype=np.float32),
        lambda m, n, k: [(m, n)],
    ),
    "argmax": (
        lambda a: topi.reduce(a, "argmax", axes=[1]),
        lambda a: a.argmax(axis=1),
        lambda m, n, k: [(m, n)],
    ),
    "cumulative sum": (
        lambda a: topi.cumulative(a),
        lambda a: a.cumsum(axis=-1, dtype=np.float32),
        lambda m, n, k: [(m, n)],
    ),
}


@pytest.mark.parametrize("name", OPERATORS)
def test_an_operator_takes_every_size(name: str):
    operator, reference, shapes = OPERATORS[name]
    m, n, k = te.var("m"), te.var("n"), te.var("k")
    placeholders = [te.placeholder(s, "float32", f"P{i}") for i, s in enumerate(shapes(m, n, k))]
    out = operator(*placeholders)
    kernel = tw.build(te.create_prim_func([*placeholders, out]))
    rng = np.random.default_rng(0)
    for sizes in SIZES:
        given = arrays(rng, *shapes(*sizes))
        want = np.asarray(reference(*given))
        got = np.zeros(want.shape, out.dtype.numpy)
        kernel(*given, got)
        np.testing.assert_allclose(got, want, rtol=1e-4, atol=1e-4, err_msg=f"{name} {sizes}")


def test_shapes_that_differ_are_named():
    m, n = te.var("m"), te.var("n")
    a, b = te.placeholder((m, 4), name="A"), te.placeholder((n, 4), name="B")
    with pytest.raises(te.TensorError) as e:
        topi.add(a, b)
    assert str(e.value).split("\n")[0] == (
        "topi.add: the shapes of A: float32[m, 4] and B: float32[n, 4] do not broadcast: "
        "m and n in dimension 0"
    )


def test_an_extent_compares_as_a_size_and_as_an_index():
    m, n = te.var("m"), te.var("n")
    a, b = te.placeholder((m, n * 2), name="A"), te.placeholder((m, n + n), name="B")
    assert a.shape == b.shape and hash(a.shape) == hash(b.shape)
    assert a.shape[0] != n and a.shape[0] != 5
    e = te.placeholder((m, 2), name="E")
    c = te.compute((m,), lambda i: te.if_then_else(i == a.shape[0] - 1, 1.0, te.const(0.0)), name="C")
    d = te.compute((m,), lambda i: te.if_then_else(a.shape[0] == i + 1, 1.0, te.const(0.0)), name="D")
    x, y = np.zeros((3, 2), np.float32), np.zeros(3, np.float32)
    for out in (c, d):
        tw.build(te.create_prim_func([e, out]))(x, y)
        np.testing.assert_array_equal(y, [0, 0, 1])
