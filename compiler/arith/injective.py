"""Whether different values of some variables give different values of a tuple of polynomials."""

from __future__ import annotations

from collections.abc import Sequence
from collections.abc import Set as AbstractSet
from itertools import permutations

from .poly import Fn, Poly, Var, poly
from .simplify import proven_negative

#: More steps than this in one index are not tried in every order.
_MAX_STEPS = 6


def is_injective(values: Sequence[Poly], extents: Sequence[Poly], variables: AbstractSet[Var]) -> bool:
    """Whether two different assignments to `variables`, the others fixed, always differ in some of `values`.

    A sum of digits tells its digits apart. Neighbouring values are also tried together, as one number in
    mixed radix with the given extents: so that quotient and remainder of a fused loop give the loop back.
    False when it cannot be proved.
    """
    left = {v for v in variables if v.extent.const != 1}
    for start in range(len(values)):
        number = poly(0)
        for value, extent in zip(values[start:], extents[start:], strict=True):
            number = number * extent + value
            told = _digits(number, left)
            if told:
                left = left - told
        if not left:
            return True
    return not left


def _digits(p: Poly, variables: AbstractSet[Var]) -> set[Var]:
    """The variables that p tells apart; none where they overlap, or stand inside of a function."""
    steps: list[tuple[Poly, Var]] = []
    for m, c in p.terms.items():
        if any(type(a) is Fn and a.vars & variables for a in m):
            return set()
        moving = [a for a in m if type(a) is Var and a in variables]
        if len(moving) > 1:
            return set()
        if moving:
            rest = list(m)
            rest.remove(moving[0])
            steps.append((Poly({tuple(rest): abs(c)}), moving[0]))
    found = {v for _, v in steps}
    if not steps or len(found) < len(steps) or len(steps) > _MAX_STEPS:
        return set()
    return found if any(_ascending(order) for order in permutations(steps)) else set()


def _ascending(steps: Sequence[tuple[Poly, Var]]) -> bool:
    """Whether each step is at least as long as all smaller ones together reach."""
    reached = poly(1)
    for stride, v in steps:
        if not proven_negative(reached - stride - 1):
            return False
        reached = reached + stride * (v.extent - 1)
    return True
