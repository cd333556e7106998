"""Numbers rounded to float16 and bfloat16 once, whatever they come from."""

from __future__ import annotations

from typing import Any

import numpy as np

from .dtype import DType

Array = np.ndarray[Any, np.dtype[Any]]


def converted(x: Array, dtype: DType) -> Array:
    """`x` by NumPy's astype rules, but rounded once: ml_dtypes makes a bfloat16 of a float64 or an integer by
    way of float32, which rounds twice."""
    if dtype.code != "bfloat" or x.dtype.kind not in "iuf" or x.dtype.itemsize < 4 or x.dtype == np.float32:
        return x.astype(dtype.numpy)
    wide = np.asarray(_exact_enough(x))
    near = wide.astype(np.float32)
    # Rounded to odd: the neighbour with an odd last bit where float32 does not hold the number, so that the
    # second rounding sees on which side of a tie it was.
    bits = near.view(np.int32)
    inexact = (near.astype(np.float64) != wide) & ~np.isnan(wide) & (bits & 1 == 0)
    away = np.abs(near.astype(np.float64)) > np.abs(wide)
    odd = np.where(inexact, np.where(away, bits - 1, bits + 1), bits).astype(np.int32)
    return odd.view(np.float32).astype(dtype.numpy)


def rounded(value: int | float | bool, dtype: DType) -> float:
    """The nearest float that a floating-point `dtype` holds; infinity beyond its range."""
    with np.errstate(all="ignore"):
        if isinstance(value, int) and abs(value) >= 2**53:
            # Its first 64 bits, the last of which says whether more follow.
            shift = max(0, abs(value).bit_length() - 63)
            head = abs(value) >> shift
            head |= (head << shift) != abs(value)
            size = float(converted(np.asarray(head, np.int64), dtype)) * 2.0 ** min(shift, 1000)
            return float(dtype.numpy.type(size if value > 0 else -size))
        return float(converted(np.asarray(float(value)), dtype))


def _exact_enough(x: Array) -> Array:
    """As float64, integers of 64 bits by their upper 53: the last one is set where some below were."""
    if x.dtype.kind == "f" or x.dtype.itemsize < 8:
        return x.astype(np.float64)
    low = x & x.dtype.type(0xFFF)
    large = (x > 2**53) | (x < -(2**53)) if x.dtype.kind == "i" else x > 2**53
    head = (x - low) + np.where(low != 0, 0x800, 0).astype(x.dtype)
    return np.where(large, head, x).astype(np.float64)
