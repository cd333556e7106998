"""Indices: integer expressions over the variables of a compute and its reduce axes, kept as polynomials."""

from __future__ import annotations

import operator
from typing import Any

from ..arith import (
    LARGEST,
    NotProvable,
    Poly,
    Var,
    floor_div,
    floor_mod,
    is_positive,
    lower,
    maximum,
    minimum,
    poly,
    positive_atoms,
    proven_negative,
    reach,
)
from ..ir.expr import COMPARE_OPS
from ..ir.limits import MAX_FACTORS, MAX_INTEGER, MAX_TERMS
from ..ir.span import user_span
from .errors import TensorError, mismatch, tensor_error
from .logic import in_bounds, negation
from .symbolic import SIGNS, Symbolic
from .value import Value, found


class Index(Symbolic):
    """An integer expression that may index a tensor. Its operators are + - * // %, comparisons, te.minimum
    and te.maximum."""

    __slots__ = ("poly",)

    def __init__(self, p: Poly) -> None:
        self.poly = p
        self.span = user_span()

    def __repr__(self) -> str:
        return repr(self.poly)

    def _binary(self, op: str, a: object, b: object) -> Index | Value:
        return index_arithmetic(op, a, b)

    def _unary(self, op: str) -> Index:
        if op == "neg":
            return _index("-", -self.poly)
        raise mismatch(f"an index has no {op!r}; te.cast makes it a value")


class ReduceAxis(Index):
    """A reduce axis: as an index, the value it takes in each step."""

    __slots__ = ("var",)

    def __init__(self, var: Var, low: Poly) -> None:
        super().__init__(poly(var) + low)
        self.var = var

    @property
    def name(self) -> str:
        return self.var.name


class Extent(Index):
    """An extent over sizes, as a dimension of a tensor's shape. `==` and `!=` with an integer or another
    extent say whether they are the same for all sizes; with an index they build a comparison, as ever."""

    __slots__ = ()

    def __eq__(self, other: object) -> Any:
        same = self._same(other)
        return super().__eq__(other) if same is None else same

    def __ne__(self, other: object) -> Any:
        same = self._same(other)
        return super().__ne__(other) if same is None else not same

    def __hash__(self) -> int:
        return hash(self.poly)

    def _same(self, other: object) -> bool | None:
        if not is_index(other):
            return None
        p = as_poly(other, "an extent")
        return None if p.vars() else p == self.poly


def is_index(x: object) -> bool:
    """Whether `x` is an index or an integer that can stand for one."""
    return isinstance(x, Index) or _integer(x) is not None


def _integer(x: object) -> int | None:
    if isinstance(x, bool | Symbolic):
        return None
    try:
        return operator.index(x)  # type: ignore[arg-type]
    except TypeError:
        return None


def as_poly(x: object, what: str) -> Poly:
    """An index or an integer as a polynomial. Raises TypeMismatch."""
    if isinstance(x, Index):
        return x.poly
    n = _integer(x)
    if n is not None:
        return poly(n)
    if isinstance(x, Value):
        raise mismatch(
            f"{what} must be an integer expression of the variables, got a value of dtype {x.dtype}"
        )
    raise mismatch(f"{what} must be an integer expression of the variables, got {found(x)}")


def index_arithmetic(op: str, a: object, b: object) -> Index | Value:
    """A binary operation or a comparison of two indices."""
    sign = SIGNS.get(op, f"te.{op}")
    for x in (a, b):
        if isinstance(x, Value):
            raise mismatch(
                f"{sign}: the operands are an index and a value; "
                f"te.cast(index, {str(x.dtype)!r}) makes it a value"
            )
    p, q = as_poly(a, f"{sign}: an operand of an index"), as_poly(b, f"{sign}: an operand of an index")
    if op in COMPARE_OPS:
        _index(sign, p - q)
        return compare(op, p, q)
    try:
        match op:
            case "add":
                return _index(sign, p + q)
            case "sub":
                return _index(sign, p - q)
            case "mul":
                return _index(sign, p * q)
            case "min":
                return _index(sign, minimum(p, q))
            case "max":
                return _index(sign, maximum(p, q))
            case "floordiv" | "floormod" | "truncdiv" | "truncmod":
                return _index(sign, _divide(op, sign, p, q))
    except NotProvable as e:
        raise tensor_error(f"{sign}: {e}") from None
    advice = "; use //" if op == "truediv" else "; te.cast makes it a value"
    raise mismatch(f"an index has no {sign!r}{advice}")


def _index(sign: str, p: Poly) -> Index:
    """The index, which a kernel must be able to compute, and a reader of programs to read."""
    for m, c in p.terms.items():
        if abs(c) >= MAX_INTEGER:
            raise tensor_error(f"{sign}: the integers of an index must be below 2**53, got {c}")
        if len(m) > MAX_FACTORS:
            raise tensor_error(
                f"{sign}: a term of an index has at most {MAX_FACTORS} factors, got {len(m)} in {p!r}"
            )
    if len(p.terms) > MAX_TERMS:
        raise tensor_error(f"{sign}: an index has at most {MAX_TERMS} terms, got {len(p.terms)}")
    if reach(p) > LARGEST:
        raise tensor_error(f"{sign}: {p!r} may need more than the 64 bits that indices are computed with")
    return Index(p)


def _divide(op: str, sign: str, p: Poly, q: Poly) -> Poly:
    if (q.const is None and q.vars()) or not is_positive(q, positive_atoms(p.vars())):
        sizes = " or by sizes that the extents of its variables have as factors" if q.sizes() else ""
        raise tensor_error(f"{sign}: an index is divided by a positive integer{sizes} only, got {q!r}")
    if op.startswith("trunc") and not proven_negative(-lower(p) - 1):
        raise tensor_error(
            f"{sign}: {p!r} may be negative, where truncated and floor division differ; use // and %"
        )
    return floor_div(p, q) if op.endswith("div") else floor_mod(p, q)


def compare(op: str, p: Poly, q: Poly) -> Value:
    """A comparison as conditions, each a polynomial below 0."""
    match op:
        case "lt":
            return Value(in_bounds([p - q]))
        case "le":
            return Value(in_bounds([p - q - 1]))
        case "gt":
            return Value(in_bounds([q - p]))
        case "ge":
            return Value(in_bounds([q - p - 1]))
        case "eq":
            return Value(in_bounds([p - q - 1, q - p - 1]))
    return Value(negation(in_bounds([p - q - 1, q - p - 1])))


__all__ = ["Index", "ReduceAxis", "TensorError"]
