"""Reductions of whole dimensions, and along one dimension up to each element."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from .. import te
from ..ir.dtype import DType
from ..ir.rules import identity
from .checks import check_choice, check_floats, check_tensor, count, dimensions, failure
from .matmul import accumulation

REDUCTIONS: dict[str, Callable[..., Any]] = {
    "sum": te.sum,
    "prod": te.prod,
    "min": te.min,
    "max": te.max,
    "mean": te.sum,
    "argmin": te.argmin,
    "argmax": te.argmax,
    "all": te.all,
    "any": te.any,
}
#: Functions along one dimension, with their reducers.
CUMULATIVE = {"sum": "add", "prod": "mul", "min": "min", "max": "max"}


def reduce(
    x: te.Tensor,
    function: str,
    axes: int | Sequence[int] | None = None,
    *,
    keepdims: bool = False,
    out_dtype: str | DType | None = None,
    name: str = "Y",
) -> te.Tensor:
    """NumPy's function of that name over the dimensions `axes` (all of them by default).

    Sums and products of integers below 32 bits are int32 unless `out_dtype` says otherwise; those of float16
    and bfloat16 are rounded once at the end. A mean is one of floats. argmin and argmax count over all the
    dimensions in `axes`, as int32. all and any take booleans.
    """
    check_tensor("reduce", "x", x)
    check_choice("reduce", "function", function, tuple(REDUCTIONS))
    dims = dimensions("reduce", "axes", axes, x.ndim)
    if not dims:
        raise failure("reduce", f"'x' must have a dimension to reduce, got {x!r}")
    if function == "mean":
        check_floats("reduce", "x", x)
    if x.dtype.is_bool is not (function in ("all", "any")):
        what = "booleans" if function in ("all", "any") else "numbers"
        raise failure("reduce", f"'x' must hold {what} for {function!r}, got {x!r}")
    if out_dtype is not None and function not in ("sum", "prod", "mean"):
        raise failure("reduce", f"'out_dtype' is for sums, products and means, not for {function!r}")
    wide, out = accumulation(x.dtype, out_dtype)
    steps_taken = count([x.shape[d] for d in dims], wide) if function == "mean" else 1.0
    kept = [d for d in range(x.ndim) if d not in dims]
    steps = {d: te.reduce_axis((0, x.shape[d]), name=f"k{d}") for d in dims}

    def element(*index: te.Index) -> te.Value:
        spatial = dict(zip(range(x.ndim) if keepdims else kept, index, strict=True))
        read = x[tuple(steps[d] if d in dims else spatial[d] for d in range(x.ndim))]
        over = list(steps.values())
        if function in ("sum", "prod", "mean"):
            total = REDUCTIONS[function](te.cast(read, wide), axis=over)
            return te.cast(total / steps_taken if function == "mean" else total, out)
        return REDUCTIONS[function](read, axis=over)  # type: ignore[no-any-return]

    shape = [x.shape[d] if d in kept else 1 for d in range(x.ndim) if keepdims or d in kept]
    y: te.Tensor = te.compute(shape, element, name=name, names=[f"i{d}" for d in range(len(shape))])
    return y


def cumulative(x: te.Tensor, function: str = "sum", axis: int = -1, *, name: str = "Y") -> te.Tensor:
    """Y[…, j, …] = function of x[…, 0, …] to x[…, j, …] along `axis`, of the dtype of `x`. Every element is a
    reduction of its own, so that n elements take n² steps and may run in any order."""
    check_tensor("cumulative", "x", x)
    check_choice("cumulative", "function", function, tuple(CUMULATIVE))
    if x.ndim == 0:
        raise failure("cumulative", f"'x' must have at least 1 dimension, got {x!r}")
    if x.dtype.is_bool:
        raise failure("cumulative", f"'x' must hold numbers, got {x!r}")
    if type(axis) is not int:
        raise failure("cumulative", f"'axis' must be one dimension, got {axis!r}")
    (d,) = dimensions("cumulative", "axis", axis, x.ndim)
    k = te.reduce_axis((0, x.shape[d]), name="k")
    start = te.Value(identity(CUMULATIVE[function], x.dtype))

    def element(*index: te.Index) -> te.Value:
        read = x[(*index[:d], k, *index[d + 1 :])]
        term = te.if_then_else(k <= index[d], read, start)
        return REDUCTIONS[function](term, axis=k)  # type: ignore[no-any-return]

    y: te.Tensor = te.compute(x.shape, element, name=name)
    return y
