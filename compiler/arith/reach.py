"""How large the integers are that computing a polynomial passes through."""

from __future__ import annotations

from .poly import Atom, Fn, Poly, Var

#: What kernels compute indices in: signed integers of 64 bits.
LARGEST = 2**63 - 1


def reach(p: Poly) -> int:
    """A bound of the absolute values that p, its terms, and what its functions are of may have, whichever way
    the terms are added. Of sizes and knobs, which are not known, 1 is counted."""
    return _reach(p)[1]


def _reach(p: Poly) -> tuple[int, int]:
    """(of the value, of the value and all its parts)"""
    value = most = 0
    for m, c in p.terms.items():
        term = abs(c)
        for a in m:
            x, part = _atom(a)
            term, most = term * x, max(most, part)
        value += term
    return value, max(value, most)


def _atom(a: Atom) -> tuple[int, int]:
    if type(a) is Var:
        last = max((a.extent.const or _reach(a.extent)[0]) - 1, 0)
        return last, last
    if type(a) is not Fn:
        return 1, 1
    (x, part_x), (y, part_y) = _reach(a.a), _reach(a.b)
    part = max(part_x, part_y)
    if a.op in ("min", "max"):
        return max(x, y), part
    by = a.b.const
    if by is None:
        return x, part
    # A ceiling division adds by - 1 first.
    return -(-x // by), max(part, x + by - 1 if a.op == "ceildiv" else x)
