"""Loops that were fused, taken apart again where only some of them matter."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from ..arith import Atom, Fn, Poly, Var, floor_div, poly, substitute

Digit = tuple[Poly, Poly]


def inner_extent(var: Var, polys: Iterable[Poly]) -> int | None:
    """The iterations of the innermost of the loops that were fused into the one over `var`, as the divisions
    in the polynomials tell; None where none does."""
    extent = var.extent.const
    found = {c for p in polys for c in _divisions(p, var).values()} if extent else set()
    sizes = [c for c in sorted(found) if extent and 1 < c < extent and extent % c == 0]
    return next((c for c in sizes if all(d % c == 0 for d in found)), None)


def apart(polys: Iterable[Poly], var: Var, outer: Var, inner: Var) -> list[Poly]:
    """The polynomials with `outer * n + inner` for the variable, where n is the extent of `inner` and divides
    what `var` is divided by."""
    size = inner.extent.const or 1
    out: list[Poly] = []
    for p in polys:
        # floor((n * outer + inner) / (n * m)) = floor(outer / m), as inner < n.
        values: dict[Atom, Poly] = {
            a: floor_div(poly(outer), c // size) for a, c in _divisions(p, var).items()
        }
        out.append(substitute(p, {**values, var: poly(outer) * size + inner}))
    return out


def _divisions(p: Poly, var: Var) -> dict[Fn, int]:
    found: dict[Fn, int] = {}
    for a in p.atoms():
        if type(a) is not Fn or var not in a.vars:
            continue
        if a.op == "floordiv" and a.a.atom == var and a.b.const is not None:
            found[a] = a.b.const
        else:
            found |= _divisions(a.a, var) | _divisions(a.b, var)
    return found


def digits(var: Var, polys: Sequence[Poly]) -> list[Digit]:
    """(value, extent) of each fused loop that moves the polynomials, over `var`; `var` itself where it is no
    fused loop.

    `i_j // 8 * 4 + k` with i_j below 48 gives `i_j // 8`, below 6.
    """
    size = inner_extent(var, polys)
    if size is None:
        return [(poly(var), var.extent)] if any(var in p.vars() for p in polys) else []
    assert var.extent.const is not None
    outer, inner = Var(var.name, var.extent.const // size), Var(var.name, size)
    rest = apart(polys, var, outer, inner)
    first = floor_div(poly(var), size)
    found = [(substitute(value, {outer: first}), extent) for value, extent in digits(outer, rest)]
    if any(inner in p.vars() for p in rest):
        found.append((poly(var) - first * size, inner.extent))
    return found
