"""The rule for transposes and changes of layout: blocks that are read along one dimension and written along
another, by way of registers."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from ..arith import Fn, Knob, Poly, Var, poly
from ..ir import Block, InBounds, IndexValue, Load, PrimFunc, buffers_read, loads, walk_expr
from ..schedule import BlockRV, LoopRV, Schedule, ScheduleError
from ..target import Target
from .accesses import row_places
from .groups import Group
from .sketch import Constraint

#: Rows and columns of a block in registers; more than 16 rows leave no registers for what comes between.
TILES = (4, 8, 16)
#: Blocks beside each other along what is read, and along what is written, before the next step outside:
#: stores to many rows, whose lines are not full, cost more than loads from many.
ALONG = (1, 4, 16)
ACROSS = (4, 16)
#: Rows that start at so few places of a page push each other out of the first-level cache: a line is to be
#: used up at once.
CROWDED = 4

#: Columns of what is written below which a block is no square.
SHORT = 8


def stride_of(x: Load, it: Var) -> int | None:
    """How many elements apart the places of successive values of `it` are; None where that varies."""
    flat, step = poly(0), poly(1)
    for i, extent in zip(reversed(x.indices), reversed(x.buffer.shape), strict=True):
        flat, step = flat + i * step, step * extent
    stride = flat.coefficient(it)
    return stride if it not in (flat - poly(it) * stride).vars() else None


def runs(block: Block) -> list[list[Var]]:
    """The iteration variables in groups of successive ones that every access walks in one go, or does not
    see."""
    accesses = [(block.buffer, block.indices), *((x.buffer, x.indices) for x in loads(block.value))]
    groups: list[list[Var]] = []
    fixed = any(type(e) in (InBounds, IndexValue) for e in walk_expr(block.value))
    for it in block.iters:
        last = groups[-1][-1] if groups else None
        if last is not None and not fixed and all(_follows(b.shape, i, last, it) for b, i in accesses):
            groups[-1].append(it)
        else:
            groups.append([it])
    return groups


def _follows(shape: tuple[Poly, ...], indices: tuple[Poly, ...], first: Var, second: Var) -> bool:
    """Whether `second` is the dimension right behind `first`, in full, or neither is there."""
    using = [d for d, i in enumerate(indices) if i.vars() & {first, second}]
    if not using:
        return True
    return (
        len(using) == 2
        and using[1] == using[0] + 1
        and indices[using[0]].atom is first
        and indices[using[1]].atom is second
        and shape[using[1]] == second.extent
    )


@dataclass(frozen=True, slots=True)
class Moves:
    """Square blocks: rows are loaded along what is contiguous in the source, turned in registers, and stored
    along what is contiguous in the target. inside: the loops that neither moves along run inside of those
    over the columns of the source, since its lines go on there."""

    inside: bool = False
    fallback: bool = False

    @property
    def name(self) -> str:
        return "blocks, rows outermost" if self.inside else "blocks"

    def apply(self, sch: Schedule, group: Group, target: Target, tag: str) -> list[Constraint]:
        """Applies the structure; raises ScheduleError where no read is strided."""
        main = sch.get_block(group.main)
        _split_divided(sch, main)
        groups = runs(sch.func.block(group.main)[1])
        if any(len(g) > 1 for g in groups):
            sch.transform_block_layout(main, lambda *i: _joined(groups, i))
        b = sch.func.block(group.main)[1]
        lane = b.iters[-1]
        turned = turned_reads(b)
        if not turned or b.indices[-1].vars() != {lane}:
            raise ScheduleError("moves", "no read runs across what is written", sch.func, b)
        along = turned[0][1]
        reads = buffers_read(b)
        copies = [sch.reindex(main, "read", reads.index(x.buffer)) for x, u in turned if u is along]
        for c in copies:
            sch.set_scope(c, 0, "register")
        loops = sch.get_loops(main)
        u, v = loops[b.iters.index(along)], loops[-1]
        others = [x for x in loops if x is not u and x is not v]
        widest = max(x.dtype.bytes for x in (b.buffer, *reads))
        full = max(2, min(16, target.vector_bytes // widest))
        longer = max(along.extent.const or 1, lane.extent.const or 1)
        sizes = tuple(t for t in TILES if t <= min(full, longer))[-2:]
        if not sizes:
            raise ScheduleError("moves", "nothing is as long as a block", sch.func, b)
        if min(map(row_places, (b.buffer, *reads))) <= CROWDED:
            sizes = sizes[-1:]
        elif widest > 1 and (lane.extent.const or 1) < SHORT:
            # Few columns are put together by half registers faster than by whole ones: 3 x 224 x 224 of
            # float32 takes half the time.
            sizes = sizes[:1]
        tile = sch.sample_categorical(sizes, name=f"{tag}tile")
        q = sch.sample_categorical(_fitting(ALONG, along, tile), name=f"{tag}along")
        p = sch.sample_categorical(_fitting(ACROSS, lane, tile), name=f"{tag}across")
        u0, u1, u2 = _halves(sch, u, q, tile)
        v0, v1, v2 = _halves(sch, v, p, tile)
        outer = [v0, *others, u0] if self.inside else [*others, u0, v0]
        sch.reorder(*outer, u1, v1, u2, v2)
        for c in copies:
            copy = sch.func.block(c.name)[1]
            at = [copy.iters.index(it) for it in copy.iters if it.name in (along.name, lane.name)]
            made = sch.compute_at(c, v1)
            rows, columns = (made[n] for n in sorted(at, key=lambda n: copy.iters[n].name == along.name))
            sch.reorder(*(x for x in made if x is not columns), columns)
            sch.unroll(rows)
            sch.vectorize(columns)
        sch.unroll(u2)
        sch.vectorize(v2)
        return []


def _fitting(counts: tuple[int, ...], it: Var, tile: Knob) -> tuple[int, ...]:
    """Those of which the loop is as long as most of the blocks."""
    extent = it.extent.const or 1
    return tuple(n for n in counts if (n - 1) * tile.domain[-1] < extent) or (1,)


def divided(b: Block) -> dict[Var, int]:
    """The iteration variables that a read takes apart, as in `A[v // 16, w, v % 16]`, and by what."""
    found: dict[Var, int] = {}
    for fn in {a for x in loads(b.value) for i in x.indices for a in i.atoms()}:
        if type(fn) is Fn and fn.op == "floordiv" and fn.b.const is not None:
            it, by = fn.a.atom, fn.b.const
            if type(it) is Var and it in b.iters and (it.extent.const or 1) % by == 0:
                found[it] = min(by, found.get(it, by))
    return found


def _split_divided(sch: Schedule, main: BlockRV) -> None:
    """Makes two iteration variables of each that a read takes apart."""
    b = sch.func.block(main.name)[1]
    by = divided(b)
    if not by:
        return

    def apart(*indices: Any) -> tuple[Any, ...]:
        out: list[Any] = []
        for it, i in zip(b.iters, indices, strict=True):
            out += [i // by[it], i % by[it]] if it in by else [i]
        return tuple(out)

    sch.transform_block_layout(main, apart)


def _halves(sch: Schedule, loop: LoopRV, beside: Knob, tile: Knob) -> list[LoopRV]:
    """The loop over blocks in two steps, and over the places of a block; all of a short one is one block."""
    extent = loop.var.extent.const or 1
    return sch.split(loop, [None, beside, tile] if extent >= tile.domain[0] else [None, 1, extent])


def _joined(groups: list[list[Var]], indices: tuple[Any, ...]) -> tuple[Any, ...]:
    out: list[Any] = []
    n = 0
    for g in groups:
        value = indices[n]
        for it, i in zip(g[1:], indices[n + 1 :], strict=False):
            value = value * it.extent.const + i
        out.append(value)
        n += len(g)
    return tuple(out)


def turned_reads(b: Block) -> list[tuple[Load, Var]]:
    """The reads that stride along the last iteration variable, and run along another one."""
    lane = b.iters[-1]
    found: list[tuple[Load, Var]] = []
    for x in loads(b.value):
        if not any(lane in i.vars() for i in x.indices) or stride_of(x, lane) == 1:
            continue
        unit = next((it for it in b.iters if it is not lane and stride_of(x, it) == 1), None)
        if unit is not None and all(y.buffer is not x.buffer for y, _ in found):
            found.append((x, unit))
    return found


def moves(func: PrimFunc, group: Group, target: Target) -> Iterator[Moves]:
    """The structures of an elementwise block that reads across what it writes."""
    block = func.block(group.main)[1]
    if block.is_reduction or not block.iters or not (turned_reads(block) or divided(block)):
        return
    if any(p.atom is not it for p, it in zip(block.indices, block.iters, strict=False)):
        return
    yield Moves()
    if len(runs(block)) > 2:
        yield Moves(inside=True)
