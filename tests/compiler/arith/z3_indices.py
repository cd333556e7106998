"""Random index expressions, each as a polynomial and as a z3 term that knows nothing of polynomials, and what
proves claims about them."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable, Sequence

import pytest

from tilewright.compiler.arith import (
    Fn,
    Knob,
    NotProvable,
    Poly,
    Size,
    Var,
    ceil_div,
    floor_div,
    floor_mod,
    maximum,
    minimum,
    not_negative,
    poly,
)

z3 = pytest.importorskip("z3")

#: Of one query, in z3's own unit, so that what is decided does not depend on the machine: some tenths of a
#: second.
EFFORT = 1_000_000
#: Where z3 does not decide, as many random values are tried.
POINTS = 40


class Space:
    """Variables with extents and knobs, as atoms and as z3 integers."""

    def __init__(self, rng: random.Random, knobs: int = 0) -> None:
        extents = [rng.choice([1, 2, 3, 4, 7, 8, 16, 33, 100, 1000]) for _ in range(3)]
        self.vars = [Var(name, n) for name, n in zip("xyz", extents, strict=True)]
        self.knobs = [Knob(f"k{n}", rng.sample([1, 2, 3, 4, 8, 64], 3)) for n in range(knobs)]
        self.atoms = [*self.vars, *self.knobs]
        self.terms = {a: z3.Int(repr(a)) for a in self.atoms}
        self.ranges = [z3.And(t >= 0, t < a.extent.const) for a, t in self.terms.items() if type(a) is Var]
        self.ranges += [z3.Or([self.terms[k] == n for n in k.domain]) for k in self.knobs]

    def term(self, p: Poly, terms=None):
        """The polynomial as a z3 term."""
        terms = self.terms if terms is None else terms
        total = z3.IntVal(0)
        for m, c in p.terms.items():
            factor = z3.IntVal(c)
            for a in m:
                factor = factor * (self.function(a, terms) if type(a) is Fn else terms[a])
            total = total + factor
        return total

    def function(self, f: Fn, terms):
        a, b = self.term(f.a, terms), self.term(f.b, terms)
        match f.op:
            case "floordiv":
                return quotient(a, b)
            case "ceildiv":
                return -quotient(-a, b)
            case "min":
                return z3.If(a <= b, a, b)
        return z3.If(a >= b, a, b)


def quotient(a, b):
    """Floor division by something positive: z3's own is the Euclidean one, which is the same there."""
    return a / b


class Checker:
    """Proves claims under the ranges of a space; counts what z3 leaves open, and tries values there."""

    def __init__(self) -> None:
        self.seen: Counter[str] = Counter()

    def holds(self, space: Space, claim, what: object, more=()) -> None:
        """Fails where the claim is wrong for some values of the space under the conditions `more`."""
        answer = self.holds_under([*space.ranges, *more], claim, what)
        if answer == z3.unknown and not more and all(type(a) is not Size for a in space.terms):
            rng = random.Random(0)
            for _ in range(POINTS):
                at = [(t, z3.IntVal(rng.choice(values_of(a)))) for a, t in space.terms.items()]
                assert z3.is_true(z3.simplify(z3.substitute(claim, *at))), f"{what}\nis wrong at {at}"

    def holds_under(self, ranges, claim, what: object):
        """Fails where the claim is wrong under the conditions."""
        solver = z3.Solver()
        solver.set("rlimit", EFFORT)
        solver.add(*ranges, z3.Not(claim))
        answer = solver.check()
        self.seen[str(answer)] += 1
        if answer == z3.sat:
            pytest.fail(f"{what}\nis wrong at {solver.model()}")
        return answer

    def decided(self, least: int) -> None:
        """Fails where fewer than `least` claims were proved, or more than a quarter was left open."""
        assert self.seen["unsat"] >= least, self.seen
        assert self.seen["unknown"] <= 0.25 * sum(self.seen.values()), self.seen


def values_of(a: Var | Knob) -> Sequence[int]:
    """What the atom may be."""
    return range(a.extent.const) if type(a) is Var else a.domain


def affine(rng: random.Random, space: Space, atoms=None):
    """A sum of multiples: (polynomial, z3 term)."""
    p, t = poly(rng.randint(-20, 20)), None
    t = z3.IntVal(p.const)
    for a in rng.sample(atoms or space.vars, rng.randint(1, 3)):
        c = rng.choice([-16, -7, -3, -2, -1, 1, 1, 2, 3, 4, 5, 8, 24])
        p, t = p + poly(a) * c, t + space.terms[a] * c
    return p, t


def expression(rng: random.Random, space: Space, depth: int):
    """A random nest of floor, ceiling, remainder, minimum and maximum: (polynomial, z3 term)."""
    if depth == 0:
        return affine(rng, space)
    p, t = expression(rng, space, depth - 1)
    q, u = affine(rng, space)
    n = rng.choice([2, 3, 4, 5, 6, 7, 8, 12, 20, 24])
    c = rng.choice([-3, -1, 1, 2, 4])
    try:
        match rng.choice(["floor", "floor", "mod", "mod", "ceil", "min", "max", "nest"]):
            case "floor":
                return floor_div(p, n) * c + q, quotient(t, n) * c + u
            case "mod":
                return floor_mod(p, n) * c + q, (t - quotient(t, n) * n) * c + u
            case "ceil":
                return ceil_div(maximum(p, 0), n) * c + q, -quotient(-z3.If(t > 0, t, 0), n) * c + u
            case "min":
                return minimum(p, q) * c, z3.If(t <= u, t, u) * c
            case "max":
                return maximum(p, q) * c, z3.If(t >= u, t, u) * c
            case "nest":
                inner, term = floor_mod(p, n), t - quotient(t, n) * n
                m = rng.choice([2, 3, 4, 10])
                return floor_mod(inner, m) + q, term - quotient(term, m) * m + u
    except NotProvable:
        return p, t
    raise AssertionError


def run(seeds: range, check: Callable[[random.Random, Checker], None], share: float = 0.8) -> None:
    checker = Checker()
    for seed in seeds:
        check(random.Random(seed), checker)
    checker.decided(int(len(seeds) * share))


class Sized(Space):
    """Variables whose extents are expressions over two sizes."""

    def __init__(self, rng: random.Random) -> None:
        self.sizes = [Size("n"), Size("m")]
        self.knobs = []
        self.terms = {s: z3.Int(s.name) for s in self.sizes}
        self.ranges = [t >= 0 for t in self.terms.values()]
        self.vars = []
        n = rng.choice(self.sizes)
        self.tile = rng.choice([2, 3, 4, 8])
        extents = [
            poly(n),
            ceil_div(n, self.tile),
            poly(self.tile),
            poly(rng.choice(self.sizes)) * rng.randint(1, 3) + rng.randint(0, 2),
            not_negative(poly(n) - rng.randint(1, 3)),
            floor_div(poly(n) * 2 + 1, self.tile),
        ]
        for k, e in enumerate(extents):
            v = Var(f"v{k}", e)
            self.vars.append(v)
            self.terms[v] = t = z3.Int(v.name)
            self.ranges.append(z3.And(t >= 0, t < self.term(e)))
        self.atoms = list(self.terms)
