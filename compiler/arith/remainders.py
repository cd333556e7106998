"""Remainders by a constant that stand in a polynomial with a rest, or beside a finer division."""

from __future__ import annotations

from collections.abc import Iterator

from .poly import Fn, Poly, poly


def take_remainders(p: Poly) -> tuple[Poly, list[tuple[int, Poly, int]]]:
    """`p` as a rest plus k * (a - b * (a // b)) for each (k, a, b) that makes the rest shorter.

    In 12 * n - 119 * (n // 10) it is 12 times the remainder of n, and the rest is n // 10. Where x // d
    stands beside x // (d * b), it may be the a.
    """
    found: list[tuple[int, Poly, int]] = []
    for m in list(p.terms):
        f = m[0] if len(m) == 1 else None
        if type(f) is not Fn or f.op != "floordiv" or not f.b.const or not f.vars or m not in p.terms:
            continue
        for a, b in _dividends(p, f, f.b.const):
            lead, c = next((n, c) for n, c in a.terms.items() if n)
            k = p.terms.get(lead, 0) // c
            rest = p - (a - poly(f) * b) * k
            if k and moving_terms(rest) < moving_terms(p):
                p = rest
                found.append((k, a, b))
                break
    return p, found


def moving_terms(p: Poly) -> int:
    """The number of terms but the constant: what is found must not depend on it, so that the bound of a sum
    with a constant is the sum of the bound and the constant."""
    return len(p.terms) - (() in p.terms)


def _dividends(p: Poly, f: Fn, by: int) -> Iterator[tuple[Poly, int]]:
    """(a, b) with f = a // b, the finest first: floor(x / (d * b)) = floor(floor(x / d) / b)."""
    finer: list[tuple[int, Fn]] = []
    for m in p.terms:
        g = m[0] if len(m) == 1 else None
        if type(g) is Fn and g.op == "floordiv" and g.a == f.a and g.b.const:
            finer.append((g.b.const, g))
    for d, g in sorted(finer, key=lambda x: -x[0]):
        if d < by and by % d == 0:
            yield poly(g), by // d
    yield f.a, by
