"""Register tiles over a block of the reduction at a time, whose sums are added to those of the blocks before
in a panel that stays in a cache.

Loops, outermost first: panels of the lane axis · blocks of the reduction · whole tiles · middle tiles ·
reduction within the block · unrolled reduction · register tile · lanes. So the rows of an operand that a
panel meets are read from a near cache however long the reduction is, and a panel that is packed is small.
"""

from __future__ import annotations

from math import gcd

from ..arith import Knob, Poly, poly
from ..ir import Block, IterKind, PrimFunc
from ..schedule import BlockRV, LoopRV
from ..target import Target
from .contraction_tiles import ContractionTiles
from .factors import FEW_REGISTERS, MAX_BODY, blocks, divisors

#: Steps of a block of the reduction, at least: fewer are not worth the additions to the panel of sums.
LEAST_STEPS = 64
#: The same where registers are few and a tile has four rows, so that each row of the other operand is read
#: often: from the first-level cache, of which rows 4096 bytes apart share the sets, 8 to 12 ways each.
LEAST_STEPS_OF_SMALL_TILES = 8
#: At most: twice as many rows of a register tile of three vectors fill half of a second-level cache.
MOST_STEPS = 1024
#: Steps from which on a reduction is worth splitting.
LONG = 1024
#: Bytes of a cache that the target does not describe.
DEFAULT_CACHE = 1 << 19


def long_reduction(func: PrimFunc, main: Block, target: Target) -> int | None:
    """The position of the one reduction that is worth taking block by block; None where there is none, or
    where the order of additions is the program's."""
    steps = [n for n, k in enumerate(main.kinds) if k is IterKind.REDUCE and main.iters[n].extent.const != 1]
    if target.math != "reassoc" or len(steps) != 1:
        return None
    extent = main.iters[steps[0]].extent.const or 0
    return steps[0] if extent >= LONG and _blocks(extent, target) else None


def _blocks(extent: int, target: Target) -> tuple[int, ...]:
    """Divisors, so that no step is masked."""
    least = LEAST_STEPS if target.vector_registers > FEW_REGISTERS else LEAST_STEPS_OF_SMALL_TILES
    most = min(MOST_STEPS, extent // 2)
    return blocks(tuple(d for d in divisors(extent, most) if d >= least))


class StagedTiles(ContractionTiles):
    """Applies one structure of a contraction, its reduction block by block."""

    #: Tiles that overlap would add their elements twice.
    overlaps = False
    #: Panels are short, and what is copied into a wide one is read in longer runs.
    beside = (1, 2, 4, 8)

    def apply(self) -> None:
        """Every step, in an order in which each is legal."""
        sch, main = self.sch, self.main
        step = long_reduction(sch.func, main, self.target)
        assert step is not None and self.choice.lane is not None
        self.lanes = self.lanes_of(self.choice.lane)
        last = self.result_in_panel()
        packs, turned = self.place_operands()
        reduction = main.iters[step]
        sizes = _blocks(reduction.extent.const or 0, self.target)
        size = self.knob(f"{reduction.name}_b", sizes)
        unroll = self.knob(f"{reduction.name}_u", divisors(gcd(*sizes), 8))
        loops = sch.get_loops(self.block)
        turn, inner = sch.split(loops[step], [None, size])
        sch.reorder(turn, inner, *(x for n, x in enumerate(loops) if n != step))
        parts = sch.rfactor(turn, 0)
        sch.set_scope(parts, 0, "register")

        after = sch.get_loops(self.block)
        spatial = [n for n, k in enumerate(main.kinds) if k is IterKind.SPATIAL]
        # Behind the factored reduction stand the loops of the others as they were.
        turn, others = after[0], iter(after[1:])
        loops = [next(others) if n in spatial else turn for n in range(len(main.kinds))]
        outer, middle, tile = self.tile_spatial(loops)
        assert self.panels is not None
        at = outer.index(self.panels) + 1
        sch.reorder(*outer[:at], turn, *outer[at:], *middle, *tile)
        for loop in tile[:-1]:
            sch.unroll(loop)
        sch.vectorize(tile[-1])
        serial = self.place_parts(parts, middle[-1], unroll)
        self.limit("unrolled body", self.accumulators * unroll, MAX_BODY)
        self.write_back(last, self.panels)
        self.place_packs(packs, turned, middle[-1], turn)
        sch.decompose_reduction(parts, serial)
        sch.decompose_reduction(self.block, turn)
        self.limit_sums()

    def result_in_panel(self) -> str:
        """Puts the sums into a buffer of their own; the block that takes them from there."""
        if self.group.epilogue is not None:
            self.sch.set_scope(self.block, 0, "local")
            return self.group.epilogue
        return self.sch.cache_write(self.block, 0, "local").name

    def place_parts(self, parts: BlockRV, at: LoopRV, unroll: Knob) -> LoopRV:
        """Computes the sums of a register tile over one block under the tile; the loop of its steps."""
        sch = self.sch
        b = sch.func.block(parts.name)[1]
        loops = sch.compute_at(parts, at)
        lane = next(n for n, it in enumerate(b.iters) if it.name == self.main.iters[self.lane].name)
        steps = next(n for n, k in enumerate(b.kinds) if k is IterKind.REDUCE)
        vectors, lanes = sch.split(loops[lane], [None, self.lanes])
        serial, unrolled = sch.split(loops[steps], [None, unroll])
        rows = [x for n, x in enumerate(loops) if n not in (lane, steps)]
        sch.reorder(serial, unrolled, *rows, vectors, lanes)
        for loop in (unrolled, *rows, vectors):
            sch.unroll(loop)
        sch.vectorize(lanes)
        return serial

    @property
    def lane(self) -> int:
        assert self.choice.lane is not None
        return self.choice.lane

    def write_back(self, last: str, at: LoopRV) -> None:
        """The block behind the reduction takes a whole panel of sums, by vectors."""
        sch = self.sch
        loops = sch.reverse_compute_at(sch.get_block(last), at)
        lane = self.lane_loop(last, loops)
        vectors, lanes = sch.split(lane, [None, self.lanes])
        sch.reorder(*(x for x in loops if x is not lane), vectors, lanes)
        sch.vectorize(lanes)

    def limit_sums(self) -> None:
        """The sums of a panel leave room for what they are made of."""
        size: Poly = poly(self.main.buffer.dtype.bytes)
        for n, (it, k) in enumerate(zip(self.main.iters, self.main.kinds, strict=True)):
            if k is IterKind.SPATIAL:
                size = size * (self.panel if n == self.lane else it.extent)
        self.limit("panel of sums", size, (self.target.l2 or DEFAULT_CACHE) // 2)
