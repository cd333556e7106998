"""Numbers with a bound on how far a kernel may be from them: the arithmetic of the reference.

Floats are held in float64, whatever their dtype; integers and booleans in their own. Next to each value
stands a bound on |what a kernel computes - value|. The bound of an operation is that of its operands carried
through, plus its own rounding, eps·|result| (eps is the distance of 1 to the next float, twice the error of
one rounding) or the stated ulps of a function.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from ..ir.dtype import DType
from ..ir.rounding import converted
from .functions import FUNCTIONS, GELU_LOWEST, LIPSCHITZ, ULPS, power
from .inputs import Array


@dataclass(frozen=True, slots=True, eq=False)
class Approx:
    """value: float64 for floats. error: a bound, broadcastable to value; of a bool: where it may be the other
    one. None: exact."""

    value: Array
    error: Array | None = None


def _sum(*errors: Array | None) -> Array | None:
    """The sum of bounds."""
    total: Array | None = None
    for e in errors:
        if e is not None:
            total = e if total is None else total + e
    return total


def _all_finite(x: Array) -> bool:
    return bool(np.isfinite(x.sum()))


def rounding(r: Array, dtype: DType, ulps: float = 1.0) -> Array:
    """The error of rounding results `r`; 0 for an infinity."""
    tiny = 2.0**-133 if dtype.code == "bfloat" else float(np.finfo(dtype.numpy).smallest_subnormal)
    size = np.abs(r)
    if not _all_finite(r):
        size = np.where(np.isfinite(r), size, 0.0)
    return np.asarray(size * (ulps * dtype.eps) + ulps * tiny)


def fit(r: Array, error: Array | None, dtype: DType) -> Approx:
    """Results beyond the range of `dtype` become infinite; where the bound reaches the end of the range,
    nothing is known."""
    if dtype.bits == 64:
        return Approx(r, error)
    largest = LARGEST[str(dtype)]
    size = np.abs(r)
    if not bool((size > largest * 0.99).any()):
        return Approx(r, error)
    e = error if error is not None else np.zeros(())
    near = np.isfinite(r) & (size + e > largest) & (size - e <= largest)
    wrapped = np.where(np.isfinite(r) & (size > largest), np.copysign(np.inf, r), r)
    return Approx(wrapped, np.where(near, np.inf, e))


#: The largest number of each float dtype.
LARGEST = {
    "float16": 65504.0,
    "float32": float(np.finfo(np.float32).max),
    "float64": float(np.finfo(np.float64).max),
    "bfloat16": 3.3895313892515355e38,
}


#: The smallest normal number of each float dtype.
SMALLEST = {"float16": 2.0**-14, "float32": 2.0**-126, "float64": 2.0**-1022, "bfloat16": 2.0**-126}


def _known(e: Array | None) -> Array | None:
    """A bound in which 0 · inf counts as 0."""
    if e is None or _all_finite(e):
        return e
    return np.where(np.isnan(e), 0.0, e)


def binary(op: str, dtype: DType, a: Approx, b: Approx) -> Approx:
    """An operation of two values of `dtype`."""
    if dtype.is_float:
        return _float_binary(op, dtype, a, b)
    r = INTEGER[op](a.value, b.value)
    if a.error is None and b.error is None:
        return Approx(r)
    if dtype.is_bool:
        return Approx(r, _either(a.error, b.error))
    match op:
        case "add" | "sub":
            return Approx(r, _sum(a.error, b.error))
        case "min" | "max":
            return Approx(r, larger(a.error, b.error))
        case "mul":
            return Approx(r, _product_error(a, b))
    return Approx(r, np.where(np.asarray(_sum(a.error, b.error)) > 0, np.inf, 0.0))


def _either(a: Array | None, b: Array | None) -> Array | None:
    return b if a is None else a if b is None else a | b


def larger(a: Array | None, b: Array | None) -> Array | None:
    """The larger of two bounds."""
    return b if a is None else a if b is None else np.maximum(a, b)


def _product_error(a: Approx, b: Approx) -> Array | None:
    ea = None if b.error is None else np.abs(a.value) * b.error
    eb = None if a.error is None else np.abs(b.value) * a.error
    both = None if a.error is None or b.error is None else a.error * b.error
    return _known(_sum(ea, eb, both))


def _float_binary(op: str, dtype: DType, a: Approx, b: Approx) -> Approx:
    match op:
        case "add" | "sub":
            r = a.value + b.value if op == "add" else a.value - b.value
            return fit(r, _sum(a.error, b.error, rounding(r, dtype)), dtype)
        case "mul":
            r = a.value * b.value
            return fit(r, _sum(_product_error(a, b), rounding(r, dtype)), dtype)
        case "min" | "max":
            return Approx(INTEGER[op](a.value, b.value), larger(a.error, b.error))
        case "truediv":
            r = a.value / b.value
            return fit(r, _sum(_quotient_error(r, a, b), rounding(r, dtype)), dtype)
    assert op == "pow"
    r = power(a.value, b.value)
    return fit(r, _sum(_power_error(r, a, b), rounding(r, dtype, ULPS["pow"])), dtype)


def _quotient_error(r: Array, a: Approx, b: Approx) -> Array | None:
    if b.error is None:
        return None if a.error is None else _known(a.error / np.abs(b.value))
    ea = a.error if a.error is not None else np.zeros(())
    room = np.abs(b.value) - b.error
    return np.where(room > 0, (ea + np.abs(r) * b.error) / np.where(room > 0, room, 1.0), np.inf)


def _power_error(r: Array, a: Approx, b: Approx) -> Array | None:
    if a.error is None and b.error is None:
        return None
    ea = a.error if a.error is not None else np.zeros(())
    eb = b.error if b.error is not None else np.zeros(())
    # a power is monotone in each operand: the corners of the box around them hold the extremes
    corners = [power(a.value + s * ea, b.value + t * eb) for s in (-1, 1) for t in (-1, 1)]
    return _farthest(r, corners)


def _farthest(r: Array, ends: list[Array]) -> Array:
    e = np.abs(ends[0] - r)
    for x in ends[1:]:
        e = np.maximum(e, np.abs(x - r))
    return np.where(np.isnan(e) & ~np.isnan(r), np.inf, np.where(np.isnan(e), 0.0, e))


def _truncdiv(a: Array, b: Array) -> Array:
    return np.asarray((a - np.fmod(a, b)) // b)


#: Exact operations. NumPy's integers wrap around, divide by 0 to 0, and shift out every bit for a shift by
#: the width or more.
INTEGER: dict[str, Callable[[Array, Array], Array]] = {
    "add": np.add,
    "sub": np.subtract,
    "mul": np.multiply,
    "min": np.minimum,
    "max": np.maximum,
    "floordiv": np.floor_divide,
    "floormod": np.remainder,
    "truncdiv": _truncdiv,
    "truncmod": np.fmod,
    "and": np.bitwise_and,
    "or": np.bitwise_or,
    "xor": np.bitwise_xor,
    "shl": np.left_shift,
    "shr": np.right_shift,
}


def unary(op: str, dtype: DType, a: Approx) -> Approx:
    """A function of one value of `dtype`."""
    if op == "neg":
        return Approx(np.negative(a.value), a.error)
    if op == "abs":
        return Approx(np.abs(a.value), a.error)
    if op == "not":
        return Approx(np.logical_not(a.value) if dtype.is_bool else np.invert(a.value), a.error)
    r = FUNCTIONS[op](a.value)
    carried = None if a.error is None else _spread(op, r, a.value, a.error)
    ulps = ULPS.get(op)
    if ulps is None:
        return Approx(r, carried)
    return fit(r, _sum(carried, rounding(np.ones_like(r) if op in LIPSCHITZ else r, dtype, ulps)), dtype)


def _spread(op: str, r: Array, x: Array, e: Array) -> Array:
    """How far f(x ± e) is from f(x)."""
    if op in LIPSCHITZ:
        return e
    f = FUNCTIONS[op]
    ends = [x - e, x + e]
    if op == "gelu":  # the one that falls and rises
        ends.append(np.clip(GELU_LOWEST, *ends))
    return _farthest(r, [f(end) for end in ends])


_COMPARE: dict[str, Callable[[Array, Array], Array]] = {
    "eq": np.equal,
    "ne": np.not_equal,
    "lt": np.less,
    "le": np.less_equal,
    "gt": np.greater,
    "ge": np.greater_equal,
}


def compare(op: str, a: Approx, b: Approx) -> Approx:
    """A comparison; undecided where the operands are within their bounds of each other."""
    r = _COMPARE[op](a.value, b.value)
    if a.error is None and b.error is None:
        return Approx(r)
    if a.value.dtype == np.bool_:
        return Approx(r, _either(a.error, b.error))
    reach = np.asarray(_sum(a.error, b.error))
    distance = np.abs(a.value.astype(np.float64) - b.value.astype(np.float64))
    return Approx(r, (distance <= reach) & (reach > 0))


def select(cond: Approx, a: Approx, b: Approx) -> Approx:
    """a where cond, else b."""
    r = np.where(cond.value, a.value, b.value)
    if r.dtype == np.bool_:
        off = None if a.error is None and b.error is None else np.where(cond.value, _flags(a), _flags(b))
        undecided = None if cond.error is None else cond.error & (a.value != b.value)
        return Approx(r, _either(off, undecided))
    e: Array | None = None
    if a.error is not None or b.error is not None:
        e = np.where(cond.value, _bound(a), _bound(b))
    if cond.error is not None:
        apart = np.abs(a.value.astype(np.float64) - b.value.astype(np.float64))
        unsure = np.maximum(_bound(a), _bound(b)) + apart
        e = np.where(cond.error, unsure, np.zeros(()) if e is None else e)
    return Approx(r, _known(e))


def _flags(x: Approx) -> Array:
    return np.zeros((), np.bool_) if x.error is None else x.error


def _bound(x: Approx) -> Array:
    return np.zeros(()) if x.error is None else x.error


def cast(source: DType, to: DType, a: Approx) -> Approx:
    """A conversion."""
    if to.is_bool:
        zero = a.value == 0
        if a.error is None or source.is_bool:
            return Approx(~zero, a.error)
        return Approx(~zero, (np.abs(a.value.astype(np.float64)) <= a.error) & (a.error > 0))
    carried = a.error if a.error is None or not source.is_bool else a.error.astype(np.float64)
    if source.is_float and to.is_float:
        if to.bits >= source.bits and not (to.bits == source.bits and to != source):
            return Approx(a.value, carried)
        return fit(a.value, _sum(carried, rounding(a.value, to)), to)
    if to.is_float:
        # One rounding of an exact integer: the same in every implementation.
        return Approx(converted(a.value, to).astype(np.float64), carried)
    if source.is_float and carried is not None:
        carried = np.trunc(a.value + carried) - np.trunc(a.value - carried)
    if source.is_float:
        carried = _sum(carried, _undefined(a.value, to))
    return Approx(a.value.astype(to.numpy), carried)


def _undefined(x: Array, to: DType) -> Array | None:
    """Infinite where the integer that a float becomes is not specified: out of range, and of NaN. Integers
    below 32 bits are made by way of int32."""
    low, high = to.limits if to.bits >= 32 else (-(2**31), 2**31 - 1)
    known = (np.trunc(x) >= low) & (x < float(high + 1))
    return None if bool(known.all()) else np.where(known, 0.0, np.inf)
