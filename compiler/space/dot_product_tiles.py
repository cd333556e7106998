"""Register tiles of dot products: several steps of the reduction in each lane.

Loops, outermost first: whole tiles · middle tiles · reduction · unrolled reduction · register tile · steps of
an instruction · lanes.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..arith import Knob, Poly, Var, poly
from ..ir import Binary, Block, IterKind, Load, buffers_read, loads
from ..schedule import BlockRV, LoopRV, Schedule
from ..schedule.find import readers
from ..schedule.index_expr import Index
from ..schedule.primitives import Factor
from ..target import Target
from .ahead import pack_ahead
from .factors import (
    MAX_BODY,
    MAX_LOADS,
    MIN_ACCUMULATORS,
    REGISTERS,
    TILES,
    divisors,
    fit,
    panel_bytes,
)
from .groups import Group
from .lanes import copy_in_lanes
from .tiling import Tiling

if TYPE_CHECKING:
    from .dot_products import DotProduct

#: Rows from which on two vectors beside each other need few enough loads.
FEWEST_ROWS = 5
#: Rows of the second axis of a register tile beside the lanes, as of an image.
FEW = (1, 2, 3, 4)


def moves(x: Load, it: Var) -> bool:
    return any(it in i.vars() for i in x.indices)


class DotProductTiles(Tiling):
    """Applies one structure of a dot product."""

    def __init__(self, sch: Schedule, group: Group, choice: DotProduct, target: Target, tag: str) -> None:
        super().__init__(sch, group, target, tag)
        self.choice = choice
        self.accumulators: Poly = poly(1)
        #: Of each reduction, the factors of its split but the first.
        self.factors: list[list[Factor]] = []
        #: Vectors of the lane axis in the register tile.
        self.vectors: Knob | None = None

    @property
    def main(self) -> Block:
        return self.sch.func.block(self.group.main)[1]

    @property
    def reductions(self) -> list[int]:
        """The positions of the iteration variables that are reduced, of the main block."""
        return [n for n, k in enumerate(self.main.kinds) if k is IterKind.REDUCE]

    def slot(self, *, of_x: bool) -> int:
        """The position of x or y among what the block reads now."""
        return buffers_read(self.main).index(self.operands()[not of_x].buffer)

    def operands(self) -> tuple[Load, Load]:
        """The reads in x and y as they stand now."""
        term = self.main.value
        assert type(term) is Binary and type(term.b) is Binary
        first, second = (next(iter(loads(e))) for e in (term.b.a, term.b.b))
        return (first, second) if self.choice.x_first else (second, first)

    def apply(self) -> None:
        """Every step, in an order in which each is legal."""
        sch = self.sch
        ahead = self.operands()[1].buffer.constant
        padded = self.pad()
        last, excess = self.group.epilogue, None
        # What is to be taken off comes of the packed panels; of constants it is known before the calls.
        taken = sch.flip_sign(self.block, self.slot(of_x=True)) if ahead and self.choice.flip else None
        pack = sch.cache_read(self.block, self.slot(of_x=False), "local")
        self.place_producers(padded)
        if self.choice.flip:
            made, finish = taken or sch.flip_sign(self.block, self.slot(of_x=True))
            if taken is not None:
                sch.compute_ahead(made)
            else:
                excess = made, sch.cache_write(made, 0, "register")
            if last is None:
                last = finish.name
            else:
                sch.compute_inline(finish)
        if last is None:
            last = sch.cache_write(self.block, 0, "register").name
        else:
            sch.set_scope(self.block, 0, "register")
        self.interleave(pack)
        loops = sch.get_loops(self.block)
        outer, middle, tile, lane = self.tile_spatial(loops)
        serial, unrolled, steps = self.tile_reduction(loops)
        sch.reorder(*outer, *middle, *serial, *unrolled, *tile, steps, lane)
        sch.vectorize(lane)
        for loop in (*unrolled, *tile, steps):
            sch.unroll(loop)
        self.move_epilogue(last, middle[-1])
        if excess is not None:
            self.move_excess(*excess)
        if ahead:
            pack_ahead(sch, pack, middle[-1])
        else:
            self.move_pack(sch.compute_at(pack, self.panel))
        sch.decompose_reduction(self.block, serial[0])

    # ---- operands ----
    def pad(self) -> list[str]:
        """Makes the reduction a multiple of the steps; the blocks that copy into the padding, x's first."""
        sch, choice, main = self.sch, self.choice, self.main
        if (main.iters[choice.step].extent.const or 0) % choice.steps == 0:
            return []
        before = {b.name for _, b in sch.func.blocks()}
        sch.pad_einsum(self.block, [choice.steps if n == choice.step else 1 for n in range(len(main.iters))])
        made = [b for _, b in sch.func.blocks() if b.name not in before]
        x = self.operands()[0].buffer
        return [b.name for b in sorted(made, key=lambda b: b.buffer is not x)]

    def place_producers(self, padded: list[str]) -> None:
        """The padding of y is inlined into its packed copy, what makes x into its padded one; what is left
        stands in nests of its own, in lanes."""
        sch = self.sch
        for name in padded[1:]:
            sch.compute_inline(sch.get_block(name))
        for name in self.group.producers:
            users = [u.name for u in readers(sch.func, sch.func.block(name)[1].buffer)]
            if padded and users == padded[:1]:
                sch.compute_inline(sch.get_block(name))
            else:
                copy_in_lanes(sch, name, self.target)
        for name in padded[:1]:
            copy_in_lanes(sch, name, self.target)

    def interleave(self, pack: BlockRV) -> None:
        """The packed copy: the steps of a lane next to each other, lanes behind them."""
        lane, step, steps = self.choice.y_lane, self.choice.y_step, self.choice.steps

        def layout(*at: Index) -> tuple[Index, ...]:
            others = (i for d, i in enumerate(at) if d not in (lane, step))
            return (*others, at[step] // steps, at[lane], at[step] % steps)

        self.sch.transform_layout(pack, 0, layout)
        self.sch.transform_block_layout(pack, layout)

    # ---- loops ----
    def tile_spatial(self, loops: list[LoopRV]) -> tuple[list[LoopRV], list[LoopRV], list[LoopRV], LoopRV]:
        """Splits the lane axis and up to two others into whole tiles, middle tiles and the register tile."""
        choice, main = self.choice, self.main
        _, y = self.operands()
        spatial = [n for n, k in enumerate(main.kinds) if k is IterKind.SPATIAL and n != choice.lane]
        batch = [n for n in spatial if moves(y, main.iters[n])]
        rows = [n for n in spatial if n not in batch]
        tiled = [n for n in rows if (main.iters[n].extent.const or 0) > 1][-2:] or rows[-1:]
        it = main.iters[choice.lane]
        most = (it.extent.const or choice.lanes) // choice.lanes
        self.vectors = r = self.knob(f"{it.name}_r", fit((1, 2, 3, 4, 5, 6), poly(most)))
        t = self.knob(f"{it.name}_t", fit(TILES, poly(most)))
        self.limit(f"{it.name} beyond its extent", poly(t) * r, most)
        panels, inside, vectors, lane = self.sch.split(
            loops[choice.lane], [None, t, r, choice.lanes], overlap=2
        )
        self.panel = panels
        outer, middle, tile = [*(loops[n] for n in batch), panels], [inside], [vectors]
        outer += [loops[n] for n in rows if n not in tiled]
        accumulators, rows_in_tile = poly(r), poly(1)
        for n in reversed(tiled):
            it = main.iters[n]
            domain = fit(REGISTERS if n == tiled[-1] else FEW, it.extent)
            rows_r = self.knob(f"{it.name}_r", domain)
            if n == tiled[-1]:
                rows_t = self.knob(f"{it.name}_t", fit(TILES, it.extent))
                self.limit(f"{it.name} beyond its extent", poly(rows_t) * rows_r, (it.extent.const or 1) + 15)
                a, b, c = self.sch.split(loops[n], [None, rows_t, rows_r], overlap=1)
                middle.append(b)
            else:
                a, c = self.sch.split(loops[n], [None, rows_r], overlap=1)
            outer.append(a)
            tile.insert(0, c)
            accumulators, rows_in_tile = accumulators * rows_r, rows_in_tile * rows_r
        used = accumulators + r + (2 if choice.flip else 1)
        self.limit("registers", used, self.target.vector_registers - 1)
        largest = most
        for n in tiled:
            largest *= main.iters[n].extent.const or 1
        if largest == most:
            # A single row: each vector is used where it is loaded.
            largest = min(most, r.domain[-1])
        enough = MIN_ACCUMULATORS if largest >= 2 * MIN_ACCUMULATORS else min(largest, MIN_ACCUMULATORS) // 2
        self.limit("too few accumulators", -1 * accumulators, -enough)
        if most > 1 and largest // most >= FEWEST_ROWS:
            # Tiles of one vector read more for each operation, and what they share stays in registers.
            loaded = 10 * (rows_in_tile + r) - MAX_LOADS * accumulators
            self.limit("loads for each operation", loaded, 0)
        self.accumulators = accumulators
        return outer, middle, tile, lane

    def tile_reduction(self, loops: list[LoopRV]) -> tuple[list[LoopRV], list[LoopRV], LoopRV]:
        """Splits each reduction into a serial and an unrolled loop, the innermost one also into the steps of
        an instruction."""
        main, choice = self.main, self.choice
        serial, unrolled, body = [], [], self.accumulators
        for n, (it, kind) in enumerate(zip(main.iters, main.kinds, strict=True)):
            extent = it.extent.const or 1
            if kind is IterKind.SPATIAL or n == choice.step:
                continue
            u = self.knob(f"{it.name}_u", (1, extent) if 1 < extent <= 7 else (1,)) if extent > 1 else 1
            self.factors.append([u])
            a, b = self.sch.split(loops[n], [None, u])
            serial.append(a)
            unrolled.append(b)
            body = body * u
        it = main.iters[choice.step]
        u = self.knob(f"{it.name}_u", divisors((it.extent.const or 1) // choice.steps, 8))
        self.factors.insert(self.reductions.index(choice.step), [u, choice.steps])
        a, b, steps = self.sch.split(loops[choice.step], [None, u, choice.steps])
        self.limit("unrolled body", body * u, MAX_BODY)
        return [*serial, a], [*unrolled, b], steps

    # ---- what stands around ----
    def move_epilogue(self, last: str, at: LoopRV) -> None:
        """The block behind the reduction takes the register tile at the end of each middle tile."""
        self.limit_epilogue(last, self.accumulators)
        sch, main = self.sch, self.main
        b = sch.func.block(last)[1]
        loops = sch.reverse_compute_at(sch.get_block(last), at)
        d = next(d for d, e in enumerate(main.indices) if e.atom == main.iters[self.choice.lane])
        read = next(x for x in loads(b.value) if x.buffer is main.buffer)
        lane = loops[[poly(v) for v in b.iters].index(read.indices[d])]
        others = [x for x in loops if x is not lane]
        vectors, lanes = sch.split(lane, [None, self.choice.lanes])
        sch.reorder(*others, vectors, lanes)
        for loop in (*others, vectors):
            if loop.var.extent.const != 1:
                sch.unroll(loop)
        sch.vectorize(lanes)

    def move_excess(self, made: BlockRV, write: BlockRV) -> None:
        """What is to be taken off is added up from each packed panel, by the same instruction."""
        sch, choice = self.sch, self.choice
        assert self.vectors is not None
        at, vectors, lanes = sch.split(
            sch.compute_at(write, self.panel)[-1], [None, self.vectors, choice.lanes]
        )
        sch.unroll(vectors)
        sch.vectorize(lanes)
        loops = sch.compute_at(made, at)
        kinds = sch.func.block(made.name)[1].kinds
        kept = [x for x, k in zip(loops, kinds, strict=True) if k is IterKind.SPATIAL]
        steps = [x for x, k in zip(loops, kinds, strict=True) if k is IterKind.REDUCE]
        vectors, n = sch.split(kept[-1], [None, choice.lanes])
        # Split as the main block is, so that both are seen to read the same part of the panel.
        new = [sch.split(x, [None, *f]) for x, f in zip(steps, self.factors, strict=True)]
        s = new[self.reductions.index(choice.step)].pop()
        serial = [x for parts in new for x in parts]
        sch.reorder(*kept[:-1], *serial, vectors, s, n)
        sch.unroll(vectors)
        sch.unroll(s)
        sch.vectorize(n)
        sch.decompose_reduction(made, serial[0])

    def move_pack(self, loops: list[LoopRV]) -> None:
        """A packed panel for each tile of the lane axis, whose steps are written together."""
        panel = poly(1)
        for loop in loops:
            panel = panel * loop.var.extent
        self.limit("panel", panel * (4 // self.choice.steps), panel_bytes(self.target))
        *others, serial, lane, steps = loops
        outer, lanes = self.sch.split(lane, [None, self.choice.lanes])
        self.sch.reorder(*others, serial, outer, steps, lanes)
        self.sch.unroll(steps)
        self.sch.vectorize(lanes)
