"""argmin and argmax: where the smallest and the largest value stands."""

from __future__ import annotations

from ..arith import Poly, poly, product
from ..ir.dtype import DType
from ..ir.expr import IndexValue, Select
from ..ir.rules import identity
from .errors import mismatch, parse_dtype, tensor_error
from .index import ReduceAxis
from .reduce import Axes, axes_of, term_of
from .value import Read, Reduction, Value, arithmetic


def argmin(expr: object, axis: Axes, dtype: str | DType = "int32") -> Value:
    """Where the smallest value stands: the first place of several, that of the first NaN where there is one.
    With one axis, the value of the axis there; with several, the position among all steps, counted from 0,
    the last axis fastest. Over an axis of a size that is 0 there is no place: the largest value of `dtype`.

    Made of plain reductions: the minimum, then the least place where it is met.
    """
    return _arg("argmin", "min", expr, axis, dtype)


def argmax(expr: object, axis: Axes, dtype: str | DType = "int32") -> Value:
    """Where the largest value stands; otherwise as argmin."""
    return _arg("argmax", "max", expr, axis, dtype)


def _arg(word: str, op: str, expr: object, axis: Axes, dtype: str | DType) -> Value:
    to = parse_dtype(dtype)
    if not to.is_int:
        raise mismatch(f"te.{word}: the dtype of a place is an integer, got {to}")
    term = term_of(word, expr)
    axes_of(word, axis, (term,))
    place, low, high = _place(axis)
    if low.const is None or high.const is None:
        if to.bits < 32:
            raise tensor_error(
                f"te.{word}: places run from {low!r} to {high!r}, which may not fit into {to}; "
                "use int32 or int64"
            )
    elif low.const < to.limits[0] or high.const > to.limits[1]:
        raise tensor_error(
            f"te.{word}: places run from {low!r} to {high!r} and do not fit into {to}, "
            f"which holds {to.limits[0]} to {to.limits[1]}"
        )
    return extremum(word, op, "min", term, Value(IndexValue(place, to)), axis)[0]


def _place(axis: Axes) -> tuple[Poly, Poly, Poly]:
    """The place of one step, its lowest and its highest value."""
    if isinstance(axis, ReduceAxis) or len(axis) == 1:
        a = axis if isinstance(axis, ReduceAxis) else axis[0]
        low = a.poly - a.var
        return a.poly, low, low + a.var.extent - 1
    flat = poly(0)
    for a in axis:
        flat = flat * a.var.extent + a.var
    return flat, poly(0), product(a.var.extent for a in axis) - 1


def extremum(
    word: str, op: str, tie: str, term: Value, place: Value, axis: Axes
) -> tuple[Reduction, Reduction]:
    """(the place of the extreme value, that value): `op` (min or max) says which value, `tie` which place of
    several."""
    axes = axes_of(word, axis, (term, place))
    # Both reductions must see the same numbers: what is more than a read is computed once and stored.
    value = term if type(term) is Read else Reduction("value", None, term)
    best = Reduction(op, op, value, axes, identity(op, value.dtype))
    met = arithmetic("eq", value, best)
    if value.dtype.is_float:
        # Where there is a NaN, the extreme value is one, which equals nothing.
        met = arithmetic("or", met, arithmetic("ne", value, value))
    nowhere = Value(identity(tie, place.dtype))
    chosen = Value(Select(met.expr, place.expr, nowhere.expr), (met, place, nowhere))
    return Reduction(word, tie, chosen, axes, identity(tie, place.dtype)), best
