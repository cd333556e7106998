"""Conditions. Those over indices alone are InBounds, conjunctions of polynomials below 0, and are kept in
that form where they can be."""

from __future__ import annotations

from collections.abc import Iterable

from ..arith import Poly, proven_negative
from ..ir.dtype import BOOL
from ..ir.expr import Binary, Const, Expr, InBounds, Unary

TRUE = Const(True, BOOL)
FALSE = Const(False, BOOL)


def in_bounds(conditions: Iterable[Poly]) -> Expr:
    """Every polynomial is negative: what always holds is dropped, what never holds makes it false."""
    kept: list[Poly] = []
    for c in conditions:
        if proven_negative(-1 - c):
            return FALSE
        if not proven_negative(c) and c not in kept:
            kept.append(c)
    return InBounds(tuple(kept)) if kept else TRUE


def conjunction(a: Expr, b: Expr) -> Expr:
    """a and b"""
    if _is(a, False) or _is(b, True):
        return a
    if _is(b, False) or _is(a, True):
        return b
    (front_a, rest_a), (front_b, rest_b) = _split(a), _split(b)
    rest = rest_b if rest_a is None else rest_a if rest_b is None else Binary("and", rest_a, rest_b)
    if not front_a and not front_b:
        return Binary("and", a, b)
    # The conditions on indices stand together in front, where they can guard reads.
    front = in_bounds(front_a + front_b)
    if rest is None or _is(front, False):
        return front
    return rest if _is(front, True) else Binary("and", front, rest)


def _split(e: Expr) -> tuple[tuple[Poly, ...], Expr | None]:
    """The conditions on indices that lead a conjunction, and the rest of it."""
    if type(e) is InBounds:
        return e.conditions, None
    if type(e) is Binary and e.op == "and" and type(e.a) is InBounds:
        return e.a.conditions, e.b
    return (), e


def disjunction(a: Expr, b: Expr) -> Expr:
    """a or b"""
    if _is(a, True) or _is(b, False):
        return a
    if _is(b, True) or _is(a, False):
        return b
    return Binary("or", a, b)


def negation(a: Expr) -> Expr:
    """not a"""
    if type(a) is Const:
        return FALSE if a.value else TRUE
    if type(a) is Unary and a.op == "not":
        return a.a
    if type(a) is InBounds and len(a.conditions) == 1:
        return in_bounds([-a.conditions[0] - 1])
    return Unary("not", a)


def opposite(a: Expr) -> InBounds | None:
    """`not a` as index conditions, where it is that: a disjunction of single conditions, or a negated
    InBounds."""
    if type(a) is Unary and a.op == "not" and type(a.a) is InBounds:
        return a.a
    if type(a) is InBounds and len(a.conditions) == 1:
        return InBounds((-a.conditions[0] - 1,))
    if type(a) is Binary and a.op == "or":
        x, y = opposite(a.a), opposite(a.b)
        if x is not None and y is not None:
            both = in_bounds(x.conditions + y.conditions)
            return both if type(both) is InBounds else None
    return None


def _is(e: Expr, value: bool) -> bool:
    return type(e) is Const and e.value is value
