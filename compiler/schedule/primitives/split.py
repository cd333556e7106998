"""split: one loop as a nest, its tail masked, overlapped, or in a nest of its own."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

from ...arith import (
    Atom,
    Fn,
    Knob,
    Poly,
    Var,
    ceil_div,
    floor_div,
    maximum,
    minimum,
    poly,
    product,
    proven_negative,
)
from ...ir import Block, For, IterKind, LoopKind, PrimFunc, Stmt, rewrite
from ...ir.func import fresh
from ..errors import ScheduleError
from ..find import blocks_under, find_loop
from ..overlap import check_overlaps
from .loops import add_predicate, rebind
from .partition import check_partition, partitioned

Factor = int | Knob | None
Tail = Literal["mask", "overlap", "partition"]
TAILS: tuple[Tail, ...] = ("mask", "overlap", "partition")
#: Larger factors have no JSON form in a product, and no loop is as long.
MAX_FACTOR = 2**31
#: New loops of one split.
MAX_LOOPS = 32


def split_extents(
    loop: Var, factors: Sequence[Factor], func: PrimFunc, at: For
) -> tuple[list[Poly], list[Poly]]:
    """The extents of the new loops, none larger than the loop; and polynomials that must be at most 0 when
    that depends on knobs."""
    if isinstance(factors, str) or not isinstance(factors, Sequence):
        raise ScheduleError("split", f"factors are a list such as [None, 4], got {factors!r}", func, at)
    if not factors:
        raise ScheduleError("split", "factors must name at least one new loop", func, at)
    if len(factors) > MAX_LOOPS:
        reason = f"at most {MAX_LOOPS} new loops are made, got {len(factors)} factors"
        raise ScheduleError("split", reason, func, at)
    for f in factors:
        if not (f is None or isinstance(f, Knob) or (type(f) is int and 1 <= f <= MAX_FACTOR)):
            raise ScheduleError(
                "split", f"a factor is an integer from 1 to 2**31, a knob or None, got {f!r}", func, at
            )
    if sum(f is None for f in factors) > 1:
        raise ScheduleError("split", "at most one factor may be None", func, at)
    extent, open_ = loop.extent, []
    tight = [None if f is None else _at_most(f, extent) for f in factors]
    for t in tight:
        beyond = poly(0) if t is None else t - extent
        if (_bounds(beyond) or (0, 0))[0] > 0:
            reason = f"every value of the knob {t!r} is above the {extent!r} iterations"
            raise ScheduleError("split", reason, func, at)
        if _decided_by_knobs(beyond) and not _holds(beyond):
            open_.append(beyond)
    given = product(t for t in tight if t is not None)
    if None in tight:
        return [ceil_div(extent, given) if t is None else t for t in tight], open_
    short = extent - given
    if short.const is not None and short.const > 0:
        raise ScheduleError(
            "split", f"the factors {list(factors)} cover {given!r} of {extent!r} iterations", func, at
        )
    if not _holds(short):
        if short.sizes():
            covers = f"the factors {list(factors)} are not known to cover all {extent!r} iterations"
            raise ScheduleError("split", f"{covers}; one of them must be None", func, at)
        open_.append(short)
    return [t for t in tight if t is not None], open_


def _at_most(f: int | Knob, extent: Poly) -> Poly:
    """An integer factor no larger than the loop: more iterations would all be masked."""
    return poly(min(f, extent.const)) if type(f) is int and extent.const is not None else poly(f)


def _decided_by_knobs(p: Poly) -> bool:
    """Whether p is a number once every knob has a value, and not before."""
    return bool(p.knobs()) and all(_of_knobs(a) for a in p.atoms())


def _of_knobs(a: Atom) -> bool:
    if type(a) is Fn:
        return all(_of_knobs(x) for x in a.a.atoms() | a.b.atoms())
    return type(a) is Knob


def _holds(p: Poly) -> bool:
    """Whether p <= 0 for every value of the knobs."""
    return proven_negative(p - 1) or (_bounds(p) or (1, 1))[1] <= 0


def _bounds(p: Poly) -> tuple[int, int] | None:
    """Between what p lies while its knobs take the values of their domains; None with anything else in it."""
    low = high = 0
    for m, c in p.terms.items():
        least = most = c
        for a in m:
            if type(a) is not Knob:
                return None
            least, most = (
                least * (a.domain[0] if c > 0 else a.domain[-1]),
                most * (a.domain[-1] if c > 0 else a.domain[0]),
            )
        low, high = low + least, high + most
    return low, high


def check_split(func: PrimFunc, at: For, overlap: int, count: int) -> None:
    """Serial loops only; an overlapped tile may not carry a reduction."""
    if at.kind is not LoopKind.SERIAL:
        raise ScheduleError("split", f"loop {at.var.name!r} is {at.kind} already; split it first", func, at)
    if type(overlap) is not int or not 0 <= overlap < count:
        raise ScheduleError(
            "split",
            f"overlap must be between 0 and {count - 1} of {count} new loops, got {overlap!r}",
            func,
            at,
        )
    if overlap:
        for _, b in blocks_under(at):
            if at.var in b.loop_vars(IterKind.REDUCE):
                loop = f"loop {at.var.name!r} carries the reduction of {b.name!r}"
                reason = f"{loop}; overlapped steps would be added twice"
                raise ScheduleError("split", reason, func, at)


def check_tail(func: PrimFunc, at: For, overlap: int, tail: str) -> None:
    """A tail that is known, and overlap for the tails that have one."""
    if tail not in TAILS:
        raise ScheduleError("split", f"unknown tail {tail!r}; known: {', '.join(TAILS)}", func, at)
    if tail == "partition" and overlap != 0:
        reason = "a partitioned tail is a nest of its own; it has no overlap"
        raise ScheduleError("split", reason, func, at)


def split(
    func: PrimFunc, loop: Var, factors: Sequence[Factor], overlap: int = 0, tail: str = "mask"
) -> tuple[PrimFunc, list[Var], list[Poly]]:
    """Splits a loop into a nest, the first factor outermost; one factor may be None and is inferred (rounded
    up). A factor larger than the loop becomes its extent; of a knob that is a constraint.

    before: `for i in range(10): B[i] = …`
    after `factors=[None, 4]`: `for i_0 in range(3): for i_1 in range(4): if i_0 * 4 + i_1 < 10: B[i_0 * 4 +
    i_1] = …`
    after `factors=[None, 4], tail="partition"`: `for i_0 in range(2): for i_1 in range(4): B[i_0 * 4 + i_1] =
    …` then `for i_tail in range(2): B[i_tail + 8] = …`

    Any factor is legal: instances past the end are masked. With `overlap=n` the last n new loops form a tile
    that is moved back to end with the loop instead of being masked, so that some instances run twice: the
    tile's work must be idempotent, which lowering checks; `tail="overlap"` alone means all new loops but the
    first. With `tail="partition"` whole tiles run without predicates, and the iterations left over in a loop
    behind them, with blocks of its own (`B_1`); the loops returned are those of the whole tiles.
    Refused: a loop that is not serial, factors that do not cover the loop (of a size: whatever it is),
    overlapped reductions; for a partition, no whole tile, tiles that depend on knobs, a reduction that may
    not begin in a whole tile. Returns the program, the new loop variables, and polynomials over knobs that
    must stay at most 0.
    """
    at = find_loop(func, loop, "split")
    check_tail(func, at, overlap, tail)
    extents, open_ = split_extents(loop, factors, func, at)
    if tail == "partition":
        func, new = _whole_tiles(func, at, extents)
        return func, new, open_
    if tail == "overlap" and overlap == 0:
        overlap = len(extents) - 1
    check_split(func, at, overlap, len(extents))
    func, new = _nested(func, at, extents, overlap, loop.name)
    if overlap:
        check_overlaps(func, "split")
    return func, new, open_


def _nested(
    func: PrimFunc, at: For, extents: Sequence[Poly], overlap: int, name: str
) -> tuple[PrimFunc, list[Var]]:
    """The loop as a nest over these extents. Checks nothing."""
    loop = at.var
    taken = {f.var.name for path, _ in func.blocks() for f in path}
    new = [Var(fresh(f"{name}_{n}", taken), e) for n, e in enumerate(extents)]
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

    return func.rewrite(visit), new


def check_whole_tiles(func: PrimFunc, at: For, whole: Poly, tile: Poly) -> None:
    """How many whole tiles there are does not depend on knobs, and is not 0."""
    if whole.knobs():
        reason = (
            "the tail of a partition may not depend on knobs: where there is none, there is no loop for it"
        )
        raise ScheduleError("split", reason, func, at)
    if whole.const == 0:
        reason = f"there is no whole tile of {tile!r} in {at.var.extent!r} iterations"
        raise ScheduleError("split", reason, func, at)
    check_partition(func, at, whole, "split")


def _whole_tiles(func: PrimFunc, at: For, extents: Sequence[Poly]) -> tuple[PrimFunc, list[Var]]:
    """A nest over whole tiles, and a loop over the iterations behind them where there are any."""
    loop, tile = at.var, product(extents[1:])
    whole = floor_div(loop.extent, tile)
    check_whole_tiles(func, at, whole, tile)
    rest = loop.extent - whole * tile
    if rest.const != 0:
        taken = {f.var.name for path, _ in func.blocks() for f in path}
        cuts = [poly(0), whole * tile, loop.extent]
        func, (main, _) = partitioned(func, at, cuts, [loop.name, fresh(f"{loop.name}_tail", taken)])
        at = find_loop(func, main, "split")
    func, new = _nested(func, at, [whole, *extents[1:]], 0, loop.name)
    check_overlaps(func, "split")
    return func, new
