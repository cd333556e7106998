"""Proofs about sizes hold for every one of them: against all values of small ones."""

from __future__ import annotations

import itertools
from collections.abc import Iterator

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tilewright.compiler.arith import (
    Atom,
    NotProvable,
    Poly,
    Size,
    Var,
    ceil_div,
    evaluate,
    floor_div,
    is_injective,
    is_positive,
    lower,
    maximum,
    minimum,
    not_negative,
    poly,
    positive_atoms,
    proven_negative,
    substitute,
    upper,
)

M, N = Size("m"), Size("n")
VALUES = (0, 1, 2, 3, 5)


def extents() -> st.SearchStrategy[Poly]:
    """Lengths of loops over sizes, as splits, fusions and windows make them."""
    n, m = poly(N), poly(M)
    return st.sampled_from(
        [
            poly(3),
            n,
            m,
            n + 1,
            n * 2,
            m * n,
            ceil_div(n, 2),
            ceil_div(n, 2) * 2,
            ceil_div(m * n, 3),
            not_negative(n - 2),
            not_negative(n + m - 1),
            minimum(n, 3),
            floor_div(n, 2),
        ]
    )


def points(variables: list[Var], fixed: dict[Atom, int]) -> Iterator[dict[Atom, int]]:
    """All values of the variables for these sizes; none where a range is empty."""
    ranges = [range(evaluate(v.extent, fixed)) for v in variables]
    for values in itertools.product(*ranges):
        yield {**fixed, **dict(zip(variables, values, strict=True))}


@st.composite
def indices(draw: st.DrawFn, variables: list[Var]) -> Poly:
    """A polynomial over variables and sizes, with divisions, remainders, minima and maxima."""
    atoms: list[Poly] = [poly(v) for v in variables] + [poly(N), poly(M), poly(1)]
    total = poly(0)
    for _ in range(draw(st.integers(1, 4))):
        term = draw(st.sampled_from(atoms)) * draw(st.integers(-3, 3))
        if draw(st.booleans()):
            term = term * draw(st.sampled_from(atoms))
        total = total + term
    shape = draw(st.sampled_from(["plain", "div", "mod", "by size", "rest by size", "min", "max"]))
    try:
        match shape:
            case "div":
                total = floor_div(total, draw(st.integers(1, 4)))
            case "mod":
                k = draw(st.integers(1, 4))
                total = total - floor_div(total, k) * k
            case "by size" | "rest by size":
                by = draw(st.sampled_from([poly(N), poly(N) * 2, poly(M)]))
                if is_positive(by, positive_atoms(total.vars())):
                    q = floor_div(total, by)
                    total = q if shape == "by size" else total - q * by
            case "min":
                total = minimum(total, draw(st.sampled_from(atoms)))
            case "max":
                total = maximum(total, draw(st.sampled_from(atoms)))
    except NotProvable:
        pass
    return total + draw(st.integers(-2, 2)) - draw(st.sampled_from([poly(0), poly(N), poly(M)]))


@settings(max_examples=400, deadline=None)
@given(data=st.data())
def test_bounds_and_signs_hold_for_every_size(data: st.DataObject) -> None:
    variables = [Var(name, data.draw(extents())) for name in "ij"]
    p = data.draw(indices(variables))
    high, low, negative = upper(p), lower(p), proven_negative(p)
    assert not high.vars() and not low.vars()
    for n, m in itertools.product(VALUES, VALUES):
        fixed: dict[Atom, int] = {N: n, M: m}
        for at in points(variables, fixed):
            value = evaluate(p, at)
            assert evaluate(low, fixed) <= value <= evaluate(high, fixed), (p, at)
            assert not (negative and value >= 0), (p, at)


@settings(max_examples=200, deadline=None)
@given(data=st.data())
def test_substituting_sizes_and_evaluating_agree(data: st.DataObject) -> None:
    variables = [Var(name, data.draw(extents())) for name in "ij"]
    p = data.draw(indices(variables))
    for n, m in itertools.product(VALUES, VALUES):
        fixed: dict[Atom, int] = {N: n, M: m}
        bound = substitute(p, {N: poly(n), M: poly(m)})
        for at in itertools.islice(points(variables, fixed), 20):
            assert evaluate(bound, at) == evaluate(p, at)


@settings(max_examples=200, deadline=None)
@given(data=st.data())
def test_what_is_called_injective_is_so_for_every_size(data: st.DataObject) -> None:
    variables = [Var(name, data.draw(extents())) for name in "ij"]
    values = [data.draw(indices(variables)) for _ in range(2)]
    if not is_injective(values, [poly(N), poly(M)], set(variables)):
        return
    for n, m in itertools.product(VALUES, VALUES):
        fixed: dict[Atom, int] = {N: n, M: m}
        seen = [tuple(evaluate(p, at) for p in values) for at in points(variables, fixed)]
        if all(0 <= a < n and 0 <= b < m for a, b in seen):
            assert len(set(seen)) == len(seen)


ROW, COLUMN, FUSED = Var("i", N), Var("j", M), Var("f", poly(M) * N)


@pytest.mark.parametrize(
    "p, proven",
    [
        (poly(ROW) - N, True),
        (poly(0) - N, False),
        (poly(-1) - N, True),
        (poly(ROW) * M + COLUMN - poly(N) * M, True),
        (floor_div(FUSED, N) - M, True),
        (poly(FUSED) - floor_div(FUSED, N) * N - N, True),
        (floor_div(FUSED, N) * N + poly(FUSED) - floor_div(FUSED, N) * N - poly(M) * N, True),
        (poly(ROW) - M, False),
        (poly(ROW) + 1 - N, False),
        (poly(Var("w", not_negative(poly(N) - 2))) + 2 - N, True),
        (floor_div(poly(N), 2) * 2 - N - 1, True),
        (poly(N) - floor_div(poly(N), 4) * 4 - 4, True),
    ],
    ids=repr,
)
def test_the_sign_of(p: Poly, proven: bool) -> None:
    assert proven_negative(p) is proven


def test_a_size_is_positive_where_a_variable_over_it_has_a_value() -> None:
    tiles = Var("t", ceil_div(poly(M) * N, 8))
    assert not is_positive(poly(N))
    assert is_positive(poly(N) + 1)
    assert is_positive(poly(N), positive_atoms([ROW]))
    assert is_positive(ceil_div(N, 4) * 3, positive_atoms([tiles]))
    assert not is_positive(poly(N), positive_atoms([Var("s", poly(N) + 1)]))
    assert not is_positive(poly(N) - 1, positive_atoms([ROW]))


def test_a_ceiling_division_has_one_form_whatever_stands_beside_it() -> None:
    thirds = ceil_div(N, 3)
    assert ceil_div(thirds * 3, 2) == thirds + ceil_div(N, 6)
