"""The rule for reductions: a register tile of vectors under tiled spatial loops, the reduction inside, the
epilogue at its end.

Loops, outermost first: whole tiles · middle tiles · reduction · unrolled reduction · register tile · lanes.
What differs in structure is a choice: the axis of the lanes, which operands are packed, and whether
elementwise producers (padding) are inlined.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import product as cartesian

from ..arith import Knob, Poly, Var, poly
from ..ir import Block, Buffer, IterKind, Load, PrimFunc, buffers_read, loads, only_moves
from ..ir.func import fresh
from ..schedule import LoopRV, Schedule
from ..target import Target
from .groups import Group
from .sketch import Constraint
from .windows import Windows, lane_stride

TILES = (1, 2, 3, 4, 5, 6, 7, 8, 10, 12, 14, 16, 20, 24, 28, 32, 48, 64)
REGISTERS = (1, 2, 3, 4, 5, 6, 7, 8, 10, 12, 14)
#: Emitted multiply-adds of one unrolled body; more only costs compile time and instruction cache.
MAX_BODY = 260
#: Independent accumulators that hide the latency of a fused multiply-add (4 cycles, 2 a cycle).
MIN_ACCUMULATORS = 8
#: Packed panels larger than this leave every cache.
MAX_PANEL_BYTES = 4 << 20


@dataclass(frozen=True, slots=True)
class Contraction:
    """One structure. lane: the position of the iteration variable whose steps are vector lanes, or None for
    scalar code."""

    lane: int | None
    packed: tuple[Buffer, ...]
    inline: bool
    name: str

    @property
    def fallback(self) -> bool:
        """Scalar code is only worth a sketch where nothing runs in lanes."""
        return self.lane is None

    def apply(self, sch: Schedule, group: Group, target: Target, tag: str) -> list[Constraint]:
        """Applies the structure; answers what the knobs must satisfy."""
        rule = ContractionRule(sch, group, self, target, tag)
        rule.apply()
        return rule.constraints


def lane_use(load: Load, it: Var) -> str:
    """How a load meets lanes along `it`: `unit` stride, `none`, `pack` (strided, but a permuted copy is not),
    or `bad`."""
    dims = [d for d, e in enumerate(load.indices) if it in e.vars()]
    if not dims:
        return "none"
    if dims == [len(load.indices) - 1] and load.indices[-1].coefficient(it) == 1:
        return "unit"
    if len(dims) > 1 and lane_stride(load, it) == 1:
        return "unit"
    return "pack" if len(dims) == 1 and load.indices[dims[0]].atom == it else "bad"


def contractions(func: PrimFunc, group: Group, target: Target) -> Iterator[Contraction]:
    """Every structure that the rule knows for the group; the scalar one comes last. A reduction to one number
    has none: its steps would have to be dealt out to several accumulators first."""
    _, main = func.block(group.main)
    if not main.is_reduction or IterKind.SPATIAL not in main.kinds or Windows.of(main) is not None:
        return
    reads = [x for x in loads(main.value) if x.buffer is not main.buffer]
    produced = {func.block(p)[1].buffer for p in group.producers}
    inlines = (True, False) if group.producers else (False,)
    for n, (it, kind) in enumerate(zip(main.iters, main.kinds, strict=True)):
        if kind is IterKind.REDUCE or (it.extent.const or 0) < 4:
            continue
        use = {x.buffer: lane_use(x, it) for x in reads}
        strided = {b for b, u in use.items() if u == "pack"}
        if "bad" in use.values() or strided & produced or set(use.values()) == {"none"}:
            continue
        must = tuple(b for b, u in use.items() if u == "pack")
        once = {x.buffer for x in reads if not _reused(main, x)}
        if once & set(must):
            continue
        free = produced | once
        may = [b for b, u in use.items() if u == "unit" and b not in free and len(b.shape) > 1]
        for packed, inline in cartesian((must, *((*must, b) for b in may)), inlines):
            yield Contraction(n, packed, inline, _name(main, n, packed, inline, group))
    for inline in inlines:
        yield Contraction(None, (), inline, _name(main, None, (), inline, group))


def _reused(main: Block, load: Load) -> bool:
    """Whether some spatial iteration variable does not move the load: only then is a packed copy read more
    than once."""
    moved = {v for i in load.indices for v in i.vars()}
    return any(k is IterKind.SPATIAL and v not in moved for v, k in zip(main.iters, main.kinds, strict=True))


def _name(main: Block, lane: int | None, packed: tuple[Buffer, ...], inline: bool, group: Group) -> str:
    text = f"lanes {main.iters[lane].name}" if lane is not None else "scalar"
    text += "".join(f", pack {b.name}" for b in packed)
    return text + (
        f", {'inline' if inline else 'keep'} {' '.join(group.producers)}" if group.producers else ""
    )


def divisors(n: int, at_most: int) -> tuple[int, ...]:
    return tuple(d for d in range(1, min(n, at_most) + 1) if n % d == 0)


def fit(domain: tuple[int, ...], extent: Poly) -> tuple[int, ...]:
    """The values of the domain that are no larger than the extent."""
    return tuple(x for x in domain if x <= (extent.const or 1)) or (1,)


def lane_widths(target: Target, block: Block, extent: Poly) -> tuple[int, ...]:
    """One and half a machine register of the widest element that the block touches; the whole loop where that
    is shorter."""
    touched = (block.buffer, *buffers_read(block))
    if only_moves(block.value):
        widest = max(b.dtype.bytes for b in touched)
    else:
        widest = max(b.dtype.value_bytes for b in touched)
    full = target.lanes(widest * 8)
    most = extent.const or full
    return tuple(sorted({min(most, max(2, full // 2)), min(most, max(2, full))}))


class ContractionRule:
    """Applies one structure to a schedule; `constraints` are what the knobs must satisfy."""

    def __init__(self, sch: Schedule, group: Group, choice: Contraction, target: Target, tag: str) -> None:
        self.sch, self.group, self.choice, self.target, self.tag = sch, group, choice, target, tag
        self.main: Block = sch.func.block(group.main)[1]
        self.block = sch.get_block(group.main)
        self.constraints: list[Constraint] = []
        self.lanes: Knob | None = None
        #: The widest dtype's bytes, for the size of panels.
        self.element = max(b.dtype.bytes for b in (self.main.buffer, *buffers_read(self.main)))

    def knob(self, name: str, domain: tuple[int, ...]) -> Knob:
        # Two iteration variables may share a name; knobs may not.
        return self.sch.sample_categorical(domain, name=fresh(f"{self.tag}{name}", set(self.sch.knobs)))

    def apply(self) -> None:
        """Every step, in an order in which each is legal."""
        sch = self.sch
        loops = sch.get_loops(self.block)
        if self.choice.lane is not None:
            extent = self.main.iters[self.choice.lane].extent
            self.lanes = self.knob("vl", lane_widths(self.target, self.main, extent))
        last = self.result_in_registers()
        self.place_producers()
        packs = [
            (b, sch.cache_read(self.block, self.slot(b), "local", self.pack_order(b)))
            for b in self.choice.packed
        ]
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
        for buffer, copy in packs:
            self.move_pack(buffer, sch.compute_at(copy, outer[0]), outer[0])
        sch.decompose_reduction(self.block, serial[0])

    def result_in_registers(self) -> str | None:
        """Puts the result into registers; the block that takes it from there."""
        if self.group.epilogue is not None:
            self.sch.set_scope(self.block, 0, "register")
            return self.group.epilogue
        return self.sch.cache_write(self.block, 0, "register").name

    def place_producers(self) -> None:
        """Inlines the producers, or leaves each in a nest of its own with its last loop in lanes."""
        for name in self.group.producers:
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
        load = next(x for x in loads(self.main.value) if x.buffer is buffer)
        return next(d for d, e in enumerate(load.indices) if it in e.vars())

    def pack_order(self, buffer: Buffer) -> tuple[int, ...]:
        """The dimension of the lanes last."""
        d = self.lane_dim(buffer)
        return (*(x for x in range(len(buffer.shape)) if x != d), d)

    def tile_spatial(self, loops: list[LoopRV]) -> tuple[list[LoopRV], list[LoopRV], list[LoopRV]]:
        """Splits the lane axis and up to two others into whole tiles, middle tiles and the register tile."""
        main, lane = self.main, self.choice.lane
        spatial = [n for n, k in enumerate(main.kinds) if k is IterKind.SPATIAL]
        large = [n for n in spatial if n != lane and (main.iters[n].extent.const or 0) > 3][-2:]
        tiled = ([lane] if lane is not None else []) + large
        if not tiled:
            tiled = spatial[-1:]
        outer, middle, tile = [], [], []
        accumulators, vectors, most = poly(1), poly(1), 1
        order = ([lane] if lane is not None else []) + [n for n in spatial if n != lane]
        for n in order:
            it = main.iters[n]
            if n not in tiled:
                outer.append(loops[n])
                continue
            width = [self.lanes] if n == lane and self.lanes is not None else []
            narrow = n != lane and len(tiled) > 2 and n != spatial[-1]
            t = self.knob(f"{it.name}_t", fit(TILES, it.extent))
            r = self.knob(f"{it.name}_r", fit((1, 2, 3, 4) if narrow else REGISTERS, it.extent))
            new = self.sch.split(loops[n], [None, t, r, *width], overlap=1 + len(width))
            outer.append(new[0])
            middle.append(new[1])
            tile.append(new[2])
            accumulators = accumulators * r
            size, extent, slack = poly(t) * r, it.extent.const or 1, 15
            if width:
                assert self.lanes is not None
                vectors, lanes = poly(r), new[3]
                size, slack = size * self.lanes, 4 * self.lanes.domain[-1] - 1
                most *= -(-extent // self.lanes.domain[0])
            else:
                most *= extent
            self.limit(f"{it.name} beyond its extent", size, extent + slack)
        self.limit("registers", accumulators + vectors + 1, self.target.vector_registers - 1)
        self.limit("too few accumulators", -1 * accumulators, -min(MIN_ACCUMULATORS, _reachable(most)))
        self.accumulators = accumulators
        if lane is not None:
            # The lane axis was split first; its registers run inside the other ones, then the lanes.
            tile = [*tile[1:], tile[0], lanes]
        return outer, middle, tile

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
        block = self.sch.get_block(last)
        _, b = self.sch.func.block(last)
        result = self.sch.func.block(self.group.main)[1].buffer
        loops = self.sch.reverse_compute_at(block, at)
        lane: LoopRV | None = None
        if self.choice.lane is not None:
            it = self.main.iters[self.choice.lane]
            d = next(d for d, e in enumerate(self.main.indices) if e.atom == it)
            read = next(x for x in loads(b.value) if x.buffer is result)
            lane = loops[[poly(v) for v in b.iters].index(read.indices[d])]
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

    def move_pack(self, buffer: Buffer, loops: list[LoopRV], at: LoopRV) -> None:
        """A packed panel for each tile of the lane axis; copied by vectors where the source runs along the
        lanes."""
        d = self.lane_dim(buffer)
        panel = poly(self.element)
        for loop in loops:
            panel = panel * loop.var.extent
        self.limit(f"panel of {buffer.name}", panel, MAX_PANEL_BYTES)
        if d == len(loops) - 1:
            assert self.lanes is not None
            _, lanes = self.sch.split(loops[d], [None, self.lanes])
            self.sch.vectorize(lanes)
        else:
            self.sch.reorder(*(x for x in loops if x is not loops[d]), loops[d])

    def limit(self, label: str, value: Poly, at_most: int) -> None:
        self.constraints.append(Constraint(f"{self.tag}{label}", value, at_most))


def _reachable(most: int) -> int:
    """A number of accumulators that some register tile of at most `most` vectors surely reaches."""
    return (
        most
        if most < 4
        else min(most, MIN_ACCUMULATORS) // 2
        if most < 2 * MIN_ACCUMULATORS
        else MIN_ACCUMULATORS
    )
