"""Index arithmetic against brute force: every value of small variables and knobs is tried."""

import itertools
import math

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tilewright.compiler.arith import (
    Fn,
    Knob,
    NotProvable,
    Poly,
    Size,
    Var,
    ceil_div,
    ends,
    evaluate,
    floor_div,
    floor_mod,
    lower,
    maximum,
    minimum,
    poly,
    proven_negative,
    substitute,
    upper,
)
from tilewright.compiler.arith.spell import spelled

VARS = tuple(Var(name, extent) for name, extent in (("x", 3), ("y", 4), ("z", 2)))
KNOBS = (Knob("a", (1, 2, 5)), Knob("b", (1, 3)))
few = settings(max_examples=100, deadline=None, database=None)


def assignments(atoms):
    """Every value of the variables below their extents and of the knobs in their domains."""
    ranges = [range(a.extent.const) if isinstance(a, Var) else a.domain for a in atoms]
    for values in itertools.product(*ranges):
        yield dict(zip(atoms, values, strict=True))


@st.composite
def sums(draw, atoms=VARS, smallest=-6):
    """An affine polynomial, or one with products of two atoms."""
    p = poly(draw(st.integers(smallest, 6)))
    for _ in range(draw(st.integers(1, 3))):
        term = poly(draw(st.integers(smallest, 6)))
        for _ in range(draw(st.integers(1, 2))):
            term = term * draw(st.sampled_from(atoms))
        p = p + term
    return p


@st.composite
def polynomials(draw, atoms=VARS):
    """A polynomial with floor divisions, remainders, ceiling divisions, minima and maxima inside."""
    p = draw(sums(atoms))
    for _ in range(draw(st.integers(0, 3))):
        q = draw(sums(atoms))
        n = draw(st.integers(1, 7))
        try:
            match draw(st.sampled_from(["floordiv", "floormod", "ceildiv", "min", "max", "times"])):
                case "floordiv":
                    p = q + floor_div(p, n)
                case "floormod":
                    p = q + floor_mod(p, n)
                case "ceildiv":
                    p = q + ceil_div(maximum(p, 0), n)
                case "min":
                    p = q + minimum(p, n)
                case "max":
                    p = q + maximum(p, n)
                case "times":
                    p = q + p * draw(st.integers(-3, 3))
        except NotProvable:
            pass
    return p


@few
@given(polynomials(), polynomials())
def test_sums_differences_and_products_are_those_of_their_values(p, q):
    for at in assignments(VARS):
        x, y = evaluate(p, at), evaluate(q, at)
        assert evaluate(p + q, at) == x + y
        assert evaluate(p - q, at) == x - y
        assert evaluate(p * q, at) == x * y


@few
@given(polynomials(), st.integers(1, 12))
def test_floor_division_rounds_down_for_every_sign(p, n):
    for at in assignments(VARS):
        assert evaluate(floor_div(p, n), at) == evaluate(p, at) // n
        assert evaluate(floor_mod(p, n), at) == evaluate(p, at) % n


@few
@given(polynomials(), st.integers(1, 12))
def test_ceiling_division_rounds_up(p, n):
    try:
        whole = maximum(p, 0)
    except NotProvable:
        pytest.fail("0 is a constant")
    for at in assignments(VARS):
        assert evaluate(ceil_div(whole, n), at) == math.ceil(max(evaluate(p, at), 0) / n)


@few
@given(polynomials(), polynomials())
def test_minimum_and_maximum_are_right_or_refused(p, q):
    for f, reference in ((minimum, min), (maximum, max)):
        try:
            r = f(p, q)
        except NotProvable:
            continue
        for at in assignments(VARS):
            assert evaluate(r, at) == reference(evaluate(p, at), evaluate(q, at))


@few
@given(polynomials())
def test_bounds_hold_for_every_value_of_the_variables(p):
    low, high = lower(p).const, upper(p).const
    for at in assignments(VARS):
        assert low <= evaluate(p, at) <= high


@few
@given(st.lists(st.integers(-5, 5), min_size=3, max_size=3), st.integers(-9, 9))
def test_bounds_of_affine_polynomials_are_reached(coefficients, offset):
    p = poly(offset)
    for v, c in zip(VARS, coefficients, strict=True):
        p = p + poly(v) * c
    values = [evaluate(p, at) for at in assignments(VARS)]
    assert (lower(p).const, upper(p).const) == (min(values), max(values))


@few
@given(polynomials(VARS + KNOBS))
def test_what_is_proved_negative_is_negative(p):
    if proven_negative(p):
        assert all(evaluate(p, at) < 0 for at in assignments(VARS + KNOBS))


@few
@given(polynomials(VARS + KNOBS))
def test_bounds_over_knobs_hold_for_every_value_of_the_knobs(p):
    low, high = lower(p), upper(p)
    for at in assignments(VARS + KNOBS):
        assert evaluate(low, at) <= evaluate(p, at) <= evaluate(high, at)


@few
@given(polynomials(), sums(smallest=0))
def test_substitution_is_evaluation_at_the_substituted_value(p, q):
    # The replaced variable stands for a wider one: q may be larger than x ever is.
    wide = Var("w", upper(q).const + 1)
    moved = substitute(_rename(p, wide), {wide: q})
    for at in assignments(VARS):
        assert evaluate(moved, at) == evaluate(_rename(p, wide), {**at, wide: evaluate(q, at)})


def _rename(p, v):
    return substitute(p, {VARS[0]: poly(v)})


