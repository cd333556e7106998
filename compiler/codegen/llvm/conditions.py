"""Conditions `p < 0` at a point of the loops, and what is known to hold there."""

from __future__ import annotations

from collections.abc import Iterable
from math import gcd
from typing import Literal

from ...arith import Poly, proven_negative
from .builder import Builder
from .dtypes import vector_type
from .indices import Index, Indices, Terms
from .point import Point

Value = tuple[str, bool]
"""A value's name or literal, and whether it is a vector with an element for each lane."""

Condition = Value | bool
Facts = dict[frozenset[tuple[object, int]], int]
"""Terms -> the largest known constant with `terms + constant < 0`."""


class Conditions:
    """Evaluates conjunctions of `p < 0`, leaving out what ranges and facts prove."""

    def __init__(self, builder: Builder, point: Point, indices: Indices) -> None:
        self._b = builder
        self._point = point
        self._indices = indices
        self.facts: Facts = {}
        self._symbolic: dict[Poly, bool] = {}
        #: Bits of lanes -> the bit without which no lane has its own.
        self._needed: dict[str, str] = {}

    def all_of(self, polynomials: tuple[Poly, ...]) -> Condition:
        """True, False, or the bit that says whether each is below 0."""
        if not polynomials:
            return True
        decided = self._b.scope.decided
        key = polynomials, self._point.unrolled_at(polynomials)
        out = decided.get(key)
        if out is None:
            out = decided[key] = self._all_of(polynomials)
        return out

    def _all_of(self, polynomials: Iterable[Poly]) -> Condition:
        out: Condition = True
        for p in polynomials:
            known, index = self._decide(p)
            if known is False:
                return False
            if known is None:
                out = self.both(out, self._compare(index))
        return out

    def refuted(self, polynomials: tuple[Poly, ...]) -> bool:
        """Whether one of them is never below 0 at this point."""
        decided = self._b.scope.decided
        key = "refuted", polynomials, self._point.unrolled_at(polynomials)
        out = decided.get(key)
        if out is None:
            out = decided[key] = any(self._decide(p)[0] is False for p in polynomials)
        return out is True

    def moves_with_lane(self, p: Poly) -> bool:
        """Whether the polynomial differs between the lanes."""
        index = self._indices.at(p)
        return index.stride != 0 or bool(index.lane_terms)

    def both(self, a: Condition, b: Condition) -> Condition:
        """The conjunction of two conditions."""
        if a is False or b is False:
            return False
        if a is True or b is True:
            return b if a is True else a
        assert not isinstance(a, bool) and not isinstance(b, bool)
        needed = [n for n in (self.needed(a), self.needed(b)) if n is not None]
        if a[1] == b[1]:
            out = self._b.pure(f"and {self._bits(a[1])} {{}}, {{}}", a[0], b[0]), a[1]
        else:
            vector, scalar = (a, b) if a[1] else (b, a)
            spread = self._indices.spread(scalar[0], "i1")
            out = self._b.pure(f"and {self._bits(True)} {{}}, {{}}", vector[0], spread), True
        if out[1] and needed:
            self._needed[out[0]] = self._b.pure("and i1 {}, {}", *needed) if len(needed) > 1 else needed[0]
        return out

    def needed(self, c: Condition) -> str | None:
        """The bit without which the condition holds for no lane; None where there is no such bit."""
        if isinstance(c, bool):
            return None
        return self._needed.get(c[0]) if c[1] else c[0]

    def mask(self, c: Condition) -> str:
        """A condition that is not False as a vector of bits."""
        if c is True:
            return "splat (i1 true)"
        assert not isinstance(c, bool)
        return c[0] if c[1] else self._indices.spread(c[0], "i1")

    def implied(self, terms: Terms, constant: int) -> bool:
        """Whether `terms + constant < 0` follows from ranges or a fact."""
        unit = gcd(*terms.values()) if terms else 1
        top = constant // unit * unit
        return self._indices.interval(terms)[1] + top < 0 or self._known(terms, top)

    def _known(self, terms: Terms, constant: int) -> bool:
        if not self.facts:
            return False
        fact = self.facts.get(frozenset(terms.items()))
        return fact is not None and fact >= constant

    def _decide(self, p: Poly) -> tuple[Literal[True, False, None], Index]:
        """Whether p is below 0 in every lane, in none, or that is open."""
        index = self._indices.at(p)
        terms, constant, stride, lane_terms = index
        if self._over_sizes(p):
            # Intervals of integers say nothing of sizes. The lane is a variable here like any other.
            there = self._indices.resolved(p)
            if proven_negative(there):
                return True, index
            if proven_negative(-there - 1):
                return False, index
        if lane_terms:
            low, high = self._indices.range_of(index)
            return (True if high < 0 else False if low >= 0 else None), index
        # The sum of the terms is a multiple of their greatest common divisor, so that part of the constant
        # decides nothing.
        unit = gcd(*terms.values()) if terms else 1
        reach = stride * ((self._point.lanes or 1) - 1)
        top = (constant + max(0, reach)) // unit * unit
        low, high = self._indices.interval(terms)
        if high + top < 0 or self._known(terms, top):
            return True, index
        constant = constant // unit * unit if not stride else constant
        if low + constant + min(0, reach) >= 0:
            return False, index
        return None, Index(terms, constant, stride, lane_terms)

    def _over_sizes(self, p: Poly) -> bool:
        found = self._symbolic.get(p)
        if found is None:
            found = bool(p.sizes()) or any(v.extent.const is None for v in p.vars())
            self._symbolic[p] = found
        return found

    def _compare(self, index: Index) -> Value:
        terms, constant, stride, lane_terms = index
        if lane_terms:
            vector, element = self._indices.vector(index)
            kind = vector_type(element, self._point.lanes)
            return self._b.pure(f"icmp slt {kind} {{}}, zeroinitializer", vector), True
        if not stride:
            return self._b.pure("icmp slt i64 {}, 0", self._indices.total(terms, constant)), False
        # stride * lane < -(terms + constant)
        lanes = self._point.lanes
        if not terms:
            bits = ("true" if stride * n < -constant else "false" for n in range(lanes or 1))
            return "<" + ", ".join(f"i1 {b}" for b in bits) + ">", True
        limit_low, limit_high = (-x - constant for x in reversed(self._indices.interval(terms)))
        limit = self._indices.total({m: -c for m, c in terms.items()}, -constant)
        reach = abs(stride) * (lanes or 1)
        if reach < 2**31 <= max(abs(limit_low), abs(limit_high)):
            # What is beyond the reach of the lanes is so for all of them: comparing 32 bits suffices.
            limit, limit_low, limit_high = self._clamped(limit, reach), -reach, reach
        element = "i32" if max(abs(limit_low), abs(limit_high), reach) < 2**31 else "i64"
        steps = "<" + ", ".join(f"{element} {stride * n}" for n in range(lanes or 1)) + ">"
        spread = self._indices.splat(limit, element)
        return self._b.pure(f"icmp slt {vector_type(element, lanes)} {steps}, {{}}", spread), True

    def _clamped(self, limit: str | int, reach: int) -> str | int:
        if type(limit) is int:
            return max(-reach, min(limit, reach))
        for f, bound in (("@llvm.smin.i64", reach), ("@llvm.smax.i64", -reach)):
            self._b.declare("i64", f, "i64", "i64")
            limit = self._b.pure(f"call i64 {f}(i64 {{}}, i64 {bound})", limit)
        return limit

    def _bits(self, is_vector: bool) -> str:
        return vector_type("i1", self._point.lanes if is_vector else None)


def only_lane(where: Condition) -> int | None:
    """The lane of an immediate mask with one lane."""
    if isinstance(where, bool) or where[0][0] != "<":
        return None
    lanes = [n for n, bit in enumerate(where[0].split(",")) if "true" in bit]
    return lanes[0] if len(lanes) == 1 else None
