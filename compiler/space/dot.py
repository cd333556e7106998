"""The rule for products of rows with rows, such as of weights stored [N, K]: the lanes run along the
reduction, and each element of the register tile is a vector of partial sums, whose lanes are added up at the
end.

Loops, outermost first: batches · whole tiles · middle tiles · reduction · unrolled reduction · register tile
· lanes. Nothing is packed, so that it pays where few rows meet each row of weights.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from math import prod

from ..arith import poly
from ..ir import Binary, Block, IterKind, Load, PrimFunc, Unary, buffers_read, loads, walk_expr
from ..schedule import BlockRV, LoopRV, Schedule
from ..schedule.find import writers
from ..target import Target
from .batches import batches
from .contraction import lane_use
from .dot_products import lane_steps, split_steps
from .factors import MAX_BODY, MAX_LOADS, fit
from .groups import Group
from .lanes import copy_in_lanes, lane_widths
from .sketch import Constraint
from .tiling import Tiling
from .windows import Windows

#: Rows of a register tile, and register tiles beside each other.
ROWS = (1, 2, 3, 4, 5, 6, 8)
TILES = (1, 2, 4, 8, 16)
STEPS = (1, 2, 4)
#: With more rows on either side a packed copy of the other one costs little.
MAX_ROWS = 32
#: Multiply-adds in flight, below which they wait for each other.
MIN_SUMS = 8


@dataclass(frozen=True, slots=True)
class Dot:
    """One structure. step: the position of the iteration variable whose steps are lanes."""

    step: int
    name: str
    fallback: bool = False

    def apply(self, sch: Schedule, group: Group, target: Target, tag: str) -> list[Constraint]:
        """Applies the structure; answers what the knobs must satisfy."""
        tiles = DotTiles(sch, group, self, target, tag)
        tiles.apply()
        return tiles.constraints


def dots(func: PrimFunc, group: Group, target: Target) -> Iterator[Dot]:
    """The structure of a sum of products whose factors are both contiguous along the last reduction: not that
    of the steps of a window, which share what they read."""
    _, main = func.block(group.main)
    step, windows = _step(main), Windows.of(main)
    if step is None or group.rows or not _tiled(main) or _rows(main) > MAX_ROWS:
        return
    if windows is not None and main.iters[step] in windows.steps:
        return
    yield Dot(step, f"lanes {main.iters[step].name}, added up")


def _step(main: Block) -> int | None:
    """The position of the reduction that moves each read by one element."""
    value = main.value
    if not main.is_reduction or type(value) is not Binary or value.op != "add" or type(value.a) is not Load:
        return None
    reads = [x for x in loads(value.b) if x.buffer is not main.buffer]
    for n, (it, kind) in enumerate(zip(main.iters, main.kinds, strict=True)):
        contiguous = len(reads) > 1 and all(lane_use(x, it) == "unit" for x in reads)
        if kind is IterKind.REDUCE and (it.extent.const or 0) >= 4 and contiguous:
            return n
    return None


def _tiled(main: Block) -> list[int]:
    """Positions of the iteration variables that the register tile is made of: the last two that use something
    again."""
    alone = batches(main)
    return [
        n
        for n, (it, k) in enumerate(zip(main.iters, main.kinds, strict=True))
        if k is IterKind.SPATIAL and n not in alone and it.extent.const != 1
    ][-2:]


def _rows(main: Block) -> int:
    """The rows that meet in the register tiles, of the read that has the fewest."""
    tiled = [main.iters[n] for n in _tiled(main)]
    return min(
        prod(v.extent.const or 1 for v in tiled if any(v in i.vars() for i in x.indices))
        for x in loads(main.value)
        if x.buffer is not main.buffer
    )


def summed(func: PrimFunc, name: str) -> str:
    """The block that does the work of a reduction: the one that makes the parts where a block only adds up
    registers."""
    block = func.block(name)[1]
    if not block.is_reduction:
        return name
    while True:
        read = [b for b in buffers_read(block) if b is not block.buffer]
        if len(read) != 1 or read[0].scope != "register":
            return block.name
        made = writers(func, read[0])
        block = next((w for w in made if w.is_reduction), made[-1])


class DotTiles(Tiling):
    """Applies the structure of a dot product of rows."""

    def __init__(self, sch: Schedule, group: Group, choice: Dot, target: Target, tag: str) -> None:
        super().__init__(sch, group, target, tag)
        self.choice = choice
        self.main: Block = sch.func.block(group.main)[1]
        #: Whether functions are computed of the result, which are as costly for one element as for a vector.
        self.is_costly = group.epilogue is not None and any(
            type(e) is Unary for e in walk_expr(sch.func.block(group.epilogue)[1].value)
        )

    def apply(self) -> None:
        """Every step, in an order in which each is legal."""
        sch, main = self.sch, self.main
        loops = sch.get_loops(self.block)
        steps = main.iters[self.choice.step].extent
        widths = lane_widths(self.target, main, steps)[-1:]
        taken = lane_steps(main, self.choice.step, self.target, widths)
        self.lanes = self.knob("vl", widths)
        for name in self.group.producers:
            copy_in_lanes(sch, name, self.target)
        last = self.result()
        outer, middle, tile = self.tile_spatial(loops)
        length = (steps.const or 1) // taken
        unroll = self.knob(
            f"{main.iters[self.choice.step].name}_u",
            fit(STEPS, poly(length // self.lanes.domain[0])),
        )
        serial, unrolled, lane, *at_once = split_steps(
            sch, loops[self.choice.step], unroll, self.lanes, taken
        )
        others = [
            x for n, x in enumerate(loops) if main.kinds[n] is IterKind.REDUCE and n != self.choice.step
        ]
        sch.reorder(*outer, *middle, *others, serial, unrolled, *tile, *at_once, lane)
        self.limit("unrolled body", self.sums * unroll, MAX_BODY)
        parts = sch.rfactor(lane, -1)
        sch.set_scope(parts, 0, "register")
        self.in_lanes(parts, len(tile) + 2 + len(at_once))
        self.in_lanes(self.block, len(tile) + 1)
        if self.is_costly:
            self.take_in_lanes(last)
        else:
            self.write_back(last, middle[-1])
        self.decompose(parts)

    def result(self) -> str:
        """Where the result goes before the block that takes it."""
        if self.group.epilogue is not None:
            if not self.is_costly:
                self.sch.set_scope(self.block, 0, "register")
            return self.group.epilogue
        return self.sch.cache_write(self.block, 0, "register").name

    def tile_spatial(self, loops: list[LoopRV]) -> tuple[list[LoopRV], list[LoopRV], list[LoopRV]]:
        """Splits up to two loops into whole tiles, middle tiles and the register tile; the last one, whose
        rows are the longer matrix as a rule, runs outside of the other."""
        main = self.main
        tiled = _tiled(main)
        outer = [loops[n] for n, k in enumerate(main.kinds) if k is IterKind.SPATIAL and n not in tiled]
        middle: list[LoopRV] = []
        tile: list[LoopRV] = []
        self.sums, loaded, most = poly(1), poly(0), 1
        for n in reversed(tiled):
            it = main.iters[n]
            t = self.knob(f"{it.name}_t", fit(TILES, it.extent))
            r = self.knob(f"{it.name}_r", fit(ROWS, it.extent))
            new = self.sch.split(loops[n], [None, t, r], overlap=1)
            outer.append(new[0])
            middle.append(new[1])
            tile.insert(0, new[2])
            self.sums, loaded = self.sums * r, loaded + r
            most *= it.extent.const or 1
            self.limit(f"{it.name} beyond its extent", poly(t) * r, (it.extent.const or 1) + 7)
        # One factor is held in registers, the other one read element by element: 8 x 3 and 5 x 5 fit.
        self.limit("registers", self.sums, self.target.vector_registers * 4 // 5)
        self.limit(
            "loads for each multiply-add", 10 * loaded - MAX_LOADS * self.sums, 0
        ) if most > 16 else None
        self.limit("too few sums", -1 * self.sums, -min(MIN_SUMS, most) // 2)
        return outer, middle, tile

    def in_lanes(self, block: BlockRV, count: int) -> None:
        """Makes lanes of the innermost loop, and straight-line code of the others of the last `count`."""
        *others, lane = self.sch.get_loops(block)[-count:]
        for x in others:
            self.sch.unroll(x)
        self.sch.vectorize(lane)

    def decompose(self, parts: BlockRV) -> None:
        """The sums begin before the outermost loop of steps."""
        carried = self.sch.func.block(parts.name)[1].loop_vars(IterKind.REDUCE)
        self.sch.decompose_reduction(parts, next(x for x in self.sch.get_loops(parts) if x.var in carried))

    def take_in_lanes(self, last: str) -> None:
        """What is costly for one element takes vectors of the results, in a nest of its own: overlapped tiles
        are no box to move it under."""
        sch = self.sch
        loops = sch.get_loops(sch.get_block(last))
        b = sch.func.block(last)[1]
        lane = next((x for x, it in zip(loops, b.iters, strict=True) if b.indices[-1].atom is it), loops[-1])
        if (lane.var.extent.const or 0) < self.lanes.domain[-1]:
            return
        vectors, lanes = sch.split(lane, [None, self.lanes])
        sch.reorder(*(x for x in loops if x is not lane), vectors, lanes)
        sch.vectorize(lanes)

    def write_back(self, last: str, at: LoopRV) -> None:
        """The block behind the reduction takes each register tile."""
        for loop in self.sch.reverse_compute_at(self.sch.get_block(last), at):
            if loop.var.extent.const != 1:
                self.sch.unroll(loop)
