"""One kernel for every size, against NumPy: the default schedule and the program as written."""

from __future__ import annotations

import shutil
from collections.abc import Callable

import numpy as np
import pytest

import tilewright as tw
from tilewright.compiler import te
from tilewright.compiler.ir import PrimFunc
from tilewright.compiler.schedule import Schedule

ONE = [(n,) for n in (0, 1, 2, 3, 7, 16, 31, 32, 33, 64, 97, 1000, 1024)]
TWO = [(0, 0), (0, 3), (3, 0), (1, 1), (1, 17), (5, 1), (7, 13), (16, 64), (33, 65), (61, 97)]
THREE = [(1, 1, 1), (0, 3, 4), (3, 0, 4), (3, 4, 0), (5, 7, 3), (4, 64, 16), (31, 33, 8), (64, 128, 17)]


def inputs(rng: np.random.Generator, shape: tuple[int, ...], dtype: str) -> np.ndarray:
    if np.dtype(dtype).kind == "f":
        return rng.standard_normal(shape).astype(dtype)
    return rng.integers(-9, 9, shape).astype(dtype)


def chain(a, b):
    return (a + b) + (a + b) + a


def matmul(a, b, bias):
    return np.maximum(a @ b + bias, 0)


def dense(a, b):
    return a @ b.T


def softmax(x):
    e = np.exp(x - x.max(axis=1, keepdims=True, initial=-np.inf))
    return e / e.sum(axis=1, keepdims=True)


def columns(x):
    return x.sum(axis=0)


def stencil(a):
    p = np.pad(a * 2, 1)
    return p[:-2] + p[1:-1] + p[2:]


def window(a):
    b = a + 1
    return b[:-2] + b[1:-1] + b[2:] if len(a) > 2 else b[:0]


def transpose(a):
    return (a.T + 1) * 3


def flatten(a):
    return a.reshape(-1)[::-1]


def twice(a):
    return np.append(np.repeat(a, 2) + len(a), 0)


def rows(a, b, c):
    return a * b[:, None] + c


#: The program of that name in NumPy, the sizes to try, and the shapes of its inputs for them.
EXPECTED: dict[str, tuple[Callable[..., np.ndarray], list, Callable[..., list[tuple[int, ...]]]]] = {
    "chain": (chain, ONE, lambda n: [(n,), (n,)]),
    "matmul": (matmul, THREE, lambda m, n, k: [(m, k), (k, n), (n,)]),
    "dense": (dense, TWO, lambda m, n: [(m, 6), (n, 6)]),
    "softmax": (softmax, TWO, lambda m, n: [(m, n)]),
    "columns": (columns, TWO, lambda m, n: [(m, n)]),
    "stencil": (stencil, ONE, lambda n: [(n,)]),
    "window": (window, ONE, lambda n: [(n,)]),
    "transpose": (transpose, TWO, lambda m, n: [(m, n)]),
    "flatten": (flatten, TWO, lambda m, n: [(m, n)]),
    "twice": (twice, ONE, lambda n: [(n,)]),
    "rows": (rows, ONE, lambda n: [(n, 5), (n,), (5,)]),
}


C = pytest.param(
    "c", marks=pytest.mark.skipif(shutil.which("cc") is None, reason="there is no C compiler here")
)


@pytest.mark.parametrize("target", ["llvm", C])
@pytest.mark.parametrize("scheduled", [False, True], ids=["as written", "default schedule"])
def test_one_kernel_serves_every_size(program: PrimFunc, scheduled: bool, target: str):
    expected, sizes, shapes = EXPECTED[program.name]
    kernel = tw.build(program if scheduled else Schedule(program), target)
    rng = np.random.default_rng(0)
    for values in sizes:
        arrays = [inputs(rng, s, str(p.dtype)) for s, p in zip(shapes(*values), program.inputs, strict=True)]
        want = np.asarray(expected(*arrays))
        # The output stands between two borders, which must stay as they are.
        border = np.full(want.size + 32, 77, want.dtype)
        out = border[16 : 16 + want.size].reshape(want.shape)
        kernel(*arrays, out)
        np.testing.assert_allclose(out, want, rtol=2e-5, atol=1e-5, err_msg=f"{program.name} {values}")
        assert (border[:16] == 77).all() and (border[16 + want.size :] == 77).all()


DTYPES = ["float16", "int8", "uint8", "int16", "int32", "uint32", "int64", "uint64", "float32", "float64"]


@pytest.mark.parametrize("dtype", DTYPES)
def test_products_of_every_dtype_take_every_size(dtype: str):
    m, n, k = te.var("m"), te.var("n"), te.var("k")
    a, b = te.placeholder((m, k), dtype, "A"), te.placeholder((k, n), dtype, "B")
    axis = te.reduce_axis((0, k), "p")
    c = te.compute((m, n), lambda i, j: te.sum(a[i, axis] * b[axis, j], axis=axis, dtype=dtype), name="C")
    kernel = tw.build(te.create_prim_func([a, b, c]))
    rng = np.random.default_rng(1)
    for rows_, columns_, steps in THREE:
        x = rng.integers(0, 5, (rows_, steps)).astype(dtype)
        y = rng.integers(0, 5, (steps, columns_)).astype(dtype)
        out = np.empty((rows_, columns_), dtype)
        kernel(x, y, out)
        np.testing.assert_array_equal(out, (x @ y).astype(dtype))


