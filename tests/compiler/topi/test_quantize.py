"""Quantised values: rounded to nearest, ties to even, saturated, against NumPy."""

from typing import Any

import numpy as np
import pytest

import tilewright as tw
from tilewright.compiler import te, topi
from tilewright.compiler.te.errors import TensorError

Array = np.ndarray[Any, Any]
DTYPES = ["int8", "uint8", "int16", "uint16"]


def built(x: Array, make: Any, *arrays: Array) -> Array:
    """What a kernel makes of x, and of more arrays."""
    tensors = [te.placeholder(a.shape, a.dtype.name, name=f"A{n}") for n, a in enumerate((x, *arrays))]
    out = make(*tensors)
    result = np.full(x.shape, 55, out.dtype.numpy)
    tw.build(te.create_prim_func([*tensors, out]), target="llvm")(x, *arrays, result)
    return result


@pytest.mark.parametrize("dtype", DTYPES)
def test_requantised_sums_are_rounded_to_even_and_saturated(dtype: str) -> None:
    low, high = np.iinfo(dtype).min, np.iinfo(dtype).max
    edges = [-(2**31), 2**31 - 1, -3, -1, 0, 1, 3, 5, 2 * low - 1, 2 * low, 2 * low + 1, 2 * high - 1]
    x = np.array([*edges, 2 * high, 2 * high + 1, 2 * high + 2, (1 << 24) + 1], np.int32)
    x = np.concatenate([x, np.random.default_rng(0).integers(-600, 600, 200).astype(np.int32)])
    for zero in (0, 3):
        got = built(x, lambda a, z=zero: topi.requantize(a, 0.5, z, dtype=dtype))
        exact = np.rint(x.astype(np.float32) * np.float32(0.5)) + np.float32(zero)
        np.testing.assert_array_equal(got, np.clip(exact, low, high).astype(dtype))


@pytest.mark.parametrize("dtype", DTYPES)
def test_quantised_floats_saturate_at_infinity_and_nan_is_the_lowest_value(dtype: str) -> None:
    low, high = np.iinfo(dtype).min, np.iinfo(dtype).max
    x = np.array([0.5, 1.5, 2.5, -0.5, -1.5, np.inf, -np.inf, np.nan, 1e30, -1e30, -0.0], np.float32)
    got = built(x, lambda a: topi.quantize(a, 1.0, dtype=dtype))
    want = [0, 2, 2, 0, max(low, -2), high, low, low, high, low, 0]
    np.testing.assert_array_equal(got, np.array(want, dtype))


def test_scales_stand_for_the_places_of_the_last_dimension() -> None:
    rng = np.random.default_rng(1)
    x = rng.integers(-10_000, 10_000, (5, 19)).astype(np.int32)
    scale = rng.uniform(0.001, 0.1, 19).astype(np.float32)
    got = built(x, lambda a, s: topi.requantize(a, s, dtype="int8"), scale)
    want = np.clip(np.rint(x.astype(np.float32) * scale), -128, 127).astype(np.int8)
    np.testing.assert_array_equal(got, want)
    back = built(want, lambda a, s: topi.dequantize(a, s, 5), scale)
    np.testing.assert_array_equal(back, (want.astype(np.float32) - np.float32(5)) * scale)


def test_a_quantised_product_has_its_epilogue_in_registers() -> None:
    rng = np.random.default_rng(2)
    a, b = rng.integers(-128, 128, (9, 20)).astype(np.int8), rng.integers(-128, 128, (20, 33)).astype(np.int8)
    x, w = te.placeholder((9, 20), "int8", name="X"), te.placeholder((20, 33), "int8", name="W")
    y = topi.requantize(topi.matmul(x, w), 0.01, dtype="int8")
    out = np.empty((9, 33), np.int8)
    tw.build(te.create_prim_func([x, w, y]), target="llvm")(a, b, out)
    sums = (a.astype(np.int32) @ b.astype(np.int32)).astype(np.float32)
    np.testing.assert_array_equal(out, np.clip(np.rint(sums * np.float32(0.01)), -128, 127).astype(np.int8))


def test_what_is_not_to_be_quantised_is_refused() -> None:
    x = te.placeholder((4,), "float32", name="X")
    with pytest.raises(TensorError, match=r"x must be int32, got float32"):
        topi.requantize(x, 1.0)
    with pytest.raises(TensorError, match=r"zero_point must be an integer of int8, got 200"):
        topi.quantize(x, 1.0, 200)
    with pytest.raises(TensorError, match=r"dtype must be one of int8, uint8, int16, uint16, got int32"):
        topi.quantize(x, 1.0, dtype="int32")
