"""The operations of the scalar interpreter: NumPy scalars in, a NumPy scalar of the same dtype out."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ..ir.dtype import DType
from ..ir.rounding import converted
from .functions import FUNCTIONS, power

Scalar = Any


class OutOfBounds(IndexError):
    """An access outside of its buffer."""


def inside(i: int, extent: int, name: str, dimension: int) -> int:
    """`i`, when it is in [0, extent). NumPy would take negative ones from the end."""
    if 0 <= i < extent:
        return i
    raise OutOfBounds(f"index {i} in dimension {dimension} of {name!r}, which has the extent {extent}")


def smallest(a: Scalar, b: Scalar) -> Scalar:
    """The smaller one; NaN where one is NaN."""
    return a if a <= b or a != a else b


def largest(a: Scalar, b: Scalar) -> Scalar:
    """The larger one; NaN where one is NaN."""
    return a if a >= b or a != a else b


def truncdiv(a: Scalar, b: Scalar) -> Scalar:
    """a / b rounded towards 0; 0 for b = 0."""
    return (a - np.fmod(a, b)) // b


def cast(x: Scalar, dtype: DType) -> Scalar:
    """Conversion by the rules of astype, rounded once."""
    return converted(np.asarray(x), dtype)[()]


def power_(a: Scalar, b: Scalar) -> Scalar:
    """a to the power of b, in their dtype."""
    return power(np.asarray(a), np.asarray(b)).astype(a.dtype)[()]


HELPERS: dict[str, Any] = {
    "inside": inside,
    "cast": cast,
    "min_": smallest,
    "max_": largest,
    "truncdiv_": truncdiv,
    "truncmod_": np.fmod,
    "pow_": power_,
    "shl_": np.left_shift,
    "shr_": np.right_shift,
}


def function(op: str, dtype: DType) -> Callable[[Scalar], Scalar]:
    """The function `op` of one scalar of `dtype`. Those of floats are computed in float64 and rounded
    once."""
    if op == "neg":
        return np.negative
    if op == "abs":
        return np.abs
    if op == "not":
        return np.logical_not if dtype.is_bool else np.invert
    f, to = FUNCTIONS[op], dtype.numpy.type
    return lambda x: to(f(np.asarray(x, np.float64))[()])
