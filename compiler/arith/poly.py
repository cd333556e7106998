"""Integer index expressions in polynomial normal form.

A `Poly` is a sum of integer coefficients times monomials of atoms. An atom is a `Var` (a loop or block
iteration variable that knows its own extent), a `Knob` (a tunable integer, at least 1), a `Size` (an integer
known when the kernel is called) or a `Fn` (an opaque floor division, ceiling division, minimum or maximum).
Every atom is at least 0; proofs of sign rely on it, and the constructors in `simplify` keep it so.

A size may be 0. A proof about a variable is one about the values that it takes: where its extent is 0 there
are none, and nothing is claimed. So `i - n` is below 0 for `i` in `range(n)`, and `0 - n` is not.

The form is normal: equal polynomials have equal terms, products of tile factors cancel, and the extent
`(a-1)*b + (b-1) + 1` is `a*b` without a rewriting system.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Mapping
from typing import Literal

FnOp = Literal["floordiv", "ceildiv", "min", "max"]
Monomial = tuple["Atom", ...]

_serial = itertools.count()


class Atom:
    """What a monomial is made of; ordered by `key`, so that a product has one spelling."""

    __slots__ = ("_hash", "key")

    key: tuple[object, ...]
    _hash: int

    def __hash__(self) -> int:
        return self._hash

    def __eq__(self, other: object) -> bool:
        return self is other or (isinstance(other, Atom) and self.key == other.key)

    def __lt__(self, other: Atom) -> bool:
        return self.key < other.key


class Var(Atom):
    """A loop or iteration variable: `0 <= var < extent`. Compared by identity; the name is for printing."""

    __slots__ = ("extent", "name")

    def __init__(self, name: str, extent: IntoPoly) -> None:
        self.name = name
        self.extent: Poly = poly(extent)
        number = next(_serial)
        self.key = (0, number)
        self._hash = hash((0, number))

    def __repr__(self) -> str:
        return self.name


class Knob(Atom):
    """A tunable integer with a finite domain of positive values, in ascending order."""

    __slots__ = ("domain", "name")

    def __init__(self, name: str, domain: Iterable[int]) -> None:
        self.name = name
        self.domain: tuple[int, ...] = tuple(sorted(set(domain)))
        if not self.domain or self.domain[0] < 1:
            raise ValueError(f"knob {name!r}: the domain must hold positive integers, got {self.domain}")
        number = next(_serial)
        self.key = (0, number)
        self._hash = hash((0, number))

    def __repr__(self) -> str:
        return self.name


class Size(Atom):
    """An integer, at least 0, that is known when the kernel is called: a dimension of an array. Compared by
    identity; the name is for printing, and two sizes of one program have different ones."""

    __slots__ = ("name",)

    def __init__(self, name: str) -> None:
        self.name = name
        number = next(_serial)
        self.key = (0, number)
        self._hash = hash((0, number))

    def __repr__(self) -> str:
        return self.name


class Fn(Atom):
    """An opaque, non-negative function of two polynomials. Made by `simplify` only."""

    __slots__ = ("a", "b", "op", "vars")

    def __init__(self, op: FnOp, a: Poly, b: Poly) -> None:
        self.op: FnOp = op
        self.a = a
        self.b = b
        self.vars: frozenset[Var] = a.vars() | b.vars()
        self.key = (1, op, a.key, b.key)
        # Of integers only: hashes of strings differ from process to process, and the order of sets with them.
        self._hash = hash((1, len(op), a, b))

    def __repr__(self) -> str:
        return repr(poly(self))


class Poly:
    """An immutable polynomial with integer coefficients over atoms."""

    __slots__ = ("_hash", "_key", "_vars", "terms")

    def __init__(self, terms: dict[Monomial, int]) -> None:
        self.terms = terms
        self._vars: frozenset[Var] | None = None
        self._key: tuple[object, ...] | None = None
        self._hash: int | None = None

    @property
    def key(self) -> tuple[object, ...]:
        """An ordering key, stable within one process."""
        if self._key is None:
            self._key = tuple(sorted((tuple(a.key for a in m), c) for m, c in self.terms.items()))
        return self._key

    def __hash__(self) -> int:
        if self._hash is None:
            self._hash = hash(frozenset(self.terms.items()))
        return self._hash

    def __eq__(self, other: object) -> bool:
        if isinstance(other, Poly):
            return self.terms == other.terms
        return isinstance(other, int | Atom) and self.terms == poly(other).terms

    @property
    def const(self) -> int | None:
        """The integer, or None when the polynomial is not a constant."""
        terms = self.terms
        if not terms:
            return 0
        return terms.get(()) if len(terms) == 1 else None

    @property
    def atom(self) -> Atom | None:
        """The atom, when the polynomial is just one atom."""
        if len(self.terms) == 1:
            ((monomial, coefficient),) = self.terms.items()
            if coefficient == 1 and len(monomial) == 1:
                return monomial[0]
        return None

    def __add__(self, other: IntoPoly) -> Poly:
        right = other if type(other) is Poly else poly(other)
        if not right.terms:
            return self
        if not self.terms:
            return right
        out = dict(self.terms)
        for m, c in right.terms.items():
            total = out.get(m, 0) + c
            if total:
                out[m] = total
            else:
                del out[m]
        return Poly(out)

    def __mul__(self, other: IntoPoly) -> Poly:
        right = other if type(other) is Poly else poly(other)
        factors = right.terms
        if not factors or (len(factors) == 1 and () in factors):
            c = factors.get((), 0)
            return self if c == 1 else Poly({m: a * c for m, a in self.terms.items()} if c else {})
        out: dict[Monomial, int] = {}
        for m, a in self.terms.items():
            for n, b in factors.items():
                k = tuple(sorted(m + n)) if m and n else m + n
                total = out.get(k, 0) + a * b
                if total:
                    out[k] = total
                else:
                    out.pop(k, None)
        return Poly(out)

    def __neg__(self) -> Poly:
        return Poly({m: -a for m, a in self.terms.items()})

    def __sub__(self, other: IntoPoly) -> Poly:
        right = other if type(other) is Poly else poly(other)
        return self + Poly({m: -a for m, a in right.terms.items()}) if right.terms else self

    def __rsub__(self, other: IntoPoly) -> Poly:
        return poly(other) - self

    __radd__ = __add__
    __rmul__ = __mul__

    def atoms(self) -> set[Atom]:
        """The atoms of the monomials; what stands inside a `Fn` is not entered."""
        return {a for m in self.terms for a in m}

    def vars(self) -> frozenset[Var]:
        """Every variable inside, also under a `Fn`."""
        if self._vars is None:
            found: set[Var] = set()
            for m in self.terms:
                for a in m:
                    if type(a) is Var:
                        found.add(a)
                    elif type(a) is Fn:
                        found |= a.vars
            self._vars = frozenset(found)
        return self._vars

    def clamped_vars(self) -> frozenset[Var]:
        """Every variable that stands inside of a minimum or maximum: two of its values may give one value."""
        found: set[Var] = set()
        for a in self.atoms():
            if type(a) is Fn:
                found |= a.vars if a.op in ("min", "max") else a.a.clamped_vars() | a.b.clamped_vars()
        return frozenset(found)

    def knobs(self) -> frozenset[Knob]:
        """Every knob inside, also under a `Fn` (not in the extents of variables)."""
        found: set[Knob] = set()
        for a in self.atoms():
            if type(a) is Knob:
                found.add(a)
            elif type(a) is Fn:
                found |= a.a.knobs() | a.b.knobs()
        return frozenset(found)

    def sizes(self) -> tuple[Size, ...]:
        """Every size inside, also under a `Fn` (not in the extents of variables), in a fixed order."""
        found: set[Size] = set()
        for a in self.atoms():
            if type(a) is Size:
                found.add(a)
            elif type(a) is Fn:
                found.update(a.a.sizes(), a.b.sizes())
        return tuple(sorted(found))

    def coefficient(self, atom: Atom) -> int:
        """The coefficient of the monomial that is just `atom`."""
        return self.terms.get((atom,), 0)

    def __repr__(self) -> str:
        from .spell import spelled

        return spelled(self)


IntoPoly = Poly | Atom | int


def poly(x: IntoPoly) -> Poly:
    """`x` as a polynomial."""
    if type(x) is Poly:
        return x
    if isinstance(x, Atom):
        return Poly({(x,): 1})
    if isinstance(x, Poly):
        return x
    return Poly({(): int(x)} if x else {})


def product(factors: Iterable[IntoPoly]) -> Poly:
    """The product of all factors; 1 for none."""
    out = poly(1)
    for f in factors:
        out = out * f
    return out


Substitution = Mapping[Atom, Poly]
