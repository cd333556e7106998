"""What is at least 1 where some variables have values: a divisor must be, and a size alone may be 0."""

from __future__ import annotations

from collections.abc import Iterable
from collections.abc import Set as AbstractSet

from .poly import Atom, Fn, Knob, Poly, Var
from .simplify import proven_negative


def positive_atoms(variables: Iterable[Var]) -> frozenset[Atom]:
    """The atoms that are at least 1 where each of the variables has a value, since its extent is: the factors
    of a product are, and what a ceiling division or a minimum is of."""
    found: set[Atom] = set()
    for v in variables:
        _collect(v.extent, found)
    return frozenset(found)


def _collect(p: Poly, found: set[Atom]) -> None:
    if len(p.terms) != 1:
        return
    ((monomial, coefficient),) = p.terms.items()
    if coefficient < 1:
        return
    for a in monomial:
        if a in found:
            continue
        found.add(a)
        if type(a) is not Fn:
            continue
        if a.op == "min":
            _collect(a.a, found)
            _collect(a.b, found)
        elif a.op in ("ceildiv", "floordiv") or a.b.const == 0:
            _collect(a.a, found)
        elif a.a.const == 0:
            _collect(a.b, found)


def is_positive(p: Poly, known: AbstractSet[Atom] = frozenset()) -> bool:
    """Whether p >= 1 where the atoms `known` are at least 1. False when it cannot be proved."""
    if proven_negative(-p):
        return True
    if any(c < 0 for c in p.terms.values()):
        return False
    return any(all(_is_positive(a, known) for a in m) for m in p.terms)


def _is_positive(a: Atom, known: AbstractSet[Atom]) -> bool:
    if a in known or type(a) is Knob:
        return True
    if type(a) is not Fn:
        return False
    match a.op:
        case "ceildiv":
            return is_positive(a.a, known)
        case "min":
            return is_positive(a.a, known) and is_positive(a.b, known)
        case "max":
            return is_positive(a.a, known) or is_positive(a.b, known)
    return False