@few
@given(polynomials(), st.sets(st.sampled_from(VARS), min_size=1))
def test_ends_enclose_the_values_while_the_inner_variables_run(p, inner):
    range_ = ends(p, inner)
    if range_ is None:
        return
    for at in assignments(VARS):
        assert evaluate(range_[0], at) <= evaluate(p, at) <= evaluate(range_[1], at)


@few
@given(polynomials(), polynomials())
def test_equal_polynomials_have_equal_keys_and_hashes(p, q):
    there_and_back = (p + q) - q
    assert there_and_back == p
    assert (hash(there_and_back), there_and_back.key) == (hash(p), p.key)


def test_division_by_every_divisor_of_every_small_linear_form():
    x = VARS[1]
    for c, n, offset in itertools.product(range(-8, 9), range(1, 25), range(-12, 13)):
        p = poly(x) * c + offset
        for value in range(4):
            assert evaluate(floor_div(p, n), {x: value}) == (c * value + offset) // n


@pytest.mark.parametrize("a", range(2, 17))
@pytest.mark.parametrize("b", range(2, 17))
def test_nested_remainders_are_not_collapsed_wrongly(a, b):
    x = Var("x", 201)
    p = floor_mod(floor_mod(x, a), b)
    assert [evaluate(p, {x: v}) for v in range(201)] == [v % a % b for v in range(201)]


def test_the_extent_of_a_tile_cancels_without_a_rewriter():
    a, b = Knob("a", (1, 2, 4)), Knob("b", (1, 2, 4))
    assert (poly(a) - 1) * b + (poly(b) - 1) + 1 == poly(a) * b


def test_nested_ceilings_by_factors_become_one():
    a, b = Knob("a", (1, 2)), Knob("b", (1, 2))
    assert ceil_div(ceil_div(130, a), b) == ceil_div(130, poly(a) * b)


def test_a_division_without_remainder_leaves_no_function():
    x, t = Var("x", 8), Knob("t", (2, 4))
    assert floor_div(poly(x) * t * 3, t) == poly(x) * 3
    assert not any(isinstance(a, Fn) for a in floor_div(poly(x) * 6, 3).atoms())


def test_a_division_that_may_be_of_something_negative_by_a_knob_is_refused():
    x, a = Var("x", 4), Knob("a", (1, 2))
    with pytest.raises(NotProvable) as e:
        floor_div(poly(x) - 1, a)
    assert str(e.value) == "cannot prove that x - 1 is not negative in a floor division by a"


def test_a_minimum_that_may_be_negative_is_refused():
    a, b = Knob("a", (1, 2)), Knob("b", (1, 2))
    with pytest.raises(NotProvable) as e:
        minimum(poly(a) - b, poly(b) - a + 1)
    assert str(e.value) == "cannot prove that min(a - b, b - a + 1) is not negative"


def test_a_maximum_of_which_both_may_be_negative_is_refused():
    x = Var("x", 4)
    with pytest.raises(NotProvable) as e:
        maximum(poly(x) - 1, -poly(x) + 1)
    assert str(e.value) == "cannot prove that max(x - 1, -x + 1) is not negative"


@pytest.mark.parametrize("most", [minimum, maximum])
def test_what_is_among_nested_minima_or_maxima_is_not_taken_again(most):
    a, b, c = (poly(Knob(name, (1, 2, 3))) for name in "abc")
    nest = most(a, most(b, c))
    assert all(most(x, nest) == nest == most(nest, x) for x in (a, b, c))
    other = {minimum: maximum, maximum: minimum}[most]
    assert other(a, nest) != nest


def test_a_deep_nest_is_spelled_in_no_time():
    # Each level spelled what is under it four times over: 4 ** 40 of them here.
    sizes = [poly(Size(f"n{i}")) for i in range(40)]
    nest = poly(0)
    for n in sizes:
        nest = poly(Fn("max", n - 1, nest)) + 1
    text = spelled(nest, position=lambda atom: 0)
    assert text.startswith("max(n39 - 1, max(n38 - 1, ") and text.endswith(", 0) + 1" + ") + 1" * 39)


@pytest.mark.parametrize(
    ("p", "text"),
    [
        (lambda x, y: poly(0), "0"),
        (lambda x, y: poly(x) * 4 + y - 1, "x * 4 + y - 1"),
        (lambda x, y: poly(x) * y, "x * y"),
        (lambda x, y: floor_div(poly(x) + y, 3), "(x + y) // 3"),
        (lambda x, y: floor_div(x, 3) * 2, "(x // 3) * 2"),
        (lambda x, y: floor_div(floor_div(x, 2) + y, 3), "(x // 2 + y) // 3"),
        (lambda x, y: minimum(x, 3), "min(x, 3)"),
        (lambda x, y: ceil_div(poly(x) + 1, 4), "ceildiv(x + 1, 4)"),
        (lambda x, y: -poly(x), "-x"),
        (lambda x, y: 5 - floor_div(x, 2), "-(x // 2) + 5"),
        (lambda x, y: poly(y) - floor_div(x, 2), "y - x // 2"),
    ],
)
def test_polynomials_print_as_a_person_would_write_them(p, text):
    x, y = Var("x", 20), Var("y", 20)
    assert repr(p(x, y)) == text


def test_hashes_do_not_depend_on_the_process():
    x = Var("x", 4)
    assert hash(x) == hash((0, x.key[1]))
    assert isinstance(poly(x), Poly)
