"""Reductions of rows: which blocks are worked off together, and every structure on awkward rows."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import tilewright as tw
from tilewright.compiler import te, topi
from tilewright.compiler.ir import DType, PrimFunc
from tilewright.compiler.space import space_of
from tilewright.compiler.space.groups import Group, groups_of
from tilewright.compiler.target import Target

Array = np.ndarray[Any, Any]

HOST = Target.parse("llvm")


def softmax(m: int, n: int, dtype: str = "float32") -> PrimFunc:
    return topi.create({"op": "softmax", "m": m, "n": n, "dtype": dtype})


def layer_norm(m: int, n: int) -> PrimFunc:
    """Of the sum of two matrices, which the mean, the variance and the result read."""
    x, r = (te.placeholder((m, n), "float32", name=s) for s in "XR")
    s = te.compute((m, n), lambda i, j: x[i, j] + r[i, j], name="S")
    return te.create_prim_func([x, r, topi.layer_norm(s)])


def log_softmax(m: int, n: int) -> PrimFunc:
    x = te.placeholder((m, n), "float32", name="X")
    k, k2 = te.reduce_axis((0, n), "k"), te.reduce_axis((0, n), "k2")
    top = te.compute((m,), lambda i: te.max(x[i, k], axis=k), name="top")
    total = te.compute((m,), lambda i: te.sum(te.exp(x[i, k2] - top[i]), axis=k2), name="total")
    y = te.compute((m, n), lambda i, j: x[i, j] - top[i] - te.log(total[i]), name="Y")
    return te.create_prim_func([x, y])


def reduced(shape: tuple[int, ...], function: str, axes: object, dtype: str = "float32") -> PrimFunc:
    x = te.placeholder(shape, dtype, name="X")
    return te.create_prim_func([x, topi.reduce(x, function, axes)])  # type: ignore[arg-type]


def each_config(func: PrimFunc, count: int) -> list[tw.Module]:
    """Kernels of random configs of every sketch."""
    space = space_of(func, HOST)
    assert not space.refused
    kernels = []
    for sketch in space.sketches:
        for row in sketch.columns.random(count, np.random.default_rng(3)):
            kernels.append(tw.build(sketch.resolve(row).apply(func).func))
    return kernels


def check(
    func: PrimFunc, want: Callable[..., Array], *inputs: Array, count: int = 4, rtol: float = 1e-5
) -> None:
    """Every kernel gives what NumPy gives; the output begins as garbage."""
    out = func.params[-1]
    expected = want(*inputs)
    for kernel in each_config(func, count):
        y = np.full([e.const or 0 for e in out.shape], 77, out.dtype.numpy)
        kernel(*inputs, y)
        np.testing.assert_allclose(y.astype(np.float64), expected.astype(np.float64), rtol, rtol / 10)


def normal(*shape: int) -> Array:
    return np.random.default_rng(0).standard_normal(shape).astype(np.float32)


def exact_softmax(x: Array) -> Array:
    with np.errstate(invalid="ignore"):
        e = np.exp(x.astype(np.float64) - x.max(1, keepdims=True))
    y: Array = e / e.sum(1, keepdims=True)
    return y


def test_the_blocks_of_a_softmax_are_one_group() -> None:
    assert groups_of(softmax(4, 8)) == [Group("row_max", rows=("row_max", "e", "row_sum", "Y"))]


def test_a_result_that_others_need_ends_a_group() -> None:
    x = te.placeholder((4, 8), "float32", name="X")
    k = te.reduce_axis((0, 8), "k")
    s = te.compute((4,), lambda i: te.sum(x[i, k], axis=k), name="S")
    y = te.compute((4, 8), lambda i, j: x[i, j] / s[i], name="Y")
    assert groups_of(te.create_prim_func([x, s, y])) == [Group("S", rows=("S",)), Group("Y")]


def test_a_product_of_matrices_and_a_pool_are_no_rows() -> None:
    matmul = {"op": "matmul", "m": 4, "n": 8, "k": 8}
    pool = {"op": "pool2d", "c": 4, "h": 8, "w": 8, "function": "max", "window": 2}
    assert not any(g.rows for op in (matmul, pool) for g in groups_of(topi.create(op)))


@pytest.mark.parametrize("n", [1, 3, 20, 127])
@pytest.mark.parametrize("m", [1, 7])
def test_softmax_of_awkward_rows(m: int, n: int) -> None:
    check(softmax(m, n), exact_softmax, normal(m, n))


def test_softmax_of_rows_with_nan_and_infinities() -> None:
    x = normal(6, 37)
    x[0, 5], x[1, 36], x[2, 0], x[3, 1:] = np.nan, np.inf, -np.inf, -np.inf
    x[4] = -np.inf
    check(softmax(6, 37), exact_softmax, x)


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_softmax_of_narrow_floats(dtype: str) -> None:
    x = normal(5, 70).astype(DType.parse(dtype).numpy)
    check(softmax(5, 70, dtype), lambda x: exact_softmax(x.astype(np.float32)), x, rtol=1e-2)


@pytest.mark.parametrize("n", [1, 33, 128])
def test_log_softmax(n: int) -> None:
    check(log_softmax(5, n), lambda x: np.log(exact_softmax(x)), normal(5, n))


@pytest.mark.parametrize("n", [2, 33, 128])
def test_layer_norm_of_a_sum_kept_and_computed_anew(n: int) -> None:
    def want(x: Array, r: Array) -> Array:
        s = (x + r).astype(np.float64)
        y: Array = (s - s.mean(1, keepdims=True)) / np.sqrt(s.var(1, keepdims=True) + 1e-5)
        return y

    assert [s.name for s in space_of(layer_norm(5, n), HOST).sketches] == [
        "rows, recompute S",
        "rows, keep S, reduced at once",
        "rows, keep S",
    ]
    check(layer_norm(5, n), want, normal(5, n), normal(5, n) * 4, count=3, rtol=1e-4)


@pytest.mark.parametrize("shape", [(2, 3, 33), (1, 5, 64), (2, 1, 19)])
def test_rows_in_batches_are_reduced_at_once(shape: tuple[int, ...]) -> None:
    x, r = (te.placeholder(shape, "float32", name=s) for s in "XR")
    s = te.compute(shape, lambda b, i, j: x[b, i, j] + r[b, i, j], name="S")
    func = te.create_prim_func([x, r, topi.layer_norm(s)])

    def want(x: Array, r: Array) -> Array:
        s = (x + r).astype(np.float64)
        y: Array = (s - s.mean(-1, keepdims=True)) / np.sqrt(s.var(-1, keepdims=True) + 1e-5)
        return y

    assert "rows, keep S, reduced at once" in [s.name for s in space_of(func, HOST).sketches]
    check(func, want, normal(*shape), normal(*shape) * 4, count=3, rtol=1e-4)


@pytest.mark.parametrize(
    ("shape", "axes"),
    [((7, 1), 1), ((7, 3), 1), ((131,), None), ((5, 127), None), ((3, 50, 3), None), ((3, 4, 9, 5), (2, 3))],
)
@pytest.mark.parametrize("function", ["sum", "mean", "max", "argmax"])
def test_reductions_of_trailing_dimensions(function: str, shape: tuple[int, ...], axes: Any) -> None:
    def want(x: Array) -> Array:
        over = tuple(range(x.ndim)) if axes is None else axes if isinstance(axes, tuple) else (axes,)
        flat = x.reshape(*[x.shape[d] for d in range(x.ndim) if d not in over], -1).astype(np.float64)
        return np.asarray(getattr(flat, function)(-1))

    check(reduced(shape, function, axes), want, normal(*shape), count=3, rtol=1e-4)


@pytest.mark.parametrize("dtype", ["int8", "float16", "float64"])
def test_sums_accumulate_in_wider_numbers(dtype: str) -> None:
    x = np.random.default_rng(0).integers(-100, 100, (6, 1000)).astype(dtype)
    check(reduced((6, 1000), "sum", 1, dtype), lambda x: x.sum(1, np.float64).astype(
        "int32" if dtype == "int8" else dtype), x)  # fmt: skip


@pytest.mark.parametrize("target", ["llvm -mcpu=x86-64", "llvm -mcpu=x86-64-v3"])
def test_narrower_registers_hold_shorter_vectors(target: str) -> None:
    func = softmax(5, 45)
    y = np.zeros((5, 45), np.float32)
    tw.build(func, target)(normal(5, 45), y)
    np.testing.assert_allclose(y, exact_softmax(normal(5, 45)), 1e-5)
