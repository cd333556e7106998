"""The rule for reductions of rows: partial results in vector registers, combined across their lanes, and all
that belongs to a row under one loop over the rows.

Loops: tiles of rows outermost; inside, for each block of the group one after the other, steps · rows of the
tile · vectors beside each other · lanes. What differs in structure is a choice: whether values that several
blocks use are kept or computed anew.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass

from ..arith import Poly, Var, poly, product
from ..ir import Block, IterKind, PrimFunc, Unary, buffers_read, walk_expr
from ..ir.func import fresh
from ..schedule import BlockRV, LoopRV, Schedule, ScheduleError
from ..schedule.find import readers
from ..target import Target
from .dot_products import lane_steps, split_steps
from .groups import Group, is_elementwise
from .row_group import contiguous_steps, is_row_reduction, lane_axis, row_iters, spatial
from .sketch import Constraint

ROWS = (1, 2, 3, 4, 6, 8)
#: Vectors of partial results for each row: two additions start in each cycle and take four.
PARTS = (1, 2, 4, 8)
VECTORS = (1, 2, 4)
#: Instructions of an elementary function, about.
FUNCTION = 20
#: Instructions of one unrolled body, and of all bodies of a tile together; the generator has a limit.
MAX_BODY, MAX_TILE = 800, 2400


@dataclass(frozen=True, slots=True)
class Rows:
    """One structure. recompute: cheap values are computed wherever they are used instead of once. merge:
    values that are kept are reduced in the loop that computes them, where the next block does that."""

    recompute: bool
    merge: bool
    name: str
    fallback: bool = False

    def apply(self, sch: Schedule, group: Group, target: Target, tag: str) -> list[Constraint]:
        """Applies the structure; answers what the knobs must satisfy."""
        rule = RowsRule(sch, group, self, target, tag)
        rule.apply()
        return rule.constraints


def rows(func: PrimFunc, group: Group, target: Target) -> Iterator[Rows]:
    """The structures of a group of blocks over rows."""
    if not group.rows:
        return
    shared = [n for n in group.rows[:-1] if _is_shared(func, n)]
    cheap = [n for n in shared if _is_cheap(func, n)]
    if cheap:
        yield Rows(True, False, f"rows, recompute {' '.join(cheap)}")
    keeping = f"rows, keep {' '.join(shared)}" if shared else "rows"
    if row_iters(func.block(group.main)[1]) and any(_next(func, group.rows, n) for n in shared):
        yield Rows(False, True, f"{keeping}, reduced at once")
    yield Rows(False, False, keeping)


def _next(func: PrimFunc, names: Sequence[str], name: str) -> str | None:
    """The block right behind one, where it is a reduction of one dimension that reads what that makes."""
    following = names[names.index(name) + 1 :][:1]
    for other in following:
        b = func.block(other)[1]
        steps = [it for it, k in zip(b.iters, b.kinds, strict=True) if k is IterKind.REDUCE]
        if len(steps) == 1 and func.block(name)[1].buffer in buffers_read(b):
            return other
    return None


def _is_shared(func: PrimFunc, name: str) -> bool:
    block = func.block(name)[1]
    return is_elementwise(block) and len(readers(func, block.buffer)) > 1


def _is_cheap(func: PrimFunc, name: str) -> bool:
    return not any(type(e) is Unary for e in walk_expr(func.block(name)[1].value))


def cost(block: Block) -> int:
    """About how many instructions one vector of the block takes."""
    return sum(FUNCTION if type(e) is Unary else 1 for e in walk_expr(block.value))


class RowsRule:
    """Applies one structure to a schedule; `constraints` are what the knobs must satisfy."""

    def __init__(self, sch: Schedule, group: Group, choice: Rows, target: Target, tag: str) -> None:
        self.sch, self.group, self.choice, self.target, self.tag = sch, group, choice, target, tag
        self.constraints: list[Constraint] = []
        main = next(b for n in group.rows for _, b in [sch.func.block(n)] if is_row_reduction(b))
        #: Rows of a tile: the loop over them is unrolled.
        self.count = len(row_iters(main))
        self.tile: Poly = poly(1)
        #: For each block, how many steps of its reduction an instruction adds up in each lane.
        self.taken: dict[str, int] = {}

    def apply(self) -> None:
        """Every step, in an order in which each is legal."""
        sch = self.sch
        names = self.inlined()
        reductions = [n for n in names if sch.func.block(n)[1].is_reduction]
        blocks = [sch.func.block(n)[1] for n in names]
        if names[-1] in reductions:
            names.append(sch.cache_write(sch.get_block(names[-1]), 0, "register").name)
        steps = [_length(b, contiguous_steps(b)) for b in blocks if lane_axis(b) is not None]
        if not steps:
            raise ScheduleError("rows", "no block has an axis that lanes can run along", sch.func, blocks[-1])
        widths = self.widths(blocks, min(steps))
        self.taken = {b.name: _taken(b, self.target, widths) for b in blocks}
        steps = [
            _length(b, contiguous_steps(b)) // self.taken[b.name] for b in blocks if lane_axis(b) is not None
        ]
        self.lanes = sch.sample_categorical(widths, name=self.fresh("vl"))
        most = -(-min(steps) // self.lanes.domain[0])
        self.parts = sch.sample_categorical(_up_to(PARTS, most), name=self.fresh("u"))
        self.vectors = sch.sample_categorical(_up_to(VECTORS, most), name=self.fresh("v"))
        last, at = self.tile_rows(names[-1])
        self.limit("registers", self.tile * self.parts + self.tile, self.target.vector_registers - 2)
        self.limit(
            "parts beyond the row", poly(self.parts) * self.lanes, min(steps) + self.lanes.domain[-1] - 1
        )
        self.limit_code(blocks)
        loops = {names[-1]: last}
        # All before any is tiled: what is read of a row is a box then.
        for name in reversed(names[:-1]):
            block = sch.get_block(name)
            loops[name] = sch.get_loops(block) if at is None else sch.compute_at(block, at)
        before: LoopRV | None = None
        for name in names:
            block = sch.get_block(name)
            if name in reductions:
                self.reduction(block, loops[name], before)
                before = None
                continue
            if name != names[-1]:
                sch.set_scope(block, 0, "local")
            merges = self.choice.merge and _next(sch.func, names, name) is not None
            before = self.elementwise(name, loops[name], merges)

    def fresh(self, name: str) -> str:
        """A name of a knob that is not taken."""
        return fresh(f"{self.tag}{name}", set(self.sch.knobs))

    def inlined(self) -> list[str]:
        """Inlines what one block uses, and what may be computed anew; the blocks that are left."""
        sch, left = self.sch, list(self.group.rows)
        for name in self.group.rows[:-1]:
            block = sch.func.block(name)[1]
            if not is_elementwise(block):
                continue
            users = len(readers(sch.func, block.buffer))
            if users == 1 or (self.choice.recompute and _is_cheap(sch.func, name)):
                sch.compute_inline(sch.get_block(name))
                left.remove(name)
        return left

    def widths(self, blocks: list[Block], steps: int) -> tuple[int, ...]:
        """One and half a machine register of the widest value; the whole row where that is shorter."""
        widest = max(x.dtype.value_bytes for b in blocks for x in (b.buffer, *buffers_read(b)))
        full = self.target.lanes(widest * 8)
        return tuple(sorted({min(steps, max(2, full // 2)), min(steps, max(2, full))}))

    def tile_rows(self, last: str) -> tuple[list[LoopRV], LoopRV | None]:
        """Tiles the rows of the last block: its loops, that over the rows of a tile in its place, and the
        loop over whole tiles, which is None for a single row."""
        sch = self.sch
        block = sch.get_block(last)
        _, b = sch.func.block(last)
        loops = sch.get_loops(block)
        at = None
        if self.count:
            large = [n for n, it in enumerate(b.iters) if it.extent.const != 1]
            row = large[self.count - 1]
            extent = b.iters[row].extent.const or 1
            knob = sch.sample_categorical(_up_to(ROWS, extent), name=self.fresh("r"))
            self.tile = poly(knob)
            at, inner = sch.split(loops[row], [None, knob], overlap=1)
            loops[row] = inner
        return loops, at

    def elementwise(self, name: str, loops: list[LoopRV], merges: bool = False) -> LoopRV | None:
        """Vectors along the row, a few beside each other; the rows of the tile one after the other. `merges`:
        in the order of the reduction behind it; the loop that is to be merged with its steps."""
        sch = self.sch
        _, b = sch.func.block(name)
        large = [n for n, it in enumerate(b.iters) if it.extent.const != 1]
        tile = [loops[n] for n in large[max(0, self.count - 1) : self.count]]
        for x in tile:
            sch.unroll(x)
        columns = large[self.count :]
        if not columns:
            return None
        along = b.indices[-1].atom
        lane = next((n for n in columns if b.iters[n] is along), columns[-1])
        if lane != columns[-1]:
            sch.reorder(*(loops[n] for n in columns if n != lane), loops[lane])
        beside = self.parts if merges else self.vectors
        steps, vectors, lanes = sch.split(loops[lane], [None, beside, self.lanes])
        if merges:
            units = [x for x in loops if x.var.extent.const == 1 and x not in (*tile, loops[lane])]
            sch.reorder(steps, *units, *tile, vectors, lanes)
        sch.unroll(vectors)
        sch.vectorize(lanes)
        return steps if merges else None

    def reduction(self, block: BlockRV, loops: list[LoopRV], before: LoopRV | None) -> None:
        """Partial results for each row of the tile, vectors beside each other, which are added up to one
        vector, and its lanes to one element. before: a loop to run the steps in."""
        sch = self.sch
        _, b = sch.func.block(block.name)
        axis = lane_axis(b)
        assert axis is not None
        large = [loops[n] for n, it in enumerate(b.iters) if it in row_iters(b)]
        tile = large[-1:]
        along, apart = self.steps(b, loops)
        taken = self.taken[block.name]
        steps, vectors, lanes, *at_once = split_steps(sch, along, self.parts, self.lanes, taken)
        around = [
            x for x, it in zip(loops, b.iters, strict=True) if it in spatial(b) and x not in tile
        ] + apart
        # Loops of one turn would stand between what is merged.
        units = [x for x in around if before is not None and x.var.extent.const == 1]
        around = [x for x in around if x not in units]
        sch.reorder(*around, steps, *units, *tile, vectors, *at_once, lanes)
        sch.set_scope(block, 0, "register")
        joined = sch.rfactor(lanes, -1)
        sch.set_scope(joined, 0, "register")
        inner = self.inner(joined, vectors.var)
        parts = sch.rfactor(inner, -1)
        sch.set_scope(parts, 0, "register")
        self.finish(parts, len(tile) + 2 + len(at_once))
        self.finish(joined, len(tile) + 2)
        self.finish(block, len(tile) + 1)
        first = self.first_step(parts)
        if before is not None:
            first = sch.merge_loops(before, first)
        sch.decompose_reduction(parts, first)

    def steps(self, b: Block, loops: list[LoopRV]) -> tuple[LoopRV, list[LoopRV]]:
        """The loop over the steps that lie behind each other in memory, and those over other steps."""
        fused = contiguous_steps(b)
        others = [n for n, k in enumerate(b.kinds) if k is IterKind.REDUCE and n not in fused]
        along = loops[fused[0]] if len(fused) == 1 else self.sch.fuse(*(loops[n] for n in fused))
        return along, [loops[n] for n in others]

    def inner(self, block: BlockRV, var: Var) -> LoopRV:
        return next(x for x in self.sch.get_loops(block) if x.var is var)

    def finish(self, block: BlockRV, count: int) -> None:
        """Makes lanes of the loop over lanes, and straight-line code of the other inner ones."""
        sch = self.sch
        loops = sch.get_loops(block)
        lanes = next(x for x in loops[-count:] if x.var.extent == poly(self.lanes))
        others = [x for x in loops[-count:] if x is not lanes]
        if loops[-1] is not lanes:
            sch.reorder(*others, lanes)
        for x in others:
            sch.unroll(x)
        sch.vectorize(lanes)

    def first_step(self, block: BlockRV) -> LoopRV:
        """The outermost loop that carries the reduction."""
        carried = self.sch.func.block(block.name)[1].loop_vars(IterKind.REDUCE)
        return next(x for x in self.sch.get_loops(block) if x.var in carried)

    def limit_code(self, blocks: list[Block]) -> None:
        """Keeps the unrolled code in bounds."""
        total = poly(0)
        for b in blocks:
            merges = self.choice.merge and len(b.iters) > self.count
            count = self.parts if b.is_reduction or merges else self.vectors
            body = self.tile * count * cost(b)
            if cost(b) > 2:
                self.limit(f"unrolled {b.name}", body, MAX_BODY)
            total = total + body
        self.limit("unrolled code", total, MAX_TILE)

    def limit(self, label: str, value: Poly, at_most: int) -> None:
        if value.knobs():
            self.constraints.append(Constraint(f"{self.tag}{label}", value, at_most))


def worked(func: PrimFunc, group: Group, before: Collection[str]) -> list[str]:
    """The blocks of a scheduled group that go through whole rows, the one with most work last: not those that
    fill or use registers only. before: the blocks that there were before the schedule."""
    own = [b for _, b in func.blocks() if b.name in group.rows or b.name not in before]
    whole = [b for b in own if any(x.scope != "register" for x in buffers_read(b))]
    return [b.name for b in sorted(whole, key=lambda b: (cost(b), len(b.iters)))]


def _length(b: Block, steps: Sequence[int]) -> int:
    return product(b.iters[n].extent for n in steps).const or 1


def _taken(b: Block, target: Target, widths: Sequence[int]) -> int:
    """How many steps an instruction adds up in each lane."""
    steps = contiguous_steps(b)
    return lane_steps(b, steps[0], target, widths) if len(steps) == 1 else 1


def _up_to(domain: tuple[int, ...], most: int) -> tuple[int, ...]:
    return tuple(x for x in domain if x <= most) or (1,)
