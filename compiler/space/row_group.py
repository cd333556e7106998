"""Which blocks of a program are worked off row by row: reductions of the same rows with the elementwise
blocks between, before and behind them."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from ..arith import Poly, Var, product
from ..ir import (
    Binary,
    Block,
    InBounds,
    IndexValue,
    IterKind,
    Load,
    PrimFunc,
    buffers_read,
    loads,
    walk_expr,
)
from ..ir.rules import REDUCERS
from ..schedule.find import readers, writers
from ..schedule.primitives.inline import is_permutation
from .rows_in_memory import last_dim

#: Steps below which a loop is too short for vectors beside each other.
SHORT = 64


def lane_axis(b: Block) -> int | None:
    """The position of the reduce iteration variable along which every read that moves with it is contiguous;
    None where there is none."""
    reads = [x for x in loads(b.value) if x.buffer is not b.buffer]
    for n in reversed(range(len(b.iters))):
        it = b.iters[n]
        if b.kinds[n] is not IterKind.REDUCE:
            continue
        moved = [x for x in reads if any(it in i.vars() for i in x.indices)]
        if moved and all(_is_contiguous(x, it) for x in moved):
            return n
    return None


def _is_contiguous(x: Load, it: Var) -> bool:
    d = last_dim(x.buffer)
    others = (*x.indices[:d], *x.indices[d + 1 :], x.indices[d] - it)
    return x.indices[d].coefficient(it) == 1 and not any(it in i.vars() for i in others)


def contiguous_steps(b: Block) -> list[int]:
    """The positions of the reduce iteration variables that run as one, through what lies in memory one
    element after the other: the one of `lane_axis`, and, where that is short and they make it long, those
    before it that walk whole dimensions."""
    axis = lane_axis(b)
    if axis is None:
        return []
    found = [axis]
    reads = [x for x in loads(b.value) if x.buffer is not b.buffer]
    divides = any(type(e) in (InBounds, IndexValue) for e in walk_expr(b.value))
    while not divides and found[0] > 0 and b.kinds[found[0] - 1] is IterKind.REDUCE:
        more = [found[0] - 1, *found]
        tail = [b.iters[n] for n in more]
        if (product(it.extent for it in tail[1:]).const or SHORT) >= SHORT:
            break
        if not all(_walks(x, tail) or not _moving(x) & set(tail) for x in reads):
            break
        found = more
    long = (product(b.iters[n].extent for n in found).const or SHORT) >= 2 * SHORT
    return found if long else [axis]


def _moving(x: Load) -> set[Var]:
    return {v for i in x.indices for v in i.vars()}


def _walks(x: Load, iters: Sequence[Var]) -> bool:
    """Whether the last indices are the iteration variables, each over the whole dimension."""
    last, shape = x.indices[-len(iters) :], x.buffer.shape[-len(iters) :]
    alone = [i.atom for i in last] == list(iters) and not any(
        v in i.vars() for v in iters for i in x.indices[: -len(iters)]
    )
    return alone and all(it.extent == e for it, e in zip(iters, shape, strict=True))


def is_row_reduction(b: Block) -> bool:
    """Whether the block reduces rows that lie in memory one element after the other: rows and steps index
    different dimensions, and something is read only once."""
    value = b.value
    if b.init is None or b.predicates or type(value) is not Binary or value.op not in REDUCERS:
        return False
    if not is_at(value.a, b) or [i.atom for i in b.indices] != spatial(b):
        return False
    lane = lane_axis(b)
    if lane is None:
        return False
    rows = row_iters(b)
    once = False
    for x in loads(value.b):
        kinds = [{b.kinds[b.iters.index(v)] for v in i.vars()} for i in x.indices]
        if x.buffer is b.buffer or any(len(k) > 1 for k in kinds):
            return False
        once = once or _moving(x) >= {b.iters[lane], *rows}
    return once


def is_at(e: object, b: Block) -> bool:
    """Whether the expression is the element that the block writes."""
    return type(e) is Load and e.buffer is b.buffer and e.indices == b.indices


def spatial(b: Block) -> list[Var]:
    """The iteration variables that are no steps of a reduction."""
    return [it for it, k in zip(b.iters, b.kinds, strict=True) if k is IterKind.SPATIAL]


def row_iters(b: Block) -> list[Var]:
    """The spatial iteration variables of a row reduction that take more than one value."""
    return [it for it in spatial(b) if it.extent.const != 1]


def row_group(func: PrimFunc, main: Block, taken: Collection[str] = ()) -> tuple[str, ...]:
    """The blocks, in program order, that are worked off together with a row reduction: at least itself.

    Each computes from a row, or for a row, what belongs to that row; only the last one is needed by others.
    """
    rows = [it.extent for it in row_iters(main)]
    blocks = [b for _, b in func.blocks()]
    members = [main]
    while True:
        free = (b for b in blocks if b not in members and b.name not in taken)
        joining = next((b for b in free if _joins(func, b, members, rows)), None)
        if joining is None:
            break
        members.append(joining)
    members.sort(key=blocks.index)
    return tuple(b.name for b in members) if _is_closed(func, members, blocks) else (main.name,)


def _joins(func: PrimFunc, b: Block, members: Sequence[Block], rows: Sequence[Poly]) -> bool:
    if b.is_reduction:
        own = row_iters(b) if is_row_reduction(b) else None
        own = own if own is not None and len(own) == len(rows) else None
    else:
        own = _leading(b, len(rows))
    if own is None or [it.extent for it in own] != list(rows) or writers(func, b.buffer) != [b]:
        return False
    made = {m.buffer for m in members if m.buffer not in func.params}
    used = [(x, own) for x in loads(b.value) if x.buffer in made]
    if b.buffer not in func.params:
        for m in members:
            theirs = row_iters(m) if m.is_reduction else _leading(m, len(rows)) or []
            used += [(x, theirs) for x in loads(m.value) if x.buffer is b.buffer]
    return bool(used) and all(_reads_row(x, its) for x, its in used)


def _leading(b: Block, count: int) -> list[Var] | None:
    """The iteration variables that say which row an elementwise block writes to."""
    if b.init is not None or b.predicates or not is_permutation(b.indices, b.iters):
        return None
    large = [i.atom for i in b.indices if i.vars() and _extent(b, i) != 1]
    first = [it for it in b.iters if it.extent.const != 1][:count]
    return first if len(first) == count and large[:count] == first else None


def _extent(b: Block, i: Poly) -> int | None:
    a = i.atom
    return a.extent.const if isinstance(a, Var) else None


def _reads_row(x: Load, rows: Sequence[Var]) -> bool:
    """Whether the leading indices, but those of dimensions of one element, are the row's."""
    large = [i for i, e in zip(x.indices, x.buffer.shape, strict=True) if e.const != 1]
    return len(large) >= len(rows) and all(i.atom is it for i, it in zip(large, rows, strict=False))


def _is_closed(func: PrimFunc, members: Sequence[Block], blocks: Sequence[Block]) -> bool:
    """Whether only the last block is needed by others, and all that comes from others is there before the
    first one."""
    for b in members[:-1]:
        if b.buffer in func.params or any(r not in members for r in readers(func, b.buffer)):
            return False
    first = blocks.index(members[0])
    return not any(
        w not in members and blocks.index(w) > first
        for b in members
        for x in buffers_read(b)
        for w in writers(func, x)
    )
