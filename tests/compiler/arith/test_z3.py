"""Index arithmetic proved: what the constructors make of an expression is equal to it for all values, by z3.

Each random expression is built twice, as a polynomial and as a z3 term that knows nothing of polynomials.
"""

from __future__ import annotations

import random
from contextlib import suppress

import pytest

from tilewright.compiler.arith import (
    Fn,
    NotProvable,
    Var,
    ends,
    floor_div,
    floor_mod,
    is_injective,
    is_positive,
    lower,
    maximum,
    minimum,
    poly,
    positive_atoms,
    proven_negative,
    reach,
    region,
    substitute,
    upper,
)
from tilewright.compiler.codegen.llvm.indices import _without_lane

from .z3_indices import Checker, Sized, Space, affine, expression, quotient, run

z3 = pytest.importorskip("z3")

FAST, LONG = range(16), range(16, 1500)


def is_equal_to_what_it_was_made_of(rng: random.Random, checker: Checker) -> None:
    space = Space(rng)
    p, t = expression(rng, space, rng.randint(1, 3))
    checker.holds(space, space.term(p) == t, p)


def is_never_below_zero_inside_of_a_function(rng: random.Random, checker: Checker) -> None:
    space = Space(rng)
    p, _ = expression(rng, space, rng.randint(2, 3))
    for a in p.atoms():
        if type(a) is Fn:
            checker.holds(space, space.function(a, space.terms) >= 0, a)
            if a.op == "floordiv":
                checker.holds(space, space.term(a.a) >= 0, a)


def lies_between_its_bounds(rng: random.Random, checker: Checker) -> None:
    space = Space(rng, knobs=rng.choice([0, 0, 2]))
    p, t = expression(rng, space, rng.randint(1, 3))
    for k in space.knobs:
        c = rng.choice([-2, 1, 3])
        p, t = p + poly(k) * c, t + space.terms[k] * c
    checker.holds(space, z3.And(space.term(lower(p)) <= t, t <= space.term(upper(p))), p)


def lies_within_its_reach_with_all_its_parts(rng: random.Random, checker: Checker) -> None:
    space = Space(rng)
    p, t = expression(rng, space, rng.randint(1, 3))
    parts = [t, *(space.term(q) for a in p.atoms() if type(a) is Fn for q in (a.a, a.b))]
    checker.holds(space, z3.And([z3.And(-reach(p) <= x, x <= reach(p)) for x in parts]), p)


def is_negative_where_that_is_proved(rng: random.Random, checker: Checker) -> None:
    space = Space(rng)
    for _ in range(20):
        p, t = expression(rng, space, rng.randint(1, 2))
        top = upper(p).const
        # Just at the edge: one less than the bound is proved, and must hold.
        for q, u in ((p - top - 1, t - top - 1), (p, t)):
            if proven_negative(q):
                checker.holds(space, u < 0, q)
                return


