"""Index polynomials at a point of the loops: their terms, their ranges and the integers they become."""

from __future__ import annotations

from math import gcd
from typing import NamedTuple

from ...arith import Atom, Fn, Monomial, Poly, Size, Var, floor_div, maximum, minimum, poly, substitute
from .builder import Builder
from .dtypes import vector_type
from .point import Point

Terms = dict[Monomial, int]
#: No size is larger.
LARGEST = 2**63 - 1


class Index(NamedTuple):
    """terms + constant + stride * lane + lane_terms, in which the lane stands in a division or a product."""

    terms: Terms
    constant: int
    stride: int
    lane_terms: Terms


class Indices:
    """Evaluates index polynomials. Scalars are i64; vectors of indices are i32 where they fit, else i64."""

    def __init__(self, builder: Builder, point: Point) -> None:
        self._b = builder
        self._point = point
        self._spans: dict[Atom, tuple[int, int]] = {}

    def at(self, p: Poly) -> Index:
        """The polynomial with the unrolled loops' values put in, apart by the lane."""
        unrolled, lane = self._point.unrolled, self._point.lane
        terms: Terms = {}
        lane_terms: Terms = {}
        constant = stride = 0
        for m, c in p.terms.items():
            if not m:
                constant += c
                continue
            a = m[0]
            if len(m) == 1 and type(a) is Var:
                if a in unrolled:
                    constant += c * unrolled[a]
                elif a is lane:
                    stride += c
                else:
                    _add(terms, m, c)
                continue
            if not any(self._moves(x) for x in m):
                _add(terms, m, c)
                continue
            for n, x in self._resolved(Poly({m: c})).terms.items():
                if not n:
                    constant += x
                elif lane is not None and any(_has(y, lane) for y in n):
                    if len(n) == 1 and n[0] is lane:
                        stride += x
                    else:
                        _add(lane_terms, n, x)
                else:
                    _add(terms, n, x)
        return Index(terms, constant, stride, lane_terms)

    def total(self, terms: Terms, constant: int = 0) -> str | int:
        """The sum as an i64 value, or as an integer when nothing varies; innermost terms are added last."""
        pure = self._b.pure
        parts: list[tuple[int, str | int, int]] = []
        for m, c in terms.items():
            v = self._atom(m[0])
            for a in m[1:]:
                v = pure("mul nsw i64 {}, {}", v, self._atom(a))
            parts.append((self._b.depth(v) if type(v) is str else 0, v, c))
        if len(parts) > 1:
            parts.sort(key=_first)
        sum_: str | int | None = None
        for _, v, c in parts:
            t = v if c == 1 else pure("mul nsw i64 {}, {}", v, c)
            sum_ = t if sum_ is None else pure("add nsw i64 {}, {}", sum_, t)
        if sum_ is None:
            return constant
        return pure("add nsw i64 {}, {}", sum_, constant) if constant else sum_

    def vector(self, index: Index) -> tuple[str, str]:
        """The value in each lane as a vector: (name, element type)."""
        low, high = self.range_of(index)
        for m in index.lane_terms:
            for a in m:
                x, y = self._reach(a)
                low, high = min(low, x), max(high, y)
        element = "i32" if low >= -(2**31) and high < 2**31 else "i64"
        return self._vector_sum(index, element), element

    def range_of(self, index: Index) -> tuple[int, int]:
        """(lowest, highest) value over every lane and iteration."""
        low, high = self.interval(index.terms)
        lane_low, lane_high = self.interval(index.lane_terms)
        reach = index.stride * ((self._point.lanes or 1) - 1)
        return (
            low + lane_low + index.constant + min(reach, 0),
            high + lane_high + index.constant + max(reach, 0),
        )

    def interval(self, terms: Terms) -> tuple[int, int]:
        """(lowest, highest) value of a sum over the ranges of its variables."""
        low = high = 0
        for m, c in terms.items():
            x = y = 1
            for a in m:
                p, q = self.span(a)
                x, y = x * p, y * q
            low, high = (low + c * x, high + c * y) if c > 0 else (low + c * y, high + c * x)
        return low, high

    def span(self, a: Atom) -> tuple[int, int]:
        """(lowest, highest) value of an atom over the ranges of its variables."""
        found = self._spans.get(a)
        if found is None:
            if type(a) is Var:
                found = 0, max((a.extent.const or self._range(a.extent)[1]) - 1, 0)
            elif type(a) is Size:
                found = 0, LARGEST
            else:
                assert type(a) is Fn
                (x0, x1), (y0, y1) = self._range(a.a), self._range(a.b)
                if a.op == "floordiv":
                    found = x0 // max(y1, 1), x1 // max(y0, 1)
                elif a.op == "ceildiv":
                    found = -(-x0 // max(y1, 1)), -(-x1 // max(y0, 1))
                else:
                    pick = min if a.op == "min" else max
                    found = pick(x0, y0), pick(x1, y1)
            self._spans[a] = found
        return found

    def _range(self, p: Poly) -> tuple[int, int]:
        low, high = self.interval({m: c for m, c in p.terms.items() if m})
        constant = p.terms.get((), 0)
        return low + constant, high + constant

    def _reach(self, a: Atom) -> tuple[int, int]:
        """(lowest, highest) value that computing the atom passes through."""
        low, high = self.span(a)
        if type(a) is Fn:
            for p in (a.a, a.b):
                ranges = [self._range(p), *(self._reach(x) for x in p.atoms())]
                low = min(low, *(x for x, _ in ranges))
                high = max(high, *(y for _, y in ranges))
        return low, high

    def _moves(self, a: Atom) -> bool:
        """Whether the atom changes when the unrolled loops' values are put in or holds the lane."""
        if type(a) is Fn:
            return self._point.lane in a.vars or any(v in self._point.unrolled for v in a.vars)
        return a is self._point.lane or a in self._point.unrolled

    def resolved(self, p: Poly) -> Poly:
        """The polynomial with the unrolled loops' values put in."""
        values: dict[Atom, Poly] = {v: poly(x) for v, x in self._point.unrolled.items()}
        return substitute(p, values)

    def _resolved(self, p: Poly) -> Poly:
        p = self.resolved(p)
        lane = self._point.lane
        return p if lane is None else _without_lane(p, lane, self._point.lanes or 1)

    def _atom(self, a: Atom) -> str | int:
        if type(a) is not Fn:
            return self._point.names[a]
        x, y = self.scalar(a.a), self.scalar(a.b)
        pure = self._b.pure
        if a.op in ("floordiv", "ceildiv"):
            y = self._divisor(y)
        if a.op == "floordiv":
            return pure("udiv i64 {}, {}", x, y)
        if a.op == "ceildiv":
            up = pure("add nsw i64 {}, {}", x, y - 1 if type(y) is int else pure("sub i64 {}, 1", y))
            return pure("udiv i64 {}, {}", up, y)
        function = f"@llvm.s{a.op}.i64"
        self._b.declare("i64", function, "i64", "i64")
        return pure(f"call i64 {function}(i64 {{}}, i64 {{}})", x, y)

    def _divisor(self, y: str | int) -> str | int:
        """At least 1: a size may be 0 where the division is made before the empty loop that it belongs to."""
        if type(y) is int:
            return y
        self._b.declare("i64", "@llvm.umax.i64", "i64", "i64")
        return self._b.pure("call i64 @llvm.umax.i64(i64 {}, i64 1)", y)

    def scalar(self, p: Poly) -> str | int:
        """The polynomial as an i64 value, or as an integer when nothing varies."""
        index = self.at(p)
        return self.total(index.terms, index.constant)

    def _vector_sum(self, index: Index, element: str) -> str:
        lanes = self._point.lanes
        assert lanes is not None
        kind, pure = vector_type(element, lanes), self._b.pure
        base = self.splat(self.total(index.terms, index.constant), element)
        if index.stride:
            steps = "<" + ", ".join(f"{element} {index.stride * n}" for n in range(lanes)) + ">"
            base = pure(f"add {kind} {{}}, {steps}", base)
        for m, c in index.lane_terms.items():
            product = self._vector_atom(m[0], element)
            for a in m[1:]:
                product = pure(f"mul {kind} {{}}, {{}}", product, self._vector_atom(a, element))
            if c != 1:
                product = pure(f"mul {kind} {{}}, splat ({element} {c})", product)
            base = pure(f"add {kind} {{}}, {{}}", base, product)
        return base

    def _vector_atom(self, a: Atom, element: str) -> str:
        lanes, lane = self._point.lanes, self._point.lane
        if a is lane:
            return self._vector_sum(Index({}, 0, 1, {}), element)
        if type(a) is not Fn or lane not in a.vars:
            return self.splat(self._atom(a), element)
        x, y = self._vector_sum(self.at(a.a), element), self._vector_sum(self.at(a.b), element)
        kind, pure = vector_type(element, lanes), self._b.pure
        if a.op in ("floordiv", "ceildiv") and a.b.const is None:
            y = self.splat(self._divisor(self.scalar(a.b)), element)
        if a.op == "floordiv":
            return pure(f"udiv {kind} {{}}, {{}}", x, y)
        if a.op == "ceildiv":
            less_one = pure(f"add {kind} {{}}, splat ({element} -1)", y)
            return pure(f"udiv {kind} {{}}, {{}}", pure(f"add {kind} {{}}, {{}}", x, less_one), y)
        is_less = pure(f"icmp slt {kind} {{}}, {{}}", x, y)
        x, y = (x, y) if a.op == "min" else (y, x)
        return pure(f"select {vector_type('i1', lanes)} {{}}, {kind} {{}}, {kind} {{}}", is_less, x, y)

    def splat(self, v: str | int, element: str) -> str:
        """An i64 value or an integer in every lane, as `element`."""
        if type(v) is int:
            return f"splat ({element} {v})"
        x = v if element == "i64" else self._b.pure(f"trunc i64 {{}} to {element}", v)
        return self.spread(x, element)

    def spread(self, value: str | int, element: str) -> str:
        """A value of the element's type in every lane."""
        kind = vector_type(element, self._point.lanes)
        one = self._b.pure(f"insertelement {kind} poison, {element} {{}}, i64 0", value)
        mask = vector_type("i32", self._point.lanes)
        return self._b.pure(f"shufflevector {kind} {{}}, {kind} poison, {mask} zeroinitializer", one)


def _add(terms: Terms, m: Monomial, c: int) -> None:
    """Adds c * m; terms that cancel each other vanish."""
    total = terms.get(m, 0) + c
    if total:
        terms[m] = total
    else:
        del terms[m]


def _first(part: tuple[int, str | int, int]) -> int:
    return part[0]


def _has(a: Atom, v: Var) -> bool:
    return a is v or (type(a) is Fn and v in a.vars)


def _without_lane(p: Poly, lane: Var, lanes: int) -> Poly:
    """Divisions in which the lane changes nothing are freed of it: (16*i + lane) // 32 is (16*i) // 32."""
    if not any(type(a) is Fn and lane in a.vars for a in p.atoms()):
        return p
    out = poly(0)
    for m, c in p.terms.items():
        term = poly(c)
        for a in m:
            term = term * (_free(a, lane, lanes) if type(a) is Fn and lane in a.vars else poly(a))
        out = out + term
    return out


def _free(a: Fn, lane: Var, lanes: int) -> Poly:
    x, y = _without_lane(a.a, lane, lanes), _without_lane(a.b, lane, lanes)
    divisor = y.const
    if a.op == "floordiv":
        stride = x.coefficient(lane)
        alone = lane not in (x - poly(lane) * stride).vars()
        if divisor is not None and alone and stride > 0:
            unit = gcd(divisor, *(c for m, c in x.terms.items() if m and m != (lane,)))
            if x.terms.get((), 0) % unit + stride * (lanes - 1) < unit:
                return floor_div(substitute(x, {lane: poly(0)}), y, sure=True)
        return floor_div(x, y, sure=True)
    if a.op == "ceildiv":
        return poly(a)
    return minimum(x, y, sure=True) if a.op == "min" else maximum(x, y, sure=True)
