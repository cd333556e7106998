"""Reductions: sum, prod, min and max over reduce axes."""

from __future__ import annotations

from collections.abc import Sequence

from ..arith import Var
from ..ir.dtype import DType
from ..ir.expr import Const
from .errors import mismatch, parse_dtype, tensor_error
from .functions import cast, highest, lowest
from .index import Index, ReduceAxis, as_poly
from .tensor import check_extent, check_name
from .value import Reduction, Value, found, free_vars

Axes = ReduceAxis | Sequence[ReduceAxis]


def reduce_axis(dom: tuple[int | Index, int | Index], name: str = "k") -> ReduceAxis:
    """An axis that takes the values low, …, high - 1, for `dom` = (low, high)."""
    check_name(name, "te.reduce_axis")
    what = f"te.reduce_axis {name!r}"
    if not isinstance(dom, Sequence) or len(dom) != 2:
        raise tensor_error(f"{what}: the domain must be a pair (low, high), got {dom!r}")
    low, high = (as_poly(x, f"{what}: a bound of the domain") for x in dom)
    if low.vars() or high.vars():
        raise tensor_error(f"{what}: the bounds must be integers or made of te.var sizes, got {dom!r}")
    extent = high - low
    if extent.const is not None and extent.const < 1:
        raise tensor_error(f"{what}: the domain ({low!r}, {high!r}) is empty")
    return ReduceAxis(Var(name, check_extent(extent, what, "of the domain")), low)


def sum(expr: object, axis: Axes, dtype: str | DType | None = None) -> Value:
    """The sum, of the dtype of `expr`. float16 and bfloat16 accumulate in float32, integers below 32 bits in
    int32, and are rounded or wrapped once at the end; `dtype` says what to accumulate in and return
    instead."""
    return _accumulate("sum", "add", 0, expr, axis, dtype)


def prod(expr: object, axis: Axes, dtype: str | DType | None = None) -> Value:
    """The product; accumulates as `sum` does."""
    return _accumulate("prod", "mul", 1, expr, axis, dtype)


def max(expr: object, axis: Axes) -> Value:
    """The largest value; NaN where one is NaN. te.maximum takes two operands."""
    term = _term("max", expr)
    return _reduction("max", "max", term, axis, lowest(term.dtype))


def min(expr: object, axis: Axes) -> Value:
    """The smallest value; NaN where one is NaN. te.minimum takes two operands."""
    term = _term("min", expr)
    return _reduction("min", "min", term, axis, highest(term.dtype))


def _accumulate(word: str, op: str, start: int, expr: object, axis: Axes, dtype: str | DType | None) -> Value:
    term = _term(word, expr)
    wide = term.dtype.accumulator if dtype is None else parse_dtype(dtype)
    result = term.dtype if dtype is None else wide
    _numbers(word, wide)
    init = Const(float(start) if wide.is_float else start, wide)
    return cast(_reduction(word, op, cast(term, wide), axis, init), result)


def _term(word: str, expr: object) -> Value:
    if not isinstance(expr, Value):
        raise mismatch(f"te.{word}: expected a value, got {found(expr)}")
    _numbers(word, expr.dtype)
    return expr


def _numbers(word: str, dtype: DType) -> None:
    if dtype.is_bool:
        raise mismatch(f"te.{word} takes numbers, got bool; te.cast it first")


def _reduction(word: str, op: str, term: Value, axis: Axes, init: Const) -> Reduction:
    axes = (axis,) if isinstance(axis, ReduceAxis) else axis
    if not isinstance(axes, Sequence) or not axes:
        advice = f"; te.{word}imum takes two operands" if word in ("min", "max") else ""
        raise tensor_error(f"te.{word}: `axis` takes what te.reduce_axis made, got {axis!r}{advice}")
    used = free_vars(term)
    seen: list[Var] = []
    for a in axes:
        if not isinstance(a, ReduceAxis):
            raise tensor_error(f"te.{word}: `axis` takes what te.reduce_axis made, got {a!r}")
        if any(a.var is v for v in seen):
            raise tensor_error(f"te.{word}: the reduce axis {a.name!r} is given twice")
        if a.var not in used:
            raise tensor_error(f"te.{word}: the expression does not use the reduce axis {a.name!r}")
        seen.append(a.var)
    return Reduction(word, op, term, tuple(seen), init)
