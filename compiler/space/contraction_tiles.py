"""Register tiles of vectors under tiled spatial loops, the reduction inside, the epilogue at its end.

Loops, outermost first: whole tiles · middle tiles · reduction · unrolled reduction · register tile · lanes.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..arith import Knob, Poly, ceil_div, poly
from ..ir import Block, Buffer, IterKind, buffers_read, loads
from ..schedule import BlockRV, LoopRV, Schedule
from ..target import Target
from .ahead import constants_of, pack_ahead, packed_order
from .batches import batches
from .factors import (
    MAX_BODY,
    MAX_LOADS,
    REGISTERS,
    TILES,
    divisors,
    fit,
    fitting,
    panel_bytes,
    reachable,
    reuses,
    tile_registers,
)
from .groups import Group
from .lanes import lane_widths
from .tiling import Tiling

if TYPE_CHECKING:
    from .contraction import Contraction


class ContractionTiles(Tiling):
    """Applies one structure of a contraction."""

    #: Whether the last tiles are moved back to end with the loop; else they are masked.
    overlaps = True
    #: Register tiles beside each other in a packed panel: each row of it is as long.
    beside: tuple[int, ...] = (1, 2)

    def __init__(self, sch: Schedule, group: Group, choice: Contraction, target: Target, tag: str) -> None:
        super().__init__(sch, group, target, tag)
        self.choice = choice
        self.main: Block = sch.func.block(group.main)[1]
        #: What is packed before the calls.
        self.ahead = constants_of(sch.func, self.main)
        self.lanes: Knob | None = None
        #: The loop that packed panels are made in, and how many vectors of lanes stand in a register tile.
        self.panels: LoopRV | None = None
        self.vectors: Knob | None = None
        #: The length of a panel.
        self.panel = poly(1)
        #: The widest dtype's bytes, for the size of panels.
        self.element = max(b.dtype.bytes for b in (self.main.buffer, *buffers_read(self.main)))

    def apply(self) -> None:
        """Every step, in an order in which each is legal."""
        sch = self.sch
        loops = sch.get_loops(self.block)
        if self.choice.lane is not None:
            self.lanes = self.lanes_of(self.choice.lane)
        last = self.result_in_registers()
        packs, turned = self.place_operands()
        outer, middle, tile = self.tile_spatial(loops)
        serial, unrolled = self.tile_reduction(loops)
        lane = [tile.pop()] if self.lanes is not None else []
        sch.reorder(*outer, *middle, *serial, *unrolled, *tile, *lane)
        for loop in lane:
            sch.vectorize(loop)
        for loop in (*unrolled, *tile):
            sch.unroll(loop)
        if last is not None:
            self.move_epilogue(last, middle[-1])
        self.place_packs(packs, turned, middle[-1], self.panels)
        sch.decompose_reduction(self.block, serial[0])

    def lanes_of(self, n: int) -> Knob:
        """The number of lanes along an iteration variable."""
        return self.knob("vl", lane_widths(self.target, self.main, self.main.iters[n].extent))

    def place_operands(self) -> tuple[list[tuple[Buffer, BlockRV]], dict[Buffer, BlockRV]]:
        """Inlines or places the producers, and copies what is packed: the copies, and those of them that are
        made by blocks of registers."""
        sch = self.sch
        producers = {sch.func.block(p)[1].buffer: p for p in self.group.producers}
        self.place_producers([p for b, p in producers.items() if b not in self.choice.packed])
        packs = [
            (b, sch.cache_read(self.block, self.slot(b), "local", self.pack_order(b)))
            for b in self.choice.packed
        ]
        turned = {b: sch.cache_read(copy, 0, "register") for b, copy in packs if self.is_turned(b)}
        for name in (producers[b] for b in self.choice.packed if b in producers):
            sch.compute_inline(sch.get_block(name))
        return packs, turned

    def place_packs(
        self,
        packs: list[tuple[Buffer, BlockRV]],
        turned: dict[Buffer, BlockRV],
        tile: LoopRV,
        panels: LoopRV | None,
    ) -> None:
        """Packs constants before the calls, in the order of the tiles, and the others in each iteration of
        `panels`."""
        for buffer, copy in packs:
            if buffer in self.ahead:
                pack_ahead(self.sch, copy, tile)
                continue
            assert panels is not None
            made = self.sch.compute_at(copy, panels)
            self.limit_panel(buffer, made)
            if buffer in turned:
                self.turn_pack(buffer, made, turned[buffer])
            else:
                self.move_pack(buffer, made)

    def place_producers(self, names: list[str]) -> None:
        """Inlines the producers, or leaves each in a nest of its own with its last loop in lanes."""
        for name in names:
            block = self.sch.get_block(name)
            if self.choice.inline:
                self.sch.compute_inline(block)
            elif self.lanes is not None:
                lane = self.sch.get_loops(block)[-1]
                if not self.fits_one_vector(lane):
                    _, lane = self.sch.split(lane, [None, self.lanes])
                self.sch.vectorize(lane)

    def fits_one_vector(self, loop: LoopRV) -> bool:
        """Whether the widest vector holds the whole loop, which then is not split: no factor is larger."""
        assert self.lanes is not None
        return (loop.var.extent.const or MAX_BODY) <= self.lanes.domain[-1]

    def slot(self, buffer: Buffer) -> int:
        return buffers_read(self.sch.func.block(self.group.main)[1]).index(buffer)

    def lane_dim(self, buffer: Buffer) -> int:
        """The dimension of a read buffer that the lanes run along."""
        assert self.choice.lane is not None
        it = self.main.iters[self.choice.lane]
        # A product of an array with itself reads it along the lanes and elsewhere.
        reads = (x for x in loads(self.main.value) if x.buffer is buffer)
        return next(d for x in reads for d, e in enumerate(x.indices) if it in e.vars())

    def pack_order(self, buffer: Buffer) -> tuple[int, ...]:
        """The dimension of the lanes last."""
        if buffer in self.ahead:
            lane = None if self.choice.lane is None else self.main.iters[self.choice.lane]
            return packed_order(self.main, buffer, lane)
        d = self.lane_dim(buffer)
        return (*(x for x in range(len(buffer.shape)) if x != d), d)

    def tile_spatial(self, loops: list[LoopRV]) -> tuple[list[LoopRV], list[LoopRV], list[LoopRV]]:
        """Splits the lane axis and up to two others into whole tiles, middle tiles and the register tile.
        Batches run outermost."""
        main, lane = self.main, self.choice.lane
        spatial = [n for n, k in enumerate(main.kinds) if k is IterKind.SPATIAL]
        alone = [n for n in spatial if n != lane and n in batches(main)]
        large = [n for n in spatial if n not in (lane, *alone) and (main.iters[n].extent.const or 0) > 1][-2:]
        tiled = ([lane] if lane is not None else []) + large
        if not tiled:
            tiled = spatial[-1:]
        outer, middle, tile = [], [], []
        rows, vectors, most_rows, most_vectors = poly(1), poly(1), 1, 1
        order = alone + ([lane] if lane is not None else [])
        order += [n for n in spatial if n not in order]
        for n in order:
            it = main.iters[n]
            if n not in tiled:
                outer.append(loops[n])
                continue
            width = [self.lanes] if n == lane and self.lanes is not None else []
            narrow = n != lane and len(tiled) > 2 and n != spatial[-1]
            panels = bool(width) and bool(self.choice.packed)
            t = self.knob(f"{it.name}_t", fit(self.beside if panels else TILES, it.extent))
            whole = self.vectors_of(it.extent) if width else it.extent
            r = self.knob(f"{it.name}_r", fit((1, 2, 3, 4) if narrow else REGISTERS, whole))
            overlap = 1 + len(width) if self.overlaps else 0
            new = self.sch.split(loops[n], [None, t, r, *width], overlap=overlap)
            outer.append(new[0])
            middle.append(new[1])
            tile.append(new[2])
            size, extent, slack = poly(t) * r, it.extent.const or 1, 15
            if width:
                assert self.lanes is not None
                vectors, lanes = poly(r), new[3]
                self.vectors, self.panels = r, new[0]
                size, slack = size * self.lanes, 4 * self.lanes.domain[-1] - 1
                self.panel = size
                most_vectors = -(-extent // self.lanes.domain[-1])
            else:
                rows = rows * r
                most_rows *= extent
            self.limit(f"{it.name} beyond its extent", size, extent + slack)
        self.accumulators = rows * vectors
        most = tile_registers(self.target.vector_registers)
        # Of a single row each vector is used where it is loaded.
        loaded_first = vectors if most_rows > 1 else poly(1)
        self.limit("registers", self.accumulators + loaded_first + 1, most)
        least = min(reachable(most_rows * most_vectors), fitting(most_rows, most_vectors, most))
        self.limit("too few accumulators", -1 * self.accumulators, -least)
        if lane is not None:
            # Each vector is loaded, and each element of the other operand, once for all that it meets.
            loaded = 10 * (rows + vectors) - MAX_LOADS * self.accumulators
            if reuses(most_rows, most_vectors, most):
                self.limit("loads for each multiply-add", loaded, 0)
            # The lane axis was split first; its registers run inside the other ones, then the lanes.
            tile = [*tile[1:], tile[0], lanes]
        return outer, middle, tile

    def vectors_of(self, extent: Poly) -> Poly:
        """How many vectors of the fewest lanes cover the lane axis."""
        assert self.lanes is not None
        return ceil_div(extent, self.lanes.domain[0])

    def tile_reduction(self, loops: list[LoopRV]) -> tuple[list[LoopRV], list[LoopRV]]:
        """Splits each reduction into a serial and an unrolled loop; unrolled factors divide, so that no step
        is masked."""
        serial, unrolled, body = [], [], self.accumulators
        for n, kind in enumerate(self.main.kinds):
            extent = self.main.iters[n].extent.const or 1
            if kind is IterKind.SPATIAL:
                continue
            if extent == 1:
                serial.append(loops[n])
                continue
            domain = (1, extent) if extent <= 7 else divisors(extent, 8)
            u = self.knob(f"{self.main.iters[n].name}_u", domain)
            a, b = self.sch.split(loops[n], [None, u])
            serial.append(a)
            unrolled.append(b)
            body = body * u
        self.limit("unrolled body", body, MAX_BODY)
        return serial, unrolled

    def move_epilogue(self, last: str, at: LoopRV) -> None:
        """The block behind the reduction takes the register tile at the end of each middle tile."""
        self.limit_epilogue(last, self.accumulators)
        block = self.sch.get_block(last)
        loops = self.sch.reverse_compute_at(block, at)
        lane = self.lane_loop(last, loops) if self.choice.lane is not None else None
        for loop in loops:
            if loop is not lane and loop.var.extent.const != 1:
                self.sch.unroll(loop)
        if lane is not None:
            assert self.lanes is not None
            registers, lanes = self.sch.split(lane, [None, self.lanes])
            self.sch.unroll(registers)
            self.sch.vectorize(lanes)
            behind = loops[loops.index(lane) + 1 :]
            if behind:
                self.sch.reorder(registers, *behind, lanes)

    def lane_loop(self, last: str, loops: list[LoopRV]) -> LoopRV:
        """The one of the loops of the block behind the reduction that runs along the lanes."""
        assert self.choice.lane is not None
        _, b = self.sch.func.block(last)
        result = self.sch.func.block(self.group.main)[1].buffer
        it = self.main.iters[self.choice.lane]
        d = next(d for d, e in enumerate(self.main.indices) if e.atom == it)
        read = next(x for x in loads(b.value) if x.buffer is result)
        return loops[[poly(v) for v in b.iters].index(read.indices[d])]

    def is_turned(self, buffer: Buffer) -> bool:
        """Whether a packed copy is made by blocks of registers: read along the last dimension of the source,
        written along that of the lanes."""
        if buffer in self.ahead or self.lanes is None:
            return False
        last, least = len(buffer.shape) - 1, self.lanes.domain[0]
        narrow = least < 4 or (buffer.shape[last].const or 0) < least
        return not narrow and self.lane_dim(buffer) != last

    def limit_panel(self, buffer: Buffer, loops: list[LoopRV]) -> None:
        """A packed panel, made for each tile of the lane axis, stays in a cache."""
        panel = poly(self.element)
        for loop in loops:
            panel = panel * loop.var.extent
        self.limit(f"panel of {buffer.name}", panel, panel_bytes(self.target))

    def turn_pack(self, buffer: Buffer, loops: list[LoopRV], rows: BlockRV) -> None:
        """Copies square blocks: vectors along the source's rows, then vectors across these."""
        assert self.lanes is not None
        d, sch = self.lane_dim(buffer), self.sch
        across, lane = sch.split(loops[d], [None, self.lanes])
        along, column = sch.split(loops[-1], [None, self.lanes])
        around = [x for x in loops[:-1] if x is not loops[d]]
        sch.reorder(*around, across, along, column, lane)
        sch.unroll(column)
        sch.vectorize(lane)
        inner = sch.compute_at(rows, along)
        sch.unroll(inner[d])
        sch.vectorize(inner[-1])

    def move_pack(self, buffer: Buffer, loops: list[LoopRV]) -> None:
        """Copies a panel by vectors where the source runs along the lanes, else one by one."""
        d = self.lane_dim(buffer)
        if d == len(loops) - 1:
            assert self.lanes is not None and self.vectors is not None
            _, vectors, lanes = self.sch.split(loops[d], [None, self.vectors, self.lanes])
            self.sch.unroll(vectors)
            self.sch.vectorize(lanes)
        else:
            self.sch.reorder(*(x for x in loops if x is not loops[d]), loops[d])
