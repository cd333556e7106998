"""fuse, reorder: the loops of a nest transformed in place."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise

from ...arith import Atom, NotProvable, Poly, Var, floor_div, poly, product, proven_negative, substitute
from ...ir import Block, For, IterKind, LoopKind, PrimFunc, Stmt, rewrite
from ..errors import ScheduleError
from ..find import blocks_under, find_loop
from ..overlap import check_overlaps


def rebind(block: Block, values: dict[Atom, Poly]) -> Block:
    """The block with loop variables replaced in its bindings and predicates."""
    return replace(
        block,
        binds=tuple(substitute(b, values) for b in block.binds),
        predicates=tuple(substitute(p, values) for p in block.predicates),
    )


def rebound(body: tuple[Stmt, ...], values: dict[Atom, Poly]) -> tuple[Stmt, ...]:
    """Statements whose blocks went through `rebind`; predicates that are proved vanish."""

    def visit(s: Stmt) -> Stmt:
        if type(s) is not Block:
            return s
        s = rebind(s, values)
        return replace(s, predicates=tuple(p for p in s.predicates if not proven_negative(p)))

    return rewrite(body, visit)


def add_predicate(block: Block, p: Poly) -> Block:
    """The block with the predicate `p < 0`, unless it is provable or there already."""
    return (
        block
        if proven_negative(p) or p in block.predicates
        else replace(block, predicates=(*block.predicates, p))
    )


def check_fuse(func: PrimFunc, loops: Sequence[Var]) -> list[For]:
    """At least two serial loops, each the only statement in the one before."""
    found = [find_loop(func, v, "fuse") for v in loops]
    if len(found) < 2:
        raise ScheduleError("fuse", "at least two loops are needed", func, found[0] if found else None)
    for f in found:
        if f.kind is not LoopKind.SERIAL:
            raise ScheduleError("fuse", f"loop {f.var.name!r} is {f.kind} already; fuse it first", func, f)
    for outer, inner in pairwise(found):
        if len(outer.body) != 1 or type(outer.body[0]) is not For or outer.body[0].var is not inner.var:
            reason = f"loop {inner.var.name!r} is not directly and alone inside {outer.var.name!r}"
            raise ScheduleError("fuse", reason, func, inner)
    for _, b in blocks_under(found[0]):
        steps = b.loop_vars(IterKind.REDUCE) & set(loops)
        other = {v for v in loops if v not in steps and v.extent.const != 1}
        if b.init is not None and steps and (other or steps & b.loop_vars(IterKind.SPATIAL)):
            reason = f"the loops mix spatial and reduction steps of {b.name!r}; decompose its init first"
            raise ScheduleError("fuse", reason, func, found[0])
    return found


def fuse(func: PrimFunc, loops: Sequence[Var]) -> tuple[PrimFunc, Var]:
    """Fuses perfectly nested loops, outermost first, into one.

    before: `for i in range(4): for j in range(6): B[i, j] = …`
    after: `for i_j in range(24): B[i_j // 6, i_j % 6] = …`
    Legal for serial loops each directly inside the one before.
    """
    found = check_fuse(func, loops)
    fused = Var("_".join(v.name for v in loops), product(v.extent for v in loops))
    values: dict[Atom, Poly] = {}
    rest = poly(fused)
    try:
        for n, v in enumerate(loops[:-1]):
            scale = product(w.extent for w in loops[n + 1 :])
            values[v] = floor_div(rest, scale)
            rest = rest - values[v] * scale
    except NotProvable as e:
        raise ScheduleError("fuse", str(e), func, found[0]) from None
    values[loops[-1]] = rest

    def below(s: Stmt) -> Stmt:
        return rebind(s, values) if type(s) is Block else s

    def visit(s: Stmt) -> Stmt:
        return For(fused, rewrite(found[-1].body, below)) if type(s) is For and s.var is loops[0] else s

    merged = func.rewrite(visit)
    check_overlaps(merged, "fuse")
    return merged, fused


def check_reorder(func: PrimFunc, loops: Sequence[Var]) -> list[For]:
    """Distinct loops of one perfect nest; answers the chain from the outermost to the innermost of them."""
    found = [find_loop(func, v, "reorder") for v in loops]
    if len(set(loops)) != len(loops):
        raise ScheduleError("reorder", "a loop is named twice", func, found[0])
    wanted = set(loops)
    for path, _ in func.blocks():
        on = [n for n, f in enumerate(path) if f.var in wanted]
        if len(on) != len(wanted):
            continue
        chain = list(path[on[0] : on[-1] + 1])
        for f in chain[:-1]:
            if len(f.body) != 1:
                raise ScheduleError(
                    "reorder",
                    f"the nest is not perfect: loop {f.var.name!r} holds {len(f.body)} statements",
                    func,
                    f,
                )
        return chain
    raise ScheduleError("reorder", "the loops do not stand around one block", func, found[-1])


def reorder(func: PrimFunc, loops: Sequence[Var]) -> PrimFunc:
    """Puts the loops of a perfect nest into the given order; loops not named keep their places.

    before: `for i: for j: for k: …` after `reorder(k, i)`: `for k: for j: for i: …`
    Legal in a perfect nest: each iteration is self-contained, and the steps of a reduction may be taken in
    any order.
    """
    if not loops:
        raise ScheduleError("reorder", "at least one loop is needed")
    chain = check_reorder(func, loops)
    by_var = {f.var: f for f in chain}
    order = iter(loops)
    wanted = set(loops)
    sequence = [by_var[next(order)] if f.var in wanted else f for f in chain]
    body = chain[-1].body
    for f in reversed(sequence):
        body = (replace(f, body=body),)

    def visit(s: Stmt) -> Stmt:
        return body[0] if type(s) is For and s.var is chain[0].var else s

    moved = func.rewrite(visit)
    check_overlaps(moved, "reorder")
    return moved