def is_substituted_as_it_is_evaluated(rng: random.Random, checker: Checker) -> None:
    space = Space(rng)
    p, t = expression(rng, space, rng.randint(1, 3))
    x = space.vars[0]
    tile, lane = Var("tile", -(-x.extent.const // 4)), Var("lane", 4)
    outer, inner = z3.Int("tile"), z3.Int("lane")
    moved = substitute(p, {x: poly(tile) * 4 + lane})
    terms = {**space.terms, tile: outer, lane: inner}
    inside = [
        outer >= 0, inner >= 0, inner < 4, outer < tile.extent.const,
        space.terms[x] == outer * 4 + inner, outer * 4 + inner < x.extent.const,
    ]  # fmt: skip
    checker.holds(space, space.term(moved, terms) == t, (p, moved), inside)


def keeps_to_the_box_of_its_region(rng: random.Random, checker: Checker) -> None:
    space = Space(rng)
    p, t = expression(rng, space, rng.randint(0, 2))
    q, u = p + (shift := rng.randint(-3, 3)), t + shift
    inner = set(rng.sample(space.vars, rng.randint(1, 2)))
    range_ = ends(p, inner)
    if range_ is not None:
        low, high = range_
        assert not (low.vars() | high.vars()) & inner
        checker.holds(space, z3.And(space.term(low) <= t, t <= space.term(high)), p)
    boxes = region([(p,), (q,)], inner)
    if boxes is not None:
        ((base, span),) = boxes
        for term in (t, u):
            inside = z3.And(space.term(base) <= term, term < space.term(base) + space.term(span))
            checker.holds(space, inside, (p, q, base, span))


def tells_its_variables_apart_where_that_is_proved(rng: random.Random, checker: Checker) -> None:
    space = Space(rng)
    for _ in range(60):
        inner = set(rng.sample(space.vars, rng.randint(1, 3)))
        if rng.random() < 0.5:
            values, extents = [], []
            for _ in range(rng.randint(1, 2)):
                p = poly(0)
                for v in rng.sample(space.vars, rng.randint(1, 3)):
                    p = p + poly(v) * rng.choice([1, 1, 2, 3, 4, 7, 8, 16, 33, 100])
                values.append(p)
                extents.append(upper(p) + 1)
        else:
            p = poly(0)
            for v in rng.sample(space.vars, rng.randint(1, 3)):
                p = p * v.extent + v
            n = rng.choice([2, 3, 4, 8])
            values, extents = [floor_div(p, n), floor_mod(p, n)], [upper(floor_div(p, n)) + 1, poly(n)]
        if is_injective(values, extents, inner):
            other = {a: z3.Int(f"{a}'") if a in inner else t for a, t in space.terms.items()}
            ranges = [z3.And(other[v] >= 0, other[v] < v.extent.const) for v in inner]
            same = z3.And([space.term(p) == space.term(p, other) for p in values])
            differ = z3.Or([other[v] != space.terms[v] for v in inner])
            checker.holds(space, z3.Not(z3.And(same, differ)), (values, inner), ranges)
            return


def is_the_same_without_the_lane(rng: random.Random, checker: Checker) -> None:
    space = Space(rng)
    lane = Var("lane", rng.choice([2, 3, 4, 8, 16]))
    space.terms[lane] = z3.Int("lane")
    space.ranges.append(z3.And(space.terms[lane] >= 0, space.terms[lane] < lane.extent.const))
    unit = rng.choice([1, 4, 8, 16, 20, 50])
    p, t = affine(rng, space)
    p, t = p * unit + poly(lane) * (s := rng.choice([1, 1, 2, 3])), t * unit + space.terms[lane] * s
    n = rng.choice([2, 3, 5, 8, 16, 20, 24, 32])
    try:
        f, u = floor_div(p, n), quotient(t, n)
        if rng.random() < 0.5:
            f, u = floor_mod(p, n), t - quotient(t, n) * n
        if rng.random() < 0.3:
            f, u = floor_div(f, 3), quotient(u, 3)
    except NotProvable:
        return
    checker.holds(space, space.term(_without_lane(f, lane, lane.extent.const)) == u, f)


def is_negative_over_sizes_where_that_is_proved(rng: random.Random, checker: Checker) -> None:
    space = Sized(rng)
    proved = 0
    for _ in range(80):
        p = poly(rng.randint(-3, 1))
        for a in rng.sample(space.vars, rng.randint(1, 2)):
            p = p + poly(a) * rng.choice([1, 1, space.tile, 2, -1])
        if rng.random() < 0.4:
            try:
                p = rng.choice([minimum, maximum])(p, poly(rng.choice(space.atoms)) + rng.randint(0, 2))
            except NotProvable:
                continue
        p = p - poly(rng.choice(space.sizes)) * rng.choice([0, 1, 1, 2, 3])
        if rng.random() < 0.3:
            d = rng.choice([space.tile, 2])
            s = poly(rng.choice(space.sizes))
            p = p + (floor_div(s, d) * d - s) * rng.choice([1, -1])
        if proven_negative(p):
            proved += 1
            used = p.vars()
            # A variable without values makes no claim; one that does not stand in p must not be what helps.
            ranges = [
                r for a, r in zip(space.terms, space.ranges, strict=True) if a not in space.vars or a in used
            ]
            checker.holds_under(ranges, space.term(p) < 0, (p, [(v, v.extent) for v in used]))
            if proved == 3:
                return


def lies_between_its_bounds_over_sizes(rng: random.Random, checker: Checker) -> None:
    space = Sized(rng)
    p, _ = affine(rng, space)
    if rng.random() < 0.7:
        d = rng.choice([space.tile, 2, 5])
        with suppress(NotProvable):
            p = p * rng.choice([1, 2]) + floor_div(p, d) * rng.choice([1, -1, -d])
    t = space.term(p)
    checker.holds(space, z3.And(space.term(lower(p)) <= t, t <= space.term(upper(p))), p)


def is_at_least_one_where_that_is_proved(rng: random.Random, checker: Checker) -> None:
    space = Sized(rng)
    known = positive_atoms(space.vars)
    for a in known:
        term = space.function(a, space.terms) if type(a) is Fn else space.terms[a]
        checker.holds(space, term >= 1, a)
    for _ in range(10):
        p, _ = affine(rng, space, space.atoms)
        some = rng.sample(space.vars, 2)
        if is_positive(p, positive_atoms(some)):
            ranges = [space.terms[s] >= 0 for s in space.sizes]
            ranges += [
                z3.And(space.terms[v] >= 0, space.terms[v] < space.term(v.extent)) for v in p.vars() | {*some}
            ]
            checker.holds_under(ranges, space.term(p) >= 1, (p, some))


CLAIMS = [
    is_negative_over_sizes_where_that_is_proved,
    lies_between_its_bounds_over_sizes,
    is_at_least_one_where_that_is_proved,
    is_equal_to_what_it_was_made_of,
    is_never_below_zero_inside_of_a_function,
    lies_between_its_bounds,
    lies_within_its_reach_with_all_its_parts,
    is_negative_where_that_is_proved,
    is_substituted_as_it_is_evaluated,
    keeps_to_the_box_of_its_region,
    tells_its_variables_apart_where_that_is_proved,
    is_the_same_without_the_lane,
]


@pytest.mark.parametrize("claim", CLAIMS, ids=lambda f: f.__name__)
def test_an_index(claim) -> None:
    run(FAST, claim, 0.4)


@pytest.mark.slow
@pytest.mark.timeout(1200)
@pytest.mark.parametrize("claim", CLAIMS, ids=lambda f: f.__name__)
def test_many_an_index(claim) -> None:
    run(LONG, claim, 0.4)
