"""What index maps are made of: indices that a function computes with; the same as plain values, as text."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, NoReturn

from ..arith import Atom, Fn, NotProvable, Poly, Var, floor_div, poly

#: What a person writes: indices in, indices out.
MapFunction = Callable[..., Any]
#: The same as plain values: for each output an integer, or (coefficient, *atoms) terms; an atom is the number
#: of an input, or ("floordiv", a, b).
Plain = Any

#: Larger factors have no JSON form.
MAX_NUMBER = 2**31


class MapError(ValueError):
    """A function that is no index map, or not one to one: the reason."""


@dataclass(frozen=True, slots=True, eq=False)
class Index:
    """An index that a map's function is given: takes +, -, * and, with positive integers, // and %."""

    value: Poly

    def __add__(self, other: object) -> Index:
        return Index(self.value + operand(other, "+"))

    def __sub__(self, other: object) -> Index:
        return Index(self.value - operand(other, "-"))

    def __rsub__(self, other: object) -> Index:
        return Index(operand(other, "-") - self.value)

    def __mul__(self, other: object) -> Index:
        factor = operand(other, "*")
        if factor.const is None and self.value.const is None:
            raise MapError("an index is multiplied by integers only")
        return Index(self.value * factor)

    def __floordiv__(self, other: object) -> Index:
        return Index(self._divided(_divisor(other, "//")))

    def __mod__(self, other: object) -> Index:
        by = _divisor(other, "%")
        return Index(self.value - self._divided(by) * by)

    def __neg__(self) -> Index:
        return Index(-self.value)

    __radd__ = __add__
    __rmul__ = __mul__

    def _refuse(self, *others: object) -> NoReturn:
        raise MapError("an index map takes +, -, * and, with positive integers, // and % of its indices")

    def __bool__(self) -> bool:
        raise MapError("an index has no value of its own; a map does the same with all indices")

    __truediv__ = __rtruediv__ = __pow__ = __rpow__ = __abs__ = _refuse
    __lt__ = __le__ = __gt__ = __ge__ = __eq__ = __ne__ = _refuse
    __and__ = __or__ = __xor__ = __lshift__ = __rshift__ = __invert__ = _refuse
    __hash__ = object.__hash__

    def _divided(self, by: int) -> Poly:
        inner = self.value.atom
        if type(inner) is Fn and inner.op == "floordiv" and inner.b.const is not None:
            # floor(floor(a / b) / c) = floor(a / (b * c))
            return Index(inner.a)._divided(inner.b.const * by)
        try:
            return floor_div(self.value, by)
        except NotProvable as e:
            raise MapError(str(e)) from None


def operand(x: object, sign: str) -> Poly:
    """An index or an integer as a polynomial; `sign` says where it stands."""
    if isinstance(x, Index):
        return x.value
    if type(x) is int and abs(x) <= MAX_NUMBER:
        return poly(x)
    raise MapError(f"an index map computes with indices and integers up to 2**31, got {sign} {x!r}")


def _divisor(x: object, sign: str) -> int:
    if type(x) is not int or not 1 <= x <= MAX_NUMBER:
        raise MapError(f"an index is divided by positive integers up to 2**31, got {sign} {x!r}")
    return x


def names_for(rank: int) -> list[str]:
    """The names of a map's indices, as a person would write them."""
    return list("ijklm"[:rank]) if rank <= 5 else [f"i{n}" for n in range(rank)]


def plain_of(p: Poly, number: Mapping[Atom, int]) -> Plain:
    """A polynomial over numbered inputs as plain values."""
    if p.const is not None:
        return p.const

    def atom(a: Atom) -> Plain:
        if isinstance(a, Fn):
            return (a.op, plain_of(a.a, number), plain_of(a.b, number))
        return number[a]

    return tuple(sorted(((c, *sorted((atom(a) for a in m), key=repr)) for m, c in p.terms.items()), key=repr))


def function_of(plain: Plain) -> MapFunction:
    """The function that a map's plain values describe. Raises MapError when it is called with too few
    indices."""

    def value(p: Plain, indices: tuple[Index, ...]) -> Index:
        if isinstance(p, int):
            return Index(poly(p))
        total = Index(poly(0))
        for coefficient, *atoms in p:
            term = Index(poly(coefficient))
            for a in atoms:
                term = term * atom(a, indices)
            total = total + term
        return total

    def atom(a: Plain, indices: tuple[Index, ...]) -> Index:
        if not isinstance(a, int):
            return value(a[1], indices) // value(a[2], indices).value.const
        if not 0 <= a < len(indices):
            raise MapError(f"the index map takes index {a}, but there are {len(indices)}")
        return indices[a]

    return lambda *indices: [value(p, indices) for p in plain]


def lambda_text(plain: Plain) -> str:
    """The map as a person would write it: `lambda i, j: (i // 4, j, i % 4)`."""
    rank = _rank(plain)
    inputs = [Var(n, MAX_NUMBER) for n in names_for(rank)]
    outputs = [operand(o, "the output") for o in function_of(plain)(*(Index(poly(v)) for v in inputs))]
    text = ", ".join(map(spell, outputs))
    return f"lambda {', '.join(v.name for v in inputs)}: ({text}{',' if len(outputs) == 1 else ''})"


def _rank(plain: Plain) -> int:
    """One more than the largest number of an input."""
    if isinstance(plain, int):
        return 0
    return max((_rank_of_poly(p) for p in plain), default=0)


def _rank_of_poly(p: Plain) -> int:
    if isinstance(p, int):
        return 0
    atoms = [a for term in p for a in term[1:]]
    return max(
        (a + 1 if isinstance(a, int) else max(_rank_of_poly(a[1]), _rank_of_poly(a[2])) for a in atoms),
        default=0,
    )


def spell(p: Poly) -> str:
    """A polynomial, with remainders written as such."""
    parts: list[str] = []
    for m, c in list(p.terms.items()):
        a = m[0] if len(m) == 1 else None
        if type(a) is not Fn or a.op != "floordiv" or not a.b.const or c % a.b.const:
            continue
        k = -c // a.b.const
        rest = p - (a.a - poly(a) * a.b) * k
        if k > 0 and len(rest.terms) < len(p.terms) - 1 + (a.a.const is not None):
            inner = repr(a.a) if a.a.atom is not None and type(a.a.atom) is Var else f"({spell(a.a)})"
            text = f"{inner} % {a.b!r}"
            parts.append(text if k == 1 else f"{text} * {k}")
            p = rest
    if p.terms or not parts:
        parts.insert(0, repr(p))
    return " + ".join(parts)
