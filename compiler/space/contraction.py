"""The rule for reductions: a register tile of vectors under tiled spatial loops, the reduction inside, the
epilogue at its end.

Loops, outermost first: whole tiles · middle tiles · reduction · unrolled reduction · register tile · lanes.
What differs in structure is a choice: the axis of the lanes, which operands are packed, and whether
elementwise producers (padding) are inlined.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from ..arith import Knob, Poly, Var, ceil_div, poly
from ..ir import Block, Buffer, IterKind, Load, PrimFunc, buffers_read, loads
from ..ir.func import fresh
from ..schedule import BlockRV, LoopRV, Schedule
from ..target import Target
from .ahead import constants_of, pack_ahead, packed_order
from .groups import Group
from .lanes import lane_widths
from .rows_in_memory import last_dim
from .sketch import Constraint
from .windows import Windows, lane_stride

TILES = (1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 64)
REGISTERS = (1, 2, 3, 4, 5, 6, 7, 8, 10, 12, 13, 14)
#: Emitted multiply-adds of one unrolled body; more only costs compile time and instruction cache.
MAX_BODY = 260
#: Lanes that an axis has where another one has as many.
FEW_LANES = 4
#: Independent accumulators that hide the latency of a fused multiply-add (4 cycles, 2 a cycle).
MIN_ACCUMULATORS = 8
#: Loads of one step of the reduction for its multiply-adds, in tenths: two of each a cycle, and loads that
#: cross a cache line count twice.
MAX_LOADS = 7
#: Register tiles beside each other in a packed panel: each row of it is as long.
PANELS = (1, 2)
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
    if dims == [last_dim(load.buffer)] and load.indices[dims[0]].coefficient(it) == 1:
        return "unit"
    if len(dims) > 1 and lane_stride(load, it) == 1:
        return "unit"
    return "pack" if len(dims) == 1 and load.indices[dims[0]].atom == it else "bad"


def contractions(func: PrimFunc, group: Group, target: Target) -> Iterator[Contraction]:
    """Every structure that the rule knows for the group; the scalar one comes last. A reduction to one number
    has none: its steps would have to be dealt out to several accumulators first."""
    _, main = func.block(group.main)
    if not main.is_reduction or IterKind.SPATIAL not in main.kinds or len(group.rows) > 1:
        return
    if Windows.of(main) is not None:
        return
    reads = [x for x in loads(main.value) if x.buffer is not main.buffer]
    produced = {func.block(p)[1].buffer for p in group.producers}
    # Where lanes may run along what is written, others are not worth their scattered writes.
    rows = [
        n
        for n, it in enumerate(main.iters)
        if (it.extent.const or 0) >= target.lanes(32)
        and not _scatters(main, n)
        and n not in batches(main)
        and all(lane_use(x, it) in ("unit", "none") for x in reads)
    ]
    found: list[tuple[int, tuple[Buffer, ...]]] = []
    for n, (it, kind) in enumerate(zip(main.iters, main.kinds, strict=True)):
        if kind is IterKind.REDUCE or (it.extent.const or 0) < 2:
            continue
        use = {x.buffer: lane_use(x, it) for x in reads}
        if n in batches(main) and set(use.values()) != {"unit"}:
            continue
        if _scatters(main, n) and any(m != n for m in rows):
            continue
        if "bad" in use.values() or set(use.values()) == {"none"}:
            continue
        ahead = constants_of(func, main)
        must = tuple(b for b, u in use.items() if u == "pack" or b in ahead)
        once = {x.buffer for x in reads if not (x.buffer in ahead or _reused(main, x))}
        if once & set(must):
            continue
        free = produced | once
        may = [b for b, u in use.items() if u == "unit" and b not in (*free, *must) and len(b.shape) > 1]
        found += [(n, packed) for packed in (must, *((*must, b) for b in may))]
    extents = [main.iters[n].extent.const or 0 for n, _ in found]
    choices = [f for f, e in zip(found, extents, strict=True) if e >= min(FEW_LANES, max(extents))]
    scalar: tuple[None, tuple[Buffer, ...]] = (None, ())
    for lane, packed in (*choices, scalar):
        # What is packed is made where it is packed.
        for inline in (True, False) if produced - set(packed) else (bool(produced),):
            yield Contraction(lane, packed, inline, _name(main, lane, packed, inline, group))


def _scatters(main: Block, n: int) -> bool:
    """Whether steps of an iteration variable are written apart from each other."""
    return not main.indices or main.indices[-1].coefficient(main.iters[n]) != 1


def batches(main: Block) -> set[int]:
    """Positions of the spatial iteration variables that move each of several reads: nothing is used again
    from one of their steps to the next."""
    reads = [x for x in loads(main.value) if x.buffer is not main.buffer]
    moved = [{v for i in x.indices for v in i.vars()} for x in reads]
    return {
        n
        for n, (v, k) in enumerate(zip(main.iters, main.kinds, strict=True))
        if k is IterKind.SPATIAL and len(reads) > 1 and all(v in m for m in moved)
    }


def _reused(main: Block, load: Load) -> bool:
    """Whether some spatial iteration variable does not move the load: only then is a packed copy read more
    than once."""
    moved = {v for i in load.indices for v in i.vars()}
    return any(
        k is IterKind.SPATIAL and v not in moved and v.extent.const != 1
        for v, k in zip(main.iters, main.kinds, strict=True)
    )


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


class ContractionRule:
    """Applies one structure to a schedule; `constraints` are what the knobs must satisfy."""

    def __init__(self, sch: Schedule, group: Group, choice: Contraction, target: Target, tag: str) -> None:
        self.sch, self.group, self.choice, self.target, self.tag = sch, group, choice, target, tag
        self.main: Block = sch.func.block(group.main)[1]
        self.block = sch.get_block(group.main)
        #: What is packed before the calls.
        self.ahead = constants_of(sch.func, self.main)
        self.constraints: list[Constraint] = []
        self.lanes: Knob | None = None
        #: The loop that packed panels are made in, and how many vectors of lanes stand in a register tile.
        self.panels: LoopRV | None = None
        self.vectors: Knob | None = None
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
        producers = {sch.func.block(p)[1].buffer: p for p in self.group.producers}
        self.place_producers([p for b, p in producers.items() if b not in self.choice.packed])
        packs = [
            (b, sch.cache_read(self.block, self.slot(b), "local", self.pack_order(b)))
            for b in self.choice.packed
        ]
        turned = {b: sch.cache_read(copy, 0, "register") for b, copy in packs if self.is_turned(b)}
        for name in (producers[b] for b in self.choice.packed if b in producers):
            sch.compute_inline(sch.get_block(name))
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
            if buffer in self.ahead:
                pack_ahead(sch, copy, middle[-1])
            else:
                assert self.panels is not None
                made = sch.compute_at(copy, self.panels)
                self.limit_panel(buffer, made)
                if buffer in turned:
                    self.turn_pack(buffer, made, turned[buffer])
                else:
                    self.move_pack(buffer, made)
        sch.decompose_reduction(self.block, serial[0])

    def result_in_registers(self) -> str | None:
        """Puts the result into registers; the block that takes it from there."""
        if self.group.epilogue is not None:
            self.sch.set_scope(self.block, 0, "register")
            return self.group.epilogue
        return self.sch.cache_write(self.block, 0, "register").name

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
        load = next(x for x in loads(self.main.value) if x.buffer is buffer)
        return next(d for d, e in enumerate(load.indices) if it in e.vars())

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
            t = self.knob(f"{it.name}_t", fit(PANELS if panels else TILES, it.extent))
            beside = self.vectors_of(it.extent) if width else it.extent
            r = self.knob(f"{it.name}_r", fit((1, 2, 3, 4) if narrow else REGISTERS, beside))
            new = self.sch.split(loops[n], [None, t, r, *width], overlap=1 + len(width))
            outer.append(new[0])
            middle.append(new[1])
            tile.append(new[2])
            size, extent, slack = poly(t) * r, it.extent.const or 1, 15
            if width:
                assert self.lanes is not None
                vectors, lanes = poly(r), new[3]
                self.vectors, self.panels = r, new[0]
                size, slack = size * self.lanes, 4 * self.lanes.domain[-1] - 1
                most_vectors = -(-extent // self.lanes.domain[-1])
            else:
                rows = rows * r
                most_rows *= extent
            self.limit(f"{it.name} beyond its extent", size, extent + slack)
        self.accumulators = rows * vectors
        most = self.target.vector_registers - 1
        # Of a single row each vector is used where it is loaded.
        loaded_first = vectors if most_rows > 1 else poly(1)
        self.limit("registers", self.accumulators + loaded_first + 1, most)
        least = min(_reachable(most_rows * most_vectors), _fitting(most_rows, most_vectors, most))
        self.limit("too few accumulators", -1 * self.accumulators, -least)
        if lane is not None:
            # Each vector is loaded, and each element of the other operand, once for all that it meets.
            loaded = 10 * (rows + vectors) - MAX_LOADS * self.accumulators
            if _reuses(most_rows, most_vectors, most):
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
        self.limit(f"panel of {buffer.name}", panel, MAX_PANEL_BYTES)

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

    def limit(self, label: str, value: Poly, at_most: int) -> None:
        self.constraints.append(Constraint(f"{self.tag}{label}", value, at_most))


def _reuses(rows: int, vectors: int, registers: int) -> bool:
    """Whether some tile of at most so many rows and vectors needs few loads for each multiply-add."""
    return any(
        10 * (r + v) <= MAX_LOADS * r * v and r * v + v + 1 <= registers
        for r in REGISTERS
        for v in REGISTERS
        if r <= rows and v <= vectors
    )


def _fitting(rows: int, vectors: int, registers: int) -> int:
    """The most accumulators of a tile of at most so many rows and vectors that leaves registers for its
    operands."""
    return max(
        r * v
        for r in REGISTERS
        for v in REGISTERS
        if r <= rows and v <= vectors and r * v + v + 1 <= registers
    )


def _reachable(most: int) -> int:
    """A number of accumulators that some register tile of at most `most` vectors surely reaches."""
    return (
        most
        if most < 4
        else min(most, MIN_ACCUMULATORS) // 2
        if most < 2 * MIN_ACCUMULATORS
        else MIN_ACCUMULATORS
    )
