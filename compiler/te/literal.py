"""Python numbers as constants of a dtype."""

from __future__ import annotations

import math

import numpy as np

from ..ir.dtype import DType, TypeMismatch
from ..ir.expr import Const
from ..ir.rounding import rounded as nearest
from ..ir.span import Span
from .errors import mismatch


def is_literal(x: object) -> bool:
    """Whether `x` is a Python or NumPy number."""
    return isinstance(x, bool | int | float | np.generic)


def literal(x: object, dtype: DType, at: Span | None = None) -> Const:
    """`x`, written in the line `at`, as a constant of `dtype`, rounded as the dtype rounds. TypeMismatch when
    the dtype cannot represent it: an integer out of its range, a fraction or a boolean in another kind, a
    float that would become infinite or zero."""
    try:
        return _literal(x, dtype)
    except TypeMismatch as e:
        raise mismatch(str(e), at) from None


def _literal(x: object, dtype: DType) -> Const:
    value = x.item() if isinstance(x, np.generic) else x
    if isinstance(value, bool) or dtype.is_bool:
        if not (isinstance(value, bool) and dtype.is_bool):
            raise TypeMismatch(
                f"the literal {value!r} cannot be a {dtype}; a bool takes True or False, and only a bool does"
            )
        return Const(value, dtype)
    if isinstance(value, int):
        if value.bit_length() > 1100:
            # Beyond every dtype, and Python may refuse to write it.
            raise TypeMismatch(f"the literal of {value.bit_length()} bits does not fit into {dtype}")
        return Const(_float(value, dtype) if dtype.is_float else _integer(value, dtype), dtype)
    if not isinstance(value, float):
        raise TypeMismatch(f"expected a number, got {type(x).__name__}")
    if not dtype.is_float:
        raise TypeMismatch(f"the literal {value!r} is a float and cannot be an {dtype}")
    return Const(_rounded(value, dtype), dtype)


def _integer(value: int, dtype: DType) -> int:
    low, high = dtype.limits
    if not low <= value <= high:
        raise TypeMismatch(f"the literal {value} does not fit into {dtype}, which holds {low} to {high}")
    return value


def _float(value: int, dtype: DType) -> float:
    try:
        rounded = _rounded(float(value), dtype)
    except OverflowError:
        rounded = math.inf
    if rounded != value:
        raise TypeMismatch(f"the literal {value} cannot be represented in {dtype}")
    return rounded


def _rounded(value: float, dtype: DType) -> float:
    rounded = nearest(value, dtype)
    if math.isinf(rounded) and not math.isinf(value):
        raise TypeMismatch(f"the literal {value!r} is beyond the range of {dtype}")
    if rounded == 0 and value != 0:
        raise TypeMismatch(f"the literal {value!r} is too small for {dtype}, which would round it to 0")
    return rounded
