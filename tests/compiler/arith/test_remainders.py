"""Bounds of indices with divisions and remainders in them, against every value."""

import random

from tilewright.compiler.arith import Poly, Var, evaluate, floor_div, floor_mod, lower, poly, upper


def index(rng: random.Random, variables: list[Var], depth: int = 0) -> Poly:
    """A random sum of variables, quotients and remainders."""
    kind = rng.random()
    if kind < 0.35 or depth > 3:
        return poly(rng.choice(variables))
    if kind < 0.45:
        return poly(rng.randint(0, 9))
    a = index(rng, variables, depth + 1)
    if kind < 0.65:
        return a + index(rng, variables, depth + 1) * rng.randint(1, 5)
    by = rng.choice([2, 3, 4, 6, 12])
    return floor_div(a, by) if kind < 0.8 else floor_mod(a, by)


def test_bounds_hold_every_value() -> None:
    for seed in range(1500):
        rng = random.Random(seed)
        variables = [Var("x", rng.randint(1, 20)), Var("y", rng.randint(1, 6))]
        p = index(rng, variables) - index(rng, variables) * rng.randint(0, 4)
        x, y = variables
        values = [
            evaluate(p, {x: i, y: j}) for i in range(x.extent.const or 0) for j in range(y.extent.const or 0)
        ]
        low, high = lower(p).const, upper(p).const
        assert low is not None and high is not None
        assert low <= min(values) and max(values) <= high, (seed, p)


def test_a_remainder_with_a_rest_has_tight_bounds() -> None:
    n = Var("n", 120)
    swapped = (n - floor_div(n, 10) * 10) * 12 + floor_div(n, 10)
    assert repr(swapped) == "n * 12 - (n // 10) * 119"
    assert (lower(swapped).const, upper(swapped).const) == (0, 119)


def test_a_remainder_of_a_quotient_has_tight_bounds() -> None:
    n = Var("n", 96)
    middle = floor_div(n, 8) - floor_div(n, 32) * 4
    assert (lower(middle).const, upper(middle).const) == (0, 3)