@pytest.mark.parametrize("kind", ["max", "min", "prod", "sum"])
@pytest.mark.parametrize("dtype", ["int32", "float64"])
def test_a_reduction_without_steps_gives_what_it_starts_from(kind: str, dtype: str):
    m, n = te.var("m"), te.var("n")
    a = te.placeholder((m, n), dtype, "A")
    axis = te.reduce_axis((0, n), "k")
    c = te.compute((m,), lambda i: getattr(te, kind)(a[i, axis], axis=axis), name="C")
    kernel = tw.build(te.create_prim_func([a, c]))
    out = np.zeros(3, dtype)
    kernel(np.zeros((3, 0), dtype), out)
    low, high = (-np.inf, np.inf) if dtype == "float64" else (np.iinfo(dtype).min, np.iinfo(dtype).max)
    assert (out == {"max": low, "min": high, "prod": 1, "sum": 0}[kind]).all()


def test_a_whole_reduction_gives_one_element_for_every_size():
    n = te.var("n")
    a = te.placeholder((n,), "int64", "A")
    axis = te.reduce_axis((0, n), "k")
    c = te.compute((1,), lambda i: te.sum(a[axis], axis=axis), name="C")
    kernel = tw.build(te.create_prim_func([a, c]))
    for (length,) in ONE:
        out = np.empty(1, np.int64)
        kernel(np.arange(length), out)
        assert out[0] == length * (length - 1) // 2


def test_a_layer_norm_of_every_size():
    m, n = te.var("m"), te.var("n")
    x = te.placeholder((m, n), "float32", "X")
    g, b = te.placeholder((n,), "float32", "G"), te.placeholder((n,), "float32", "B")
    k, p = te.reduce_axis((0, n), "k"), te.reduce_axis((0, n), "p")
    count = te.cast(n, "float32")
    mean = te.compute((m,), lambda i: te.sum(x[i, k], axis=k) / count, name="mean")

    def square(i: te.Index) -> te.Value:
        return (x[i, p] - mean[i]) * (x[i, p] - mean[i])

    var = te.compute((m,), lambda i: te.sum(square(i), axis=p) / count, name="variance")
    y = te.compute((m, n), lambda i, j: (x[i, j] - mean[i]) * te.rsqrt(var[i] + 1e-5) * g[j] + b[j], name="Y")
    kernel = tw.build(te.create_prim_func([x, g, b, y]))
    rng = np.random.default_rng(2)
    for rows_, columns_ in [(0, 5), (3, 0), (1, 2), (5, 17), (13, 768)]:
        a, scale, shift = (
            rng.standard_normal(s).astype(np.float32) for s in ((rows_, columns_), columns_, columns_)
        )
        out = np.full_like(a, np.nan)
        kernel(a, scale, shift, out)
        with np.errstate(all="ignore"):
            mu = a.sum(1, keepdims=True) / np.float32(columns_)
            v = ((a - mu) ** 2).sum(1, keepdims=True) / np.float32(columns_)
        np.testing.assert_allclose(out, (a - mu) / np.sqrt(v + 1e-5) * scale + shift, rtol=1e-4, atol=1e-4)


def test_an_index_beyond_32_bits_reads_where_it_should():
    """Lanes are 2**28 elements apart in an array of more than 2**31, of which nearly all is never touched."""
    n, count, apart = te.var("n"), te.var("count"), 2**28
    a = te.placeholder((n,), "uint8", "A")
    c = te.compute(
        (count,), lambda i: te.if_then_else(i * apart < n, a[i * apart] + te.cast(1, "uint8"), 7), name="C"
    )
    sch = Schedule(te.create_prim_func([a, c]))
    (loop,) = sch.get_loops(sch.get_block("C"))
    sch.vectorize(sch.split(loop, [None, 16])[1])
    kernel = tw.build(sch)
    large = np.zeros(2**31 + 5, np.uint8)
    large[:: 2**28] = np.arange(9)
    out = np.zeros(11, np.uint8)
    kernel(large, out)
    np.testing.assert_array_equal(out, [1, 2, 3, 4, 5, 6, 7, 8, 9, 7, 7])


def test_a_dimension_beyond_32_bits_is_indexed_right():
    """The same with shapes of numbers, from NumPy's 64-bit integers."""
    apart = np.int64(2**28)
    a = te.placeholder((np.int64(2**31 + 5),), "uint8", "A")
    c = te.compute((9,), lambda i: a[i * apart] + te.cast(1, "uint8"), name="C")
    large = np.zeros(2**31 + 5, np.uint8)
    large[:: 2**28] = np.arange(9)
    for kernel in (tw.build(te.create_prim_func([a, c])), tw.build(Schedule(te.create_prim_func([a, c])))):
        out = np.zeros(9, np.uint8)
        kernel(large, out)
        np.testing.assert_array_equal(out, np.arange(1, 10))
