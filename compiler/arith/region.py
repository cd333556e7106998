"""Boxes of indices: what a set of accesses touches while some variables run."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from collections.abc import Set as AbstractSet

from .poly import Fn, Poly, Var, poly
from .simplify import NotProvable, minimum, proven_negative, substitute

Range = tuple[Poly, Poly]


def ends(p: Poly, inner: AbstractSet[Var]) -> Range | None:
    """(lowest, highest) of p while the variables `inner` run; over the other variables. None when not a box.

    min(a, b) with b fixed is 1-Lipschitz in a: its values lie in [min(lowest a, b), that + span of a]; an
    over-estimate of the span, never an under-estimate.
    """
    low, high = poly(0), poly(0)
    for m, c in p.terms.items():
        term = Poly({m: c})
        moving = [a for a in m if (type(a) is Var and a in inner) or (type(a) is Fn and a.vars & inner)]
        if not moving:
            low, high = low + term, high + term
            continue
        if len(moving) > 1:
            return None
        a = moving[0]
        if type(a) is Var:
            top = substitute(term, {a: a.extent - 1})
            low, high = (low, high + top) if c > 0 else (low + top, high)
            continue
        assert type(a) is Fn
        if len(m) > 1 or c < 0 or a.op != "min" or a.b.vars() & inner:
            return None
        span = ends(a.a, inner)
        if span is None:
            return None
        try:
            base = minimum(span[0], a.b)
        except NotProvable:  # a clamped index below 0, where a vector reaches beyond what is read
            return None
        low, high = low + base * c, high + (base + span[1] - span[0]) * c
    return low, high


def is_contiguous(p: Poly, inner: AbstractSet[Var]) -> bool:
    """Whether p takes every value between its lowest and its highest while `inner` run.

    Steps of c * v fill the gaps when c is at most the length reached by the smaller steps: a sum of digits. A
    minimum of such a sum and something fixed moves by no more than the sum does.
    """
    steps: list[tuple[Poly, Poly]] = []
    for m, c in p.terms.items():
        moving = [a for a in m if (type(a) is Var and a in inner) or (type(a) is Fn and a.vars & inner)]
        if not moving:
            continue
        a = moving[0]
        if len(moving) > 1 or c < 0:
            return False
        if type(a) is Fn:
            if len(m) > 1 or c != 1 or a.op != "min" or a.b.vars() & inner:
                return False
            steps += _steps(a.a, inner)
            continue
        assert type(a) is Var
        rest = list(m)
        rest.remove(a)
        steps.append((Poly({tuple(rest): c}), a.extent))
    reached = poly(1)
    while steps:
        fitting = next((s for s in steps if proven_negative(s[0] - reached - 1)), None)
        if fitting is None:
            return all(extent.const == 1 for _, extent in steps)
        steps.remove(fitting)
        reached = reached + fitting[0] * (fitting[1] - 1)
    return True


def _steps(p: Poly, inner: AbstractSet[Var]) -> list[tuple[Poly, Poly]]:
    """(stride, extent) of each variable of `inner` in an affine polynomial."""
    out: list[tuple[Poly, Poly]] = []
    for m, c in p.terms.items():
        for a in m:
            if type(a) is Var and a in inner:
                rest = list(m)
                rest.remove(a)
                out.append((Poly({tuple(rest): c}), a.extent))
    return out


def region(indices: Iterable[Sequence[Poly]], inner: AbstractSet[Var]) -> list[Range] | None:
    """Per dimension (base, span) of index tuples while `inner` run; base is over the other variables. None:
    not a box."""
    out: list[Range] = []
    for dim in zip(*indices, strict=True):
        low: Poly | None = None
        high: Poly | None = None
        for p in dim:
            range_ = ends(p, inner)
            if range_ is None:
                return None
            if low is None or high is None:
                low, high = range_
                continue
            below, above = (range_[0] - low).const, (range_[1] - high).const
            if below is None or above is None:
                return None
            low = range_[0] if below < 0 else low
            high = range_[1] if above > 0 else high
        assert low is not None and high is not None
        out.append((low, high - low + 1))
    return out
