"""Integers for floats: q = round(x / scale) + zero_point, rounded to nearest, ties to even, and saturated."""

from __future__ import annotations

from .. import te
from ..ir.dtype import FLOAT32, DType
from ..te.errors import parse_dtype
from .checks import check_tensor, check_vector, failure

Scale = float | te.Tensor
_QUANTIZED = ("int8", "uint8", "int16", "uint16")


def quantize(
    x: te.Tensor, scale: Scale, zero_point: int = 0, *, dtype: str | DType = "int8", name: str = "Q"
) -> te.Tensor:
    """Q[…, c] = saturate(round(X[…, c] / scale) + zero_point) of float32; `scale`: one number, or one for
    each place of the last dimension. Rounds ties to even; what is beyond the dtype's range, infinities too,
    becomes its nearest end, and NaN its lowest value."""
    check_tensor("quantize", "x", x, (1, 8))
    if x.dtype != FLOAT32:
        raise failure("quantize", f"x must be float32, got {x.dtype}")
    return _saturated("quantize", x, scale, zero_point, parse_dtype(dtype), name, divide=True)


def requantize(
    x: te.Tensor, scale: Scale, zero_point: int = 0, *, dtype: str | DType = "int8", name: str = "Q"
) -> te.Tensor:
    """Q[…, c] = saturate(round(float32(X[…, c]) * scale) + zero_point) of int32 sums, which are
    rounded to float32 first; otherwise as quantize."""
    check_tensor("requantize", "x", x, (1, 8))
    if str(x.dtype) != "int32":
        raise failure("requantize", f"x must be int32, got {x.dtype}")
    return _saturated("requantize", x, scale, zero_point, parse_dtype(dtype), name, divide=False)


def dequantize(x: te.Tensor, scale: Scale, zero_point: int = 0, *, name: str = "X") -> te.Tensor:
    """X[…, c] = (float32(Q[…, c]) - zero_point) * scale."""
    check_tensor("dequantize", "x", x, (1, 8))
    if not x.dtype.is_int:
        raise failure("dequantize", f"x must be of integers, got {x.dtype}")
    _check_scale("dequantize", x, scale)

    def element(*at: te.Index) -> te.Value:
        moved: te.Value = te.cast(x[at], FLOAT32) - float(zero_point)
        scaled: te.Value = moved * _at(scale, at)
        return scaled

    return te.compute(x.shape, element, name=name)


def _check_scale(op: str, x: te.Tensor, scale: Scale) -> None:
    if not isinstance(scale, te.Tensor):
        return
    check_vector(op, "scale", scale, x.shape[-1], "place of the last dimension")
    if scale.dtype != FLOAT32:
        raise failure(op, f"scale must be float32, got {scale.dtype}")


def _at(scale: Scale, at: tuple[te.Index, ...]) -> float | te.Value:
    return scale[at[-1]] if isinstance(scale, te.Tensor) else float(scale)


def _saturated(
    op: str, x: te.Tensor, scale: Scale, zero_point: int, dtype: DType, name: str, *, divide: bool
) -> te.Tensor:
    if str(dtype) not in _QUANTIZED:
        raise failure(op, f"dtype must be one of {', '.join(_QUANTIZED)}, got {dtype}")
    low, high = dtype.limits
    if type(zero_point) is not int or not low <= zero_point <= high:
        raise failure(op, f"zero_point must be an integer of {dtype}, got {zero_point!r}")
    _check_scale(op, x, scale)

    def element(*at: te.Index) -> te.Value:
        value, by = te.cast(x[at], FLOAT32), _at(scale, at)
        moved = te.round(value / by if divide else value * by) + float(zero_point)
        # Comparisons with NaN are false: it becomes the lowest value.
        raised = te.if_then_else(moved > float(low), moved, float(low))
        return te.cast(te.if_then_else(raised < float(high), raised, float(high)), dtype)

    return te.compute(x.shape, element, name=name)
