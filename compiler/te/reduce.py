"""Reductions: what is computed from all the steps of reduce axes."""

from __future__ import annotations

from collections.abc import Sequence

from ..arith import Var
from ..ir.dtype import DType
from ..ir.rules import identity
from .errors import mismatch, parse_dtype, tensor_error
from .functions import cast
from .index import Index, ReduceAxis, as_poly
from .tensor import check_extent, check_name
from .value import Reduction, Value, check, found, free_vars, reduced

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
    return accumulate("sum", "add", term_of("sum", expr), axis, dtype)


def prod(expr: object, axis: Axes, dtype: str | DType | None = None) -> Value:
    """The product; accumulates as `sum` does."""
    return accumulate("prod", "mul", term_of("prod", expr), axis, dtype)


def max(expr: object, axis: Axes) -> Value:
    """The largest value; NaN where one is NaN. te.maximum takes two operands."""
    return reduction("max", "max", term_of("max", expr), axis)


def min(expr: object, axis: Axes) -> Value:
    """The smallest value; NaN where one is NaN. te.minimum takes two operands."""
    return reduction("min", "min", term_of("min", expr), axis)


def reduce_and(expr: object, axis: Axes) -> Value:
    """All values joined by &: bit by bit for integers; te.all takes conditions only."""
    return _bits("reduce_and", "and", expr, axis)


def reduce_or(expr: object, axis: Axes) -> Value:
    """All values joined by |: bit by bit for integers; te.any takes conditions only."""
    return _bits("reduce_or", "or", expr, axis)


def reduce_xor(expr: object, axis: Axes) -> Value:
    """All values joined by ^: bit by bit for integers; of booleans, whether an odd number is true."""
    return _bits("reduce_xor", "xor", expr, axis)


def _bits(word: str, op: str, expr: object, axis: Axes) -> Value:
    term = term_of(word, expr, bools=True)
    if term.dtype.is_float:
        raise mismatch(f"te.{word} takes integers or booleans, got {term.dtype}")
    return reduction(word, op, term, axis)


def accumulate(word: str, op: str, term: Value, axis: Axes, dtype: str | DType | None) -> Value:
    """A sum or a product in a dtype that is wide enough, then in the dtype of the result."""
    wide = term.dtype.accumulator if dtype is None else parse_dtype(dtype)
    _numbers(word, wide)
    result = term.dtype if dtype is None else wide
    return cast(reduction(word, op, cast(term, wide), axis), result)


def term_of(word: str, expr: object, *, bools: bool = False) -> Value:
    """What is reduced: a value. TypeMismatch for what is none, and for booleans unless `bools`."""
    if not isinstance(expr, Value):
        raise mismatch(f"te.{word}: expected a value, got {found(expr)}")
    if not bools:
        _numbers(word, expr.dtype)
    return expr


def _numbers(word: str, dtype: DType) -> None:
    if dtype.is_bool:
        raise mismatch(f"te.{word} takes numbers, got bool; te.cast it first")


def reduction(word: str, op: str, term: Value, axis: Axes) -> Reduction:
    """The reduction of `term` by `op`, named `word`, over axes that a user gave."""
    axes = axes_of(word, axis, (term,))
    check(op, term.dtype)
    return Reduction(word, op, term, axes, identity(op, term.dtype))


def axes_of(word: str, axis: Axes, terms: Sequence[Value]) -> tuple[Var, ...]:
    """The variables of the axes that a user gave. TensorError unless each is a reduce axis, is used by some
    of the terms, and is not reduced in them already."""
    axes = (axis,) if isinstance(axis, ReduceAxis) else axis
    if not isinstance(axes, Sequence) or not axes:
        advice = f"; te.{word}imum takes two operands" if word in ("min", "max") else ""
        raise tensor_error(f"te.{word}: `axis` takes what te.reduce_axis made, got {axis!r}{advice}")
    used = {v for t in terms for v in free_vars(t)}
    inside = {v: other for t in terms for v, other in reduced(t).items()}
    seen: list[Var] = []
    for a in axes:
        if not isinstance(a, ReduceAxis):
            raise tensor_error(f"te.{word}: `axis` takes what te.reduce_axis made, got {a!r}")
        if any(a.var is v for v in seen):
            raise tensor_error(f"te.{word}: the reduce axis {a.name!r} is given twice")
        if a.var in inside:
            raise tensor_error(
                f"te.{word}: the reduce axis {a.name!r} is reduced already by te.{inside[a.var]} "
                "inside of the expression; nested reductions take an axis each"
            )
        if a.var not in used:
            raise tensor_error(f"te.{word}: the expression does not use the reduce axis {a.name!r}")
        seen.append(a.var)
    return tuple(seen)
