"""How large the integers are that computing a polynomial passes through."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from .poly import Atom, Fn, Poly, Var

#: What kernels compute indices in: signed integers of 64 bits.
LARGEST = 2**63 - 1


def reach(p: Poly, of: Mapping[Atom, int] = MappingProxyType({})) -> int:
    """A bound of the absolute values that p, its terms, and what its functions are of may have, whichever way
    the terms are added. Of sizes and knobs, which are not known, 1 is counted.

    `of`: what is put in the place of a variable passes through values up to this; p is then reckoned with its
    products multiplied out, which is never done: there may be millions of them.
    """
    return _reach(p, of)[1]


def _reach(p: Poly, of: Mapping[Atom, int]) -> tuple[int, int]:
    """(of the value, of the value and all its parts)"""
    value = most = 0
    for m, c in p.terms.items():
        term = abs(c)
        for a in m:
            x, part = _atom(a, of)
            term, most = term * x, max(most, part)
        value += term
    return value, max(value, most)


def _atom(a: Atom, of: Mapping[Atom, int]) -> tuple[int, int]:
    if (given := of.get(a)) is not None:
        return given, given
    if type(a) is Var:
        last = max((a.extent.const or _reach(a.extent, of)[0]) - 1, 0)
        return last, last
    if type(a) is not Fn:
        return 1, 1
    (x, part_x), (y, part_y) = _reach(a.a, of), _reach(a.b, of)
    part = max(part_x, part_y)
    if a.op in ("min", "max"):
        return max(x, y), part
    by = a.b.const
    if by is None:
        return x, part
    # A ceiling division adds by - 1 first.
    return -(-x // by), max(part, x + by - 1 if a.op == "ceildiv" else x)
