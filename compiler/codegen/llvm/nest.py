"""What the emitter wants to know of a loop nest before it emits it."""

from __future__ import annotations

from dataclasses import dataclass

from ...arith import Fn, Monomial, Poly, Var, poly, proven_negative, upper
from ...ir import Buffer, For, LoopKind, PrimFunc, loads, walk
from .indices import Terms


@dataclass(frozen=True, slots=True, eq=False)
class Limit:
    """Every block of a loop needs `terms + step * var < 0`, so that none runs from some iteration on."""

    terms: Poly
    step: int


def limit_of(s: For) -> Limit | None:
    """The limit that all blocks under the loop share, if they do."""
    inner = {f.var for p, _ in walk(s.body) for f in p}
    limit: Limit | None = None
    for _, b in walk(s.body):
        mine: Limit | None = None
        for p in b.predicates:
            step = p.coefficient(s.var)
            if step <= 0 or not _is_linear(p, s.var):
                continue
            out = _first_instance(p, s.var, inner)
            if not proven_negative(upper(out) + (s.var.extent - 1) * step):
                mine = Limit(out, step)
        if mine is None or (limit is not None and (limit.terms != mine.terms or limit.step != mine.step)):
            return None
        limit = mine
    return limit


def _first_instance(p: Poly, var: Var, inner: set[Var]) -> Poly:
    """p without `var`, at the inner iterations where it is lowest."""
    out = poly(0)
    for m, c in p.terms.items():
        if m == (var,):
            continue
        inside = [a for a in m if a in inner]
        if not inside:
            out = out + Poly({m: c})
        elif c < 0:
            out = out + _highest(m, c, inner)
    return out


def _is_linear(p: Poly, var: Var) -> bool:
    """Whether no division, minimum or maximum of variables stands in p, and `var` in no product."""
    return not any(type(a) is Fn and a.vars for a in p.atoms()) and not any(
        var in m and m != (var,) for m in p.terms
    )


def _highest(m: Monomial, c: int, inner: set[Var]) -> Poly:
    """The term at the last iteration of its inner variables."""
    term = poly(c)
    for a in m:
        term = term * (a.extent - 1 if type(a) is Var and a in inner else poly(a))
    return term


def whole_tile(s: For, p: Poly) -> Terms | None:
    """p at the iterations inside of the loop where it is largest: below 0 there, it is below 0 in the whole
    tile.

    None where an inner variable stands in a division or a product.
    """
    inner = {f.var for q, _ in walk(s.body) for f in q}
    out: Terms = {}
    for m, c in p.terms.items():
        inside = [a for a in m if a in inner or (type(a) is Fn and a.vars & inner)]
        if not inside:
            out[m] = out.get(m, 0) + c
        elif len(m) > 1 or type(m[0]) is not Var:
            return None
        elif c > 0:
            for n, x in ((m[0].extent - 1) * c).terms.items():
                out[n] = out.get(n, 0) + x
    return out


def tile_roots(func: PrimFunc) -> set[Var]:
    """The innermost loop around all uses of each register buffer: a tile is whole there, or at an edge. In a
    program over sizes also the innermost loop around vectors that use no registers, which is at an edge once.
    """
    paths: dict[Buffer, list[tuple[For, ...]]] = {}
    for path, b in func.blocks():
        for u in (b.buffer, *(x.buffer for x in loads(b.value))):
            if u.scope == "register":
                paths.setdefault(u, []).append(path)
    roots: set[Var] = set()
    for used in paths.values():
        depth = 0
        while all(len(p) > depth and p[depth] is used[0][depth] for p in used):
            depth += 1
        if depth:
            roots.add(used[0][depth - 1].var)
    if func.sizes:
        for path, b in func.blocks():
            around = [f for f in path if f.kind in (LoopKind.SERIAL, LoopKind.PARALLEL)]
            in_vectors = any(f.kind is LoopKind.VECTORIZED for f in path)
            if b.predicates and in_vectors and around and not any(f.var in roots for f in path):
                roots.add(around[-1].var)
    return roots
