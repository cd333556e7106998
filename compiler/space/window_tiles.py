"""Tiles over windows: strips of rows, register tiles within them, the padding of a strip done just before.

Loops, outermost first: what moves the data besides windows · strips of rows · output channels · rows of a
strip · other places · steps and channels · register tile · lanes.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from itertools import product as cartesian
from math import prod
from typing import Any, Literal

import numpy as np

from ..arith import Knob, Var, poly, product
from ..ir import Block, Buffer, IterKind, buffers_read, loads
from ..schedule import BlockRV, LoopRV, Schedule
from ..target import Target
from .accesses import operations
from .ahead import constants_of, pack_ahead, packed_order
from .compile import ColumnCompiler
from .factors import MAX_BODY, WASTE, even_parts, smallest, steps_unrolled, tile_registers
from .groups import Group
from .lanes import lane_widths
from .sketch import Constraint
from .tiling import Tiling
from .windows import lane_stride

#: `inline`: guards at each read. `strip`: a padded copy for each strip of rows.
Padding = Literal["none", "inline", "strip"]

PLACES = (1, 2, 3, 4, 5, 6, 7, 8, 10, 12, 13, 14, 16)
ROWS = (1, 2, 3, 4, 6, 7)
VECTORS = (1, 2, 3, 4, 5, 6, 8, 12)
STRIPS = (1, 2, 4, 7, 8, 14, 28)
#: Accumulators that keep the multiply-add units busy beside the loads between them.
BUSY = 12
#: Operations of an epilogue that computes functions, and those of one that is unrolled: each becomes up to
#: five instructions, of which a kernel has 4000.
COSTLY, MAX_EPILOGUE = 16, 700
#: Vectors of a row of a padded copy up to this many are unrolled.
SIDE_BY_SIDE = 4
#: Windows up to this many steps along an axis are unrolled whole.
MAX_STEPS = 7


@dataclass(frozen=True, slots=True)
class WindowChoice:
    """What differs in structure. lane: the position of the iteration variable of the lanes. channels_inside:
    whether channels run inside of every step of the window, or outside of the last one."""

    lane: int
    packed: tuple[Buffer, ...]
    padding: Padding
    channels_inside: bool


def _blocked(size: int) -> Callable[..., tuple[object, ...]]:
    """The last dimension in pieces, the number of the piece first."""

    def layout(*index: Any) -> tuple[object, ...]:
        return (index[-1] // size, *index[:-1], index[-1] % size)

    return layout


def strips(extent: int) -> tuple[int, ...]:
    """Rows of tiles in a strip; all of a short image is one, whose padding is made once."""
    return tuple(s for s in STRIPS if s < extent) + ((extent,) if extent <= STRIPS[-1] else ())


class WindowTiles(Tiling):
    """Applies one structure over windows."""

    def __init__(
        self,
        sch: Schedule,
        group: Group,
        choice: WindowChoice,
        target: Target,
        tag: str,
        places: tuple[Var, ...],
        steps: tuple[Var, ...],
    ) -> None:
        super().__init__(sch, group, target, tag)
        self.choice = choice
        self.main: Block = sch.func.block(group.main)[1]
        self.places, self.steps = places, steps
        self.lane_var = self.main.iters[choice.lane]
        #: A number where there is no choice: places within blocks of it are then known.
        self.lanes: Knob | int = 1
        self.widest = 1
        self.accumulators = poly(1)
        self.vectors = poly(1)
        #: Broadcast elements of what else the tile covers; they stay in registers, too.
        self.beside = poly(0)
        #: Of the factors whose product is the number of accumulators; that of the lanes first.
        self.factors: list[tuple[int, ...]] = []

    def factor(self, name: str, domain: tuple[int, ...]) -> Knob:
        """A knob for a factor of the register tile."""
        self.factors.append(domain)
        k = self.knob(name, domain)
        self.accumulators = self.accumulators * k
        return k

    def apply(self) -> None:
        """Every step, in an order in which each is legal."""
        sch, choice = self.sch, self.choice
        loops = dict(zip(self.main.iters, sch.get_loops(self.block), strict=True))
        last = self.result_in_registers()
        if choice.padding == "inline":
            for name in self.group.producers:
                sch.compute_inline(sch.get_block(name))
        widths = self.widths()
        self.widest = widths[-1]
        self.lanes = self.knob("vl", widths) if len(widths) > 1 else widths[0]
        for buffer in choice.packed:
            self.pack(buffer)
        ahead = [self.copy_of(b) for b in constants_of(self.sch.func, self.main)]
        outer, strip, between, tile, lane = self.tile_spatial(loops)
        serial, unrolled = self.tile_reduction(loops)
        # Along rows, one vector of results after the other shares most of what it reads with the next one.
        # Beside channels, all of them meet one weight at a time.
        along = self.is_alone() and self.lane_var in self.places
        inner = (*tile, *unrolled) if along else (*unrolled, *tile)
        sch.reorder(*outer, strip, *between, *serial, *inner, lane)
        sch.vectorize(lane)
        for loop in (*unrolled, *tile):
            sch.unroll(loop)
        if choice.padding == "strip":
            self.pad_strips(strip)
        self.move_epilogue(last, between[-1] if between else strip)
        for copy in ahead:
            pack_ahead(sch, copy, between[-1] if between else strip)
        sch.decompose_reduction(self.block, serial[0])

    def widths(self) -> tuple[int, ...]:
        """The whole register; half of it, too, where that leaves fewer lanes without work."""
        every = lane_widths(self.target, self.main, self.lane_var.extent)
        extent = self.lane_var.extent.const or every[-1]
        if self.choice.packed or -(-extent // every[-1]) * every[-1] <= WASTE * extent:
            return every[-1:]
        return every

    # ---- packing ----
    def copy_of(self, buffer: Buffer) -> BlockRV:
        """A copy of a constant, in the order in which a tile walks it."""
        slot = buffers_read(self.sch.func.block(self.group.main)[1]).index(buffer)
        order = packed_order(self.main, buffer, self.lane_var, self.reduction())
        return self.sch.cache_read(self.block, slot, "local", order)

    def pack(self, buffer: Buffer) -> None:
        """A copy of the whole operand, in the order in which the reduction walks it, in blocks of lanes: the
        one step that packing is."""
        sch = self.sch
        slot = buffers_read(sch.func.block(self.group.main)[1]).index(buffer)
        load = next(x for x in loads(self.main.value) if x.buffer is buffer)
        at = {v: d for d, i in enumerate(load.indices) for v in i.vars() if v in self.main.iters}
        along = at[self.lane_var]
        rest = [d for d in range(len(load.indices)) if d not in at.values()]
        walked = [v for v in (*self.main.iters, *self.reduction()) if v in at]
        order = [*rest, *(at[v] for v in walked), along]
        # Each dimension where it is walked last, that of the lanes at the end.
        order = [d for n, d in enumerate(order) if d not in order[n + 1 :]]
        copy = sch.cache_read(self.block, slot, "local", tuple(order))
        own = sch.get_loops(copy)
        lane = own[along]
        others = [x for d, x in enumerate(own) if d != along]
        size = self.lane_var.extent.const or 1
        for piece in (size, self.widest):
            # The channels of a group, then blocks of lanes.
            if (lane.var.extent.const or 1) > piece:
                sch.transform_layout(copy, 0, _blocked(piece))
                outer, lane = sch.split(lane, [None, piece])
                others = [outer, *others]
        sch.reorder(*others, lane)
        if lane_stride(load, self.lane_var) == 1:
            sch.vectorize(lane)

    def reduction(self) -> list[Var]:
        """The reduction variables, outermost first."""
        channels = [
            v
            for v, k in zip(self.main.iters, self.main.kinds, strict=True)
            if k is IterKind.REDUCE and v not in self.steps
        ]
        if self.choice.channels_inside:
            return [*self.steps, *channels]
        return [*self.steps[:-1], *channels, *self.steps[-1:]]

    # ---- tiles ----
    def tile_spatial(
        self, loops: dict[Var, LoopRV]
    ) -> tuple[list[LoopRV], LoopRV, list[LoopRV], list[LoopRV], LoopRV]:
        """(outer loops, the loop over strips, loops within a strip, register tile, lanes)"""
        sch, main = self.sch, self.main
        places = [v for v in self.places if v is not self.lane_var and (v.extent.const or 1) > 1]
        rows = places[-2] if len(places) > 1 else places[-1] if places else None
        cols = places[-1] if len(places) > 1 else None
        spatial = [v for v, k in zip(main.iters, main.kinds, strict=True) if k is IterKind.SPATIAL]
        still = [v for v in spatial if v is not self.lane_var and v not in self.places]
        # What moves no data, such as output channels, runs within a strip.
        wide = [v for v in still if not self.moves_data(v) and (v.extent.const or 1) > 1]
        blocks = wide[-1] if wide else None
        outer = [loops[v] for v in spatial if v not in (self.lane_var, rows, cols, blocks)]
        registers = self.vector_loop(loops[self.lane_var], many=cols is None)
        between, tile = [registers[0]], []
        if blocks is not None:
            t = self.factor(f"{blocks.name}_r", even_parts(blocks.extent.const or 1, VECTORS))
            self.beside = poly(t)
            first, inner = sch.split(loops[blocks], [None, t], overlap=1)
            between.insert(0, first)
            tile.append(inner)
        strip: LoopRV | None = None
        for v in (x for x in (rows, cols) if x is not None):
            extent = v.extent.const or 1
            r = self.factor(f"{v.name}_r", even_parts(extent, ROWS if v is rows and cols else PLACES))
            if v is rows:
                t = self.knob(f"{v.name}_t", strips(extent))
                strip, middle, inner = sch.split(loops[v], [None, t, r], overlap=1)
                self.limit(f"{v.name} beyond its extent", poly(t) * r, extent + 7)
                between.append(middle)
            else:
                first, inner = sch.split(loops[v], [None, r], overlap=1)
                between.append(first)
            tile.append(inner)
        if self.moves_data(self.lane_var):
            # Side by side in memory, and read once.
            between = [x for x in between if x is not registers[0]] + [registers[0]]
        if strip is None:
            strip, *between = between
        tile.append(registers[1])
        self.limit_registers()
        return outer, strip, between, tile, registers[2]

    def vector_loop(self, loop: LoopRV, *, many: bool) -> list[LoopRV]:
        least = self.lanes if isinstance(self.lanes, int) else self.lanes.domain[0]
        count = -(-(self.lane_var.extent.const or 1) // least)
        r = self.factor(f"{self.lane_var.name}_r", even_parts(count, VECTORS if many else VECTORS[:6]))
        self.vectors = poly(r)
        # A packed operand lies in blocks of lanes, which tiles that move back would straddle.
        return self.sch.split(loop, [None, r, self.lanes], overlap=0 if self.choice.packed else 2)

    def limit_registers(self) -> None:
        room = tile_registers(self.target.vector_registers)
        held = self.vectors + 1 + self.beside
        if self.is_alone():
            # The weights of a window stay in registers, too, and rows that windows share.
            room, held = room // 2 + 2, poly(1)
        self.limit("registers", self.accumulators + held, room)
        values = [(prod(f), self.held(f)) for f in cartesian(*self.factors)]
        most = max((n for n, beside in values if n + beside <= room), default=1)
        self.limit("too few accumulators", -1 * self.accumulators, -min(BUSY, most))

    def held(self, factors: tuple[int, ...]) -> int:
        """Registers beside the accumulators."""
        if self.is_alone():
            return 1
        return factors[0] + 1 + (factors[1] if self.beside.knobs() else 0)

    def is_alone(self) -> bool:
        """Whether a window is all that is reduced over."""
        return all(v in self.steps for v in self.reduction())

    def moves_data(self, v: Var) -> bool:
        """Whether a read that windows move is moved by the variable as well."""
        return any(
            any(v in i.vars() for i in x.indices)
            for x in loads(self.main.value)
            if x.buffer is not self.main.buffer and any(p in i.vars() for i in x.indices for p in self.places)
        )

    def tile_reduction(self, loops: dict[Var, LoopRV]) -> tuple[list[LoopRV], list[LoopRV]]:
        """The serial and the unrolled loops of the reduction. Steps of a window share what they read, and
        would hold it in registers when unrolled together: only where nothing else is reduced."""
        serial, unrolled, body = [], [], self.accumulators
        alone = self.is_alone()
        channels = [v for v in self.reduction() if v not in self.steps]
        for v in self.reduction():
            extent = v.extent.const or 1
            if v in self.steps:
                whole = alone and 1 < extent <= MAX_STEPS
                domain: tuple[int, ...] = (1, extent) if whole else (1,)
            else:
                domain = steps_unrolled(extent) if v is channels[-1] else (1,)
            if domain == (1,):
                serial.append(loops[v])
                continue
            if alone and v is self.steps[-1]:
                domain = domain[-1:]
            u = self.knob(f"{v.name}_u", domain)
            first, second = self.sch.split(loops[v], [None, u])
            serial.append(first)
            unrolled.append(second)
            body = body * u
        self.limit("unrolled body", body, MAX_BODY)
        return serial, unrolled

    # ---- neighbours ----
    def pad_strips(self, strip: LoopRV) -> None:
        """The padded copy of what a strip reads, its rows in lanes; the vectors of a short row side by side,
        so that what each leaves out is known."""
        width = self.target.lanes(self.main.buffer.dtype.value_bytes * 8)
        for name in self.group.producers:
            loop = self.sch.compute_at(self.sch.get_block(name), strip)[-1]
            if smallest(loop.var.extent) > width:
                vectors, loop = self.sch.split(loop, [None, width])
                if (vectors.var.extent.const or SIDE_BY_SIDE + 1) <= SIDE_BY_SIDE:
                    self.sch.unroll(vectors)
            self.sch.vectorize(loop)

    def move_epilogue(self, last: str, at: LoopRV) -> None:
        """The block behind the reduction takes the register tile: with lanes along what lies side by side in
        its result, across the vectors of the tile if need be."""
        sch = self.sch
        block = sch.get_block(last)
        _, b = sch.func.block(last)
        result = sch.func.block(self.group.main)[1].buffer
        own = next(x for x in loads(b.value) if x.buffer is result)
        loops = sch.reverse_compute_at(block, at)
        by = {v: x for v, x in zip(b.iters, loops, strict=True)}
        place = {
            next(iter(i.vars())): next((v for v in b.iters if r.atom is v), None)
            for i, r in zip(self.main.indices, own.indices, strict=True)
            if len(i.vars()) == 1
        }
        side = next((v for v in (b.indices[-1].atom,) if isinstance(v, Var) and v in by), None)
        lane = place.get(self.lane_var)
        across = side is not None and side is not lane and self.is_tiled(side, place)
        others = [x for v, x in by.items() if v is not side]
        copies = product(x.var.extent for x in others)
        code = Constraint(f"{self.tag}unrolled epilogue", copies * operations(b), MAX_EPILOGUE)
        if across and operations(b) >= COSTLY and code.value.knobs():
            across = lane is None or self.is_possible(code)
            self.constraints += [code] * across
        if lane is None or across:
            assert side is not None
            for loop in others:
                if loop.var.extent.const != 1:
                    sch.unroll(loop)
            sch.reorder(*others, by[side])
            sch.vectorize(by[side])
            return
        for v, loop in by.items():
            if v is not lane and loop.var.extent.const != 1:
                sch.unroll(loop)
        registers, lanes = sch.split(by[lane], [None, self.lanes])
        sch.unroll(registers)
        sch.vectorize(lanes)
        behind = loops[loops.index(by[lane]) + 1 :]
        if behind:
            sch.reorder(registers, *behind, lanes)

    def is_possible(self, more: Constraint) -> bool:
        """Whether some register tile satisfies a constraint beside those that there are on its factors."""
        knobs = sorted(more.value.knobs() | self.accumulators.knobs(), key=lambda k: k.name)
        asked = [*(c for c in self.constraints if c.value.knobs() <= set(knobs)), more]
        columns = np.array([*cartesian(*(k.domain for k in knobs))], np.float32).T
        compiler = ColumnCompiler(knobs)
        values = compiler.compile([compiler.emit(c.value) for c in asked])
        limits = np.array([c.at_most for c in asked], np.float32)[:, None]
        found = values(columns, np.empty((len(asked), columns.shape[1]), np.float32)) <= limits
        return bool(found.all(0).any())

    def is_tiled(self, side: Var, place: dict[Var, Var | None]) -> bool:
        """Whether the register tile holds several places along the epilogue's variable."""
        tiled = [v for v in self.places if v is not self.lane_var and (v.extent.const or 1) >= 4]
        return any(place.get(v) is side for v in tiled[-1:])
