"""What follows from conditions that hold."""

from __future__ import annotations

from collections.abc import Iterable

from ..arith import Fn, Poly, poly, proven_negative, spend


def follows(p: Poly, known: Iterable[Poly]) -> bool:
    """Whether p < 0 follows from its bounds, or from a multiple of one of the conditions (each < 0) and the
    bounds of what p is more than that."""
    if proven_negative(p):
        return True
    known = tuple(known)
    spend(1 + len(known))
    # k <= -1, so that p = n * k + (p - n * k) < 0 where p - n * k < n.
    if any(proven_negative(p - k * n - n) for k in known for n in _multiples(p, k)):
        return True
    # The greater of two is below where both are, the lesser where one of them is.
    for m, c in p.terms.items():
        a = m[0] if len(m) == 1 and c in (1, -1) else None
        if type(a) is Fn and a.op in ("min", "max"):
            parts = (follows(p - poly(a) * c + part * c, known) for part in (a.a, a.b))
            if (all if (a.op == "max") == (c == 1) else any)(parts):
                return True
    # Of integers, floor(x / d) < -rest just where x < -rest * d.
    for m, c in p.terms.items():
        a = m[0] if len(m) == 1 and c == 1 else None
        if type(a) is Fn and a.op == "floordiv" and (a.b.const or 0) > 0:
            return bool(known) and follows((p - a) * a.b + a.a, known)
    return False


def _multiples(p: Poly, k: Poly) -> set[int]:
    """How often k may stand in p: by the steps of the variables that both have, and once."""
    return {1} | {c // k.terms[m] for m, c in p.terms.items() if m and 0 < k.terms.get(m, 0) <= c}
