"""split, fuse, reorder: loops transformed in place."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise

from ...arith import (
    Atom,
    Knob,
    NotProvable,
    Poly,
    Var,
    ceil_div,
    floor_div,
    maximum,
    minimum,
    poly,
    product,
    proven_negative,
    substitute,
)
from ...ir import Block, For, IterKind, LoopKind, PrimFunc, Stmt, rewrite
from ...ir.func import fresh
from ..errors import ScheduleError
from ..find import blocks_under, find_loop
from ..overlap import check_overlaps

Factor = int | Knob | None
#: Larger factors have no JSON form in a product, and no loop is as long.
MAX_FACTOR = 2**31


def rebind(block: Block, values: dict[Atom, Poly]) -> Block:
    """The block with loop variables replaced in its bindings and predicates."""
    return replace(
        block,
        binds=tuple(substitute(b, values) for b in block.binds),
        predicates=tuple(substitute(p, values) for p in block.predicates),
    )


def add_predicate(block: Block, p: Poly) -> Block:
    """The block with the predicate `p < 0`, unless it is provable or there already."""
    return (
        block
        if proven_negative(p) or p in block.predicates
        else replace(block, predicates=(*block.predicates, p))
    )


def split_extents(
    loop: Var, factors: Sequence[Factor], func: PrimFunc, at: For
) -> tuple[list[Poly], Poly | None]:
    """The extents of the new loops, and a polynomial that must be at most 0 when that depends on knobs."""
    if isinstance(factors, str) or not isinstance(factors, Sequence):
        raise ScheduleError("split", f"factors are a list such as [None, 4], got {factors!r}", func, at)
    if not factors:
        raise ScheduleError("split", "factors must name at least one new loop", func, at)
    for f in factors:
        if not (f is None or isinstance(f, Knob) or (type(f) is int and 1 <= f <= MAX_FACTOR)):
            raise ScheduleError(
                "split", f"a factor is an integer from 1 to 2**31, a knob or None, got {f!r}", func, at
            )
    if sum(f is None for f in factors) > 1:
        raise ScheduleError("split", "at most one factor may be None", func, at)
    given = product(f for f in factors if f is not None)
    if None in factors:
        return [ceil_div(loop.extent, given) if f is None else poly(f) for f in factors], None
    short = loop.extent - given
    if short.const is not None and short.const > 0:
        raise ScheduleError(
            "split", f"the factors {list(factors)} cover {given!r} of {loop.extent!r} iterations", func, at
        )
    proven = proven_negative(short - 1)
    if not proven and short.sizes():
        covers = f"the factors {list(factors)} are not known to cover all {loop.extent!r} iterations"
        raise ScheduleError("split", f"{covers}; one of them must be None", func, at)
    return [poly(f) for f in factors if f is not None], None if proven else short


def check_split(func: PrimFunc, at: For, overlap: int, count: int) -> None:
    """Serial loops only; an overlapped tile may not carry a reduction."""
    if at.kind is not LoopKind.SERIAL:
        raise ScheduleError("split", f"loop {at.var.name!r} is {at.kind} already; split it first", func, at)
    if not 0 <= overlap < count:
        raise ScheduleError(
            "split",
            f"overlap must be between 0 and {count - 1} of {count} new loops, got {overlap}",
            func,
            at,
        )
    if overlap:
        for _, b in blocks_under(at):
            if at.var in b.loop_vars(IterKind.REDUCE):
                loop = f"loop {at.var.name!r} carries the reduction of {b.name!r}"
                reason = f"{loop}; overlapped steps would be added twice"
                raise ScheduleError("split", reason, func, at)


def split(
    func: PrimFunc, loop: Var, factors: Sequence[Factor], overlap: int = 0
) -> tuple[PrimFunc, list[Var], Poly | None]:
    """Splits a loop into a nest, the first factor outermost; one factor may be None and is inferred (rounded
    up).

    before: `for i in range(10): B[i] = …`
    after `factors=[None, 4]`: `for i_0 in range(3): for i_1 in range(4): if i_0 * 4 + i_1 < 10: B[i_0 * 4 +
    i_1] = …`

    Any factor is legal: instances past the end are masked. With `overlap=n` the last n new loops form a tile
    that is moved back to end with the loop instead of being masked, so that some instances run twice: the
    tile's work must be idempotent, which lowering checks. Refused: a loop that is not serial, factors that do
    not cover the loop (of a size: whatever it is), overlapped reductions. Returns the program, the new loop
    variables, and a polynomial over knobs that must stay at most 0, if any.
    """
    at = find_loop(func, loop, "split")
    extents, short = split_extents(loop, factors, func, at)
    check_split(func, at, overlap, len(extents))
    taken = {f.var.name for path, _ in func.blocks() for f in path}
    new = [Var(fresh(f"{loop.name}_{n}", taken), e) for n, e in enumerate(extents)]
    index, scale = poly(0), poly(1)
    for v in reversed(new):
        index, scale = index + poly(v) * scale, scale * v.extent
    predicates = [index - loop.extent]
    if overlap:
        inside, tile = poly(0), poly(1)
        for v in reversed(new[-overlap:]):
            inside, tile = inside + poly(v) * tile, tile * v.extent
        base = index - inside
        # A tile larger than the loop stays at 0 and is masked; whole tiles past the end do not exist.
        index = minimum(base, maximum(loop.extent - tile, 0)) + inside
        predicates = [base - loop.extent, index - loop.extent]
    values: dict[Atom, Poly] = {loop: index}

    def below(s: Stmt) -> Stmt:
        if type(s) is Block:
            s = rebind(s, values)
            for p in predicates:
                s = add_predicate(s, p)
        return s

    def visit(s: Stmt) -> Stmt:
        if type(s) is For and s.var is loop:
            body = rewrite(at.body, below)
            for v in reversed(new):
                body = (For(v, body),)
            return body[0]
        return s

    split_ = func.rewrite(visit)
    if overlap:
        check_overlaps(split_, "split")
    return split_, new, short


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
        of_loops = set(loops)
        if (
            b.init is not None
            and b.loop_vars(IterKind.REDUCE) & of_loops
            and b.loop_vars(IterKind.SPATIAL) & of_loops
        ):
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
