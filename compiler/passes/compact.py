"""Allocated buffers as small as their use."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from ..arith import (
    Atom,
    Fn,
    Poly,
    Var,
    lower,
    maximum,
    not_negative,
    poly,
    proven_negative,
    region,
    substitute,
    upper,
)
from ..arith.region import Range
from ..ir import Block, Buffer, Load, LoopKind, PrimFunc, Stmt, guarded_loads, map_loads
from ..ir.annotations import made_ahead, moved_alignments
from ..ir.visit import Path
from .fused import digits
from .predicates import Conjunction, split_predicates

#: Annotation of a block that may run past its predicates: what it writes there is nobody's.
FREE = "free"


@dataclass(frozen=True, slots=True, eq=False)
class _Access:
    path: Path
    block: Block
    indices: tuple[Poly, ...]
    is_write: bool
    is_sure: bool  # every instance exists and makes the access, which is therefore inside of the buffer


@dataclass(frozen=True, slots=True, eq=False)
class _Box:
    """The part of a buffer that one iteration of the loops around all its accesses uses."""

    buffer: Buffer
    origin: tuple[Poly, ...]
    common: frozenset[Var]
    shared: tuple[Poly, ...]  # predicates of every block that writes the buffer
    lead: tuple[Poly, ...] = ()  # what moves the origin, where each of the boxes is kept


@dataclass(frozen=True, slots=True)
class Compact:
    """Shrinks each allocated buffer to the box that is used under the lowest loop around all its accesses.

    before: `for i: { T[i] = A[i]; B[i] = T[i] }` with `T: float32[64]`
    after: `for i: { T[0] = A[i]; B[i] = T[0] }` with `T: float32[1]`

    A loop from one iteration of which values go to the next is none of these: what an iteration reads must
    lie in what it writes. The box holds every access, also those of lanes past a predicate, so that none
    needs a guard. A block gets the annotation `free` when it may run past its predicates: the whole box is
    then nobody's, or it writes beyond the buffer's own extent. Parameters stay. Runs on simplified programs.

    A buffer that is made ahead of the calls keeps the box of every iteration, one behind the other, and
    becomes a constant: `T: float32[64, 1]`, `T[i, 0] = A[i]`.
    """

    def run(self, func: PrimFunc) -> PrimFunc:
        uses: dict[Buffer, list[_Access]] = {b: [] for b in func.allocs}
        for path, b in func.blocks():
            if b.buffer in uses:
                uses[b.buffer].append(_Access(path, b, b.indices, True, not b.predicates))
            for x, known in guarded_loads(b.value):
                if x.buffer in uses:
                    sure = not (b.predicates or known)
                    uses[x.buffer].append(_Access(path, b, x.indices, False, sure))
        ahead = made_ahead(func)
        boxes = {b: _box(b, accesses, keep=b in ahead) for b, accesses in uses.items()}

        def move(x: Load) -> Load:
            box = boxes.get(x.buffer)
            return x if box is None else Load(box.buffer, _shifted(x.indices, box))

        def visit(s: Stmt) -> Stmt:
            if type(s) is not Block:
                return s
            value = map_loads(s.value, move)
            box = boxes.get(s.buffer)
            # Only this pass may say so: a program may come with any annotation.
            annotations = tuple(a for a in s.annotations if a[0] != FREE)
            if box is None:
                return replace(s, value=value, annotations=annotations)
            annotations = moved_alignments(annotations, len(box.lead))
            exist, _ = split_predicates(s)
            if exist and _is_free(s, exist, box):
                annotations = (*annotations, (FREE, 1))
            return replace(
                s, buffer=box.buffer, indices=_shifted(s.indices, box), value=value, annotations=annotations
            )

        return replace(func.rewrite(visit), allocs=tuple(box.buffer for box in boxes.values()))


def _shifted(indices: Sequence[Poly], box: _Box) -> tuple[Poly, ...]:
    return (*box.lead, *(i - o for i, o in zip(indices, box.origin, strict=True)))


def _is_free(b: Block, exist: Conjunction, box: _Box) -> bool:
    """Whether each predicate keeps all writers from the whole box, or excludes only what lies beyond the
    buffer's extent.
    """
    beyond = [i - extent for i, extent in zip(b.indices, b.buffer.shape, strict=True)]
    return all(p in beyond or (p in box.shared and p.vars() <= box.common) for p in exist)


def _box(buffer: Buffer, accesses: list[_Access], *, keep: bool = False) -> _Box:
    paths = [a.path for a in accesses]
    depth = 0
    for level in zip(*paths, strict=False):
        # Under a common vector loop each lane would own its element, and the buffer would have one for all
        # of them.
        if any(f is not level[0] for f in level) or level[0].kind is LoopKind.VECTORIZED:
            break
        depth += 1
    while depth:
        inner = frozenset(f.var for p in paths for f in p[depth:])
        ranges = region([a.indices for a in accesses], inner)
        if ranges is not None and all(not s.vars() for _, s in ranges) and _afresh(accesses, inner):
            break
        depth -= 1
    else:
        inner = frozenset(f.var for p in paths for f in p)
        ranges = region([a.indices for a in accesses], inner)
        if ranges is None or any(s.vars() for _, s in ranges):
            ranges = _bounds(buffer, accesses)
    # A span between loops over sizes may come out below 0, where one of these is empty and nothing is used.
    new = replace(buffer, shape=tuple(not_negative(s) for _, s in ranges))
    lead: tuple[Poly, ...] = ()
    if keep:
        origin = [base for base, _ in ranges]
        moving = [d for f in paths[0][:depth] for d in digits(f.var, origin)]
        lead = tuple(value for value, _ in moving)
        new = replace(new, shape=(*(e for _, e in moving), *new.shape), scope="global", constant=True)
    first, *others = [a.block.predicates for a in accesses if a.is_write] or [()]
    shared = tuple(p for p in first if all(p in o for o in others))
    return _Box(new, tuple(b for b, _ in ranges), frozenset(f.var for f in paths[0][:depth]), shared, lead)


def _bounds(buffer: Buffer, accesses: list[_Access]) -> list[Range]:
    """The box around all accesses, whatever their form. Bounds that are not tight do not lead out of the
    buffer where it is known that the accesses do not."""
    out: list[Range] = []
    for d, extent in enumerate(buffer.shape):
        lows = [_inside(lower(a.indices[d]), extent, a) for a in accesses]
        highs = [_inside(upper(a.indices[d]), extent, a) for a in accesses]
        if all(p.const is not None for p in lows + highs):
            low, high = min(p.const or 0 for p in lows), max(p.const or 0 for p in highs)
            out.append((poly(low), poly(high - low + 1)))
            continue
        # Over sizes the ends cannot be compared: from 0, or below, to the highest of all.
        below, top = poly(0), poly(0)
        for p in lows:
            below = maximum(-_divisible(p), below, sure=True)
        for p in highs:
            top = maximum(_divisible(p), top, sure=True)
        out.append((-below, top + below + 1))
    return out


def _divisible(bound: Poly) -> Poly:
    """A bound as code may compute it: where a loop is empty, what its bound divides, or takes the minimum of,
    may be below 0."""
    values: dict[Atom, Poly] = {}
    for a in bound.atoms():
        if type(a) is Fn:
            x, y = _divisible(a.a), _divisible(a.b)
            if a.op != "max" and not proven_negative(-lower(x) - 1):
                x = maximum(x, 0)
            if a.op == "min" and not proven_negative(-lower(y) - 1):
                y = maximum(y, 0)
            values[a] = poly(Fn(a.op, x, y))
    return substitute(bound, values) if values else bound


def _inside(bound: Poly, extent: Poly, a: _Access) -> Poly:
    if not a.is_sure or bound.const is None or extent.const is None:
        return bound
    return poly(min(max(bound.const, 0), extent.const - 1))


def _afresh(accesses: list[_Access], inner: frozenset[Var]) -> bool:
    """Whether an iteration of the common loops reads only what it has written itself.

    Boxes that move upwards with the loops are compared at their lower ends only: beyond the upper end lies
    what no iteration has written yet, so a read past it is that of a lane that is masked.
    """
    writes = region([a.indices for a in accesses if a.is_write], inner)
    reads_of = [a.indices for a in accesses if not a.is_write]
    if not reads_of:
        return True
    reads = region(reads_of, inner)
    if writes is None or reads is None:
        return False
    for (w, w_span), (r, r_span) in zip(writes, reads, strict=True):
        gap = (r - w).const
        if gap is None or gap < 0:
            return False
        rising = all(c > 0 or not m for m, c in w.terms.items())
        past = (r + r_span - w - w_span).const
        if not rising and (past is None or past > 0):
            return False
    return True
