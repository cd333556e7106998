"""Random steps: for each primitive a proposal that is often legal, and sometimes not."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any, TypeVar

from tilewright.compiler.ir import Block, Cast, IterKind, Load, PrimFunc, buffers_read, walk_expr
from tilewright.compiler.schedule import BlockRV, LoopRV, Schedule, ScheduleError
from tilewright.compiler.schedule.find import consumers, producers

T = TypeVar("T")

SCOPES = ("global", "global", "local", "register")


class NothingToDo(Exception):
    """The program has nothing that the step could be tried on."""


class Walk:
    """Applies random steps to a schedule. applied and refused count them by name; a refused step leaves the
    schedule alone."""

    def __init__(self, sch: Schedule, rng: random.Random) -> None:
        self.sch = sch
        self.rng = rng
        self.applied: Counter[str] = Counter()
        self.refused: Counter[str] = Counter()
        #: The block that was drawn last: what a step leaves behind is best met by the next one.
        self.last = ""
        #: The block that makes the parts of the last reduction that was factored.
        self.parts = ""

    def run(self, steps: int) -> None:
        """Draws until `steps` of them were applied, or three times as many were tried."""
        names, weights = list(WEIGHTS), list(WEIGHTS.values())
        for first, blocks in (("flip_sign", self.flippable()), ("convert_read", self.converting())):
            # What wants a program as it was written.
            if blocks and self.chance(0.3):
                self.step(first)
        for _ in range(3 * steps):
            if self.applied.total() >= steps:
                return
            self.step(self.rng.choices(names, weights)[0])

    def step(self, name: str) -> bool:
        """Whether a random step of this name was applied."""
        before, func = self.sch.copy(), self.sch.func
        try:
            STEPS[name](self)
        except NothingToDo:
            self.sch.adopt(before)
            return False
        except ScheduleError as e:
            if not e.reason or (self.sch.func is not func and name not in SEVERAL):
                raise AssertionError(f"{name} was refused without a reason, or half done") from e
            self.sch.adopt(before)
            self.refused[e.primitive if name in SEVERAL else name] += 1
            self.refused[name] += name not in COVERED and name in SEVERAL
            return False
        self.applied[name] += 1
        return True

    # ---- drawing
    def one(self, xs: Sequence[T]) -> T:
        if not xs:
            raise NothingToDo
        return self.rng.choice(xs)

    def chance(self, p: float) -> bool:
        return self.rng.random() < p

    def block(self) -> BlockRV:
        names = [b.name for _, b in self.sch.func.blocks()]
        if self.last not in names or not self.chance(0.3):
            self.last = self.rng.choice(names)
        return self.sch.get_block(self.last)

    def named(self, names: Sequence[str]) -> BlockRV:
        return self.sch.get_block(self.one(names))

    def loops(self, block: BlockRV | None = None) -> list[LoopRV]:
        return self.sch.get_loops(block or self.block())

    def loop(self, block: BlockRV | None = None) -> LoopRV:
        return self.one(self.loops(block))

    def inner_loop(self) -> LoopRV:
        loops = self.loops()
        return loops[-1] if loops and self.chance(0.6) else self.one(loops)

    def run_of_loops(self, most: int) -> list[LoopRV]:
        """A few adjacent loops."""
        loops = self.loops()
        if len(loops) < 2:
            raise NothingToDo
        at = self.rng.randrange(len(loops) - 1)
        return loops[at : at + self.rng.randint(2, most)]

    def factor(self, loop: LoopRV) -> int:
        extent = loop.var.extent.const or 8
        return self.rng.choice([1, 2, 2, 3, 4, 4, 5, 8, 8, 16, max(1, extent), extent + 2])

    # ---- steps
    def split(self) -> None:
        loop = self.loop()
        factors: list[int | None] = [self.factor(loop) for _ in range(self.rng.choice([2, 2, 2, 3]))]
        if self.chance(0.9):
            factors[self.rng.randrange(len(factors))] = None
        self.sch.split(loop, factors)

    def split_overlapped(self) -> None:
        loop = self.loop()
        self.sch.split(loop, [None, self.factor(loop)], overlap=1)

    def split_partitioned(self) -> None:
        loop = self.loop()
        self.sch.split(loop, [None, self.factor(loop)], tail="partition")

    def loop_partition(self) -> None:
        loop = self.loop()
        extent = loop.var.extent.const or 4
        self.sch.loop_partition(
            loop, sorted({self.rng.randint(-2, extent) for _ in range(self.rng.randint(1, 2))})
        )

    def merge_loops(self) -> None:
        """Two loops that stand side by side; often of blocks that were written one after the other."""
        blocks = self.sch.get_blocks()
        n = self.rng.randrange(len(blocks))
        pair = [self.loops(b) for b in blocks[n : n + 2]]
        if len(pair) < 2 or not all(pair):
            raise NothingToDo
        apart = next((d for d, (x, y) in enumerate(zip(*pair, strict=False)) if x.var is not y.var), None)
        if apart is None:
            raise NothingToDo
        self.sch.merge_loops(pair[0][apart], pair[1][apart])

    def add_unit_loop(self) -> None:
        self.sch.add_unit_loop(self.block() if self.chance(0.5) else self.loop())

    def bind(self) -> None:
        self.sch.bind(self.loop(), self.rng.choice(["blockIdx.x", "threadIdx.x", "vthread.y", "nowhere.z"]))

    def fuse(self) -> None:
        self.sch.fuse(*self.run_of_loops(3))

    def reorder(self) -> None:
        loops = self.loops()
        if len(loops) < 2:
            raise NothingToDo
        self.sch.reorder(*self.rng.sample(loops, self.rng.randint(2, min(5, len(loops)))))

    def parallel(self) -> None:
        self.sch.parallel(self.loop())

    def vectorize(self) -> None:
        names = self.parts_in_registers()
        if names and self.chance(0.5):
            self.sch.vectorize(self.loops(self.named(names))[-1])
            return
        self.sch.vectorize(self.inner_loop())

    def unroll(self) -> None:
        self.sch.unroll(self.inner_loop())

    def annotate(self) -> None:
        at: LoopRV | BlockRV = self.block() if self.chance(0.5) else self.loop()
        self.sch.annotate(at, self.rng.choice(["pragma", "hint", "a key"]), self.rng.choice([1, "x"]))

    def unannotate(self) -> None:
        marked = [b.name for _, b in self.sch.func.blocks() if b.annotations]
        at: LoopRV | BlockRV = self.named(marked) if marked and self.chance(0.8) else self.block()
        if self.chance(0.4):
            # What was attached before is taken off again.
            self.sch.annotate(at, "hint", 1)
            self.applied["annotate"] += 1
            self.sch.unannotate(at, "hint")
            return
        self.sch.unannotate(at, self.rng.choice(["pragma", "hint"]))

    def look_around(self) -> None:
        """Blocks by data flow, one of which is then moved or inlined."""
        block = self.block()
        found = self.sch.get_producers(block) if self.chance(0.5) else self.sch.get_consumers(block)
        self.sch.compute_inline(self.one(found))

    def loop_beside(self, block: BlockRV, of: Callable[[PrimFunc, Block], list[Block]]) -> LoopRV:
        """Mostly a loop of a block that makes what this one reads, or reads what it makes."""
        near = [b.name for b in of(self.sch.func, self.sch.func.block(block.name)[1])]
        return self.loop(self.named(near)) if near and self.chance(0.7) else self.loop()

    def compute_at(self) -> None:
        block = self.block()
        self.sch.compute_at(block, self.loop_beside(block, consumers))

    def sample_compute_location(self) -> None:
        block = self.block()
        loop = self.sch.sample_compute_location(block, decision=self.rng.choice([0, 0, 1, 1, 2, 3]))
        self.follow("compute_at", lambda: self.sch.compute_at(block, loop))

    def reverse_compute_at(self) -> None:
        block = self.block()
        self.sch.reverse_compute_at(block, self.loop_beside(block, producers))

    def compute_inline(self) -> None:
        self.sch.compute_inline(self.block())

    def reverse_compute_inline(self) -> None:
        self.sch.reverse_compute_inline(self.block())

    def compute_ahead(self) -> None:
        """Mostly a block that reads a constant, or a new copy of one under a loop of its reader."""
        reads = [
            (b.name, n)
            for _, b in self.sch.func.blocks()
            for n, x in enumerate(buffers_read(b))
            if x.constant
        ]
        if not reads or self.chance(0.1):
            self.sch.compute_ahead(self.block())
            return
        name, index = self.one(reads)
        block = self.sch.get_block(name)
        if self.chance(0.3):
            self.sch.compute_ahead(block)
            return
        copy = self.sch.cache_read(block, index, self.rng.choice(["global", "local"]))
        self.applied["cache_read"] += 1
        if self.chance(0.7):
            self.follow("compute_at", lambda: self.sch.compute_at(copy, self.loop(block)))
        self.sch.compute_ahead(copy)

    def flippable(self) -> list[str]:
        """The sums that read 8-bit integers."""
        return [
            b.name
            for _, b in self.sch.func.blocks()
            if b.is_reduction and any(x.dtype.is_int and x.dtype.bits == 8 for x in buffers_read(b))
        ]

    def converting(self) -> list[str]:
        """The blocks that convert what they read."""
        return [
            b.name
            for _, b in self.sch.func.blocks()
            if any(type(e) is Cast and type(e.a) is Load for e in walk_expr(b.value))
        ]

    def one_of(self, names: list[str]) -> BlockRV:
        """Mostly one of these blocks."""
        return self.named(names) if names and self.chance(0.9) else self.block()

    def flip_sign(self) -> None:
        self.sch.flip_sign(self.one_of(self.flippable()), self.rng.choice([0, 1]))

    def convert_read(self) -> None:
        block = self.one_of(self.converting())
        index = self.rng.choice([0, 1])
        read = buffers_read(self.sch.func.block(block.name)[1])
        is_float = bool(read) and read[min(index, len(read) - 1)].dtype.is_float
        dtypes = ["float32"] if is_float else ["int16", "int32"]
        self.sch.convert_read(block, index, self.rng.choice([*dtypes, "float32", "int8"]))

    def steps_around_lanes(self) -> None:
        """Steps of a reduction, or of a copy, that stand unrolled around lanes, perhaps with other loops
        between them."""
        block = self.one_of(self.reductions()) if self.chance(0.7) else self.block()
        b = self.sch.func.block(block.name)[1]
        loops = [x for x in self.loops(block) if (x.var.extent.const or 0) > 1]
        carried = b.loop_vars(IterKind.REDUCE)
        lane = self.one([x for x in loops if x.var not in carried and (x.var.extent.const or 0) > 3])
        step = self.one([x for x in loops if x.var in carried or (not carried and x.var is not lane.var)])
        _, lanes = self.sch.split(lane, [None, self.rng.choice([4, 8, 16])])
        _, steps = self.sch.split(step, [None, self.rng.choice([2, 4, 4])])
        outer = [x for x in self.loops(block) if x.var not in (lanes.var, steps.var)]
        between = [x for x in outer if (x.var.extent.const or 99) < 5 and self.chance(0.3)]
        kept = [x for x in outer if all(x.var is not y.var for y in between)]
        self.sch.reorder(*kept, steps, *between, lanes)
        if b.init is not None:
            at = self.loops(block)[0] if self.chance(0.5) else self.one([*kept, steps])
            self.follow("decompose_reduction", lambda: self.sch.decompose_reduction(block, at))
        for x in (steps, *between):
            self.sch.unroll(x)
        self.sch.vectorize(lanes)

    def cache_read(self) -> None:
        block = self.block()
        order = None
        if self.chance(0.4):
            order = list(range(self.rng.randint(1, 3)))
            self.rng.shuffle(order)
        accesses = self.rng.sample([0, 1, 2], self.rng.choice([1, 1, 2])) if self.chance(0.2) else None
        slot, scope = self.rng.choice([0, 0, 1]), self.rng.choice(SCOPES)
        copy = self.sch.cache_read(block, slot, scope, order=order, accesses=accesses)
        if self.chance(0.6):
            self.follow("compute_at", lambda: self.sch.compute_at(copy, self.loop(block)))

    def cache_write(self) -> None:
        block = self.block()
        copy = self.sch.cache_write(block, 0, self.rng.choice(SCOPES))
        if self.chance(0.6):
            self.follow("reverse_compute_at", lambda: self.sch.reverse_compute_at(copy, self.loop(block)))

    def follow(self, name: str, f: Callable[[], Any]) -> None:
        """A second step that often goes with a first."""
        try:
            f()
            self.applied[name] += 1
        except NothingToDo:
            return
        except ScheduleError:
            self.refused[name] += 1

    def set_scope(self) -> None:
        names = [b.name for _, b in self.sch.func.blocks()]
        if self.parts in names and self.chance(0.5):
            self.sch.set_scope(self.sch.get_block(self.parts), 0, "register")
            return
        self.sch.set_scope(self.block(), 0, self.rng.choice(SCOPES))

    def decompose_reduction(self) -> None:
        block = self.block()
        self.sch.decompose_reduction(block, self.loop(block))

    def reductions(self) -> list[str]:
        return [b.name for _, b in self.sch.func.blocks() if b.is_reduction]

    def rfactor(self) -> None:
        names = self.reductions()
        block = self.named(names) if names and self.chance(0.9) else self.block()
        loops = self.loops(block)
        loop = loops[-1] if loops and self.chance(0.5) else self.one(loops)
        self.parts = self.sch.rfactor(loop, self.rng.choice([0, 0, 0, 1, 2])).name

    def parts_in_registers(self) -> list[str]:
        """The blocks that combine the elements of a register buffer."""
        reductions = [self.sch.func.block(n)[1] for n in self.reductions()]
        return [b.name for b in reductions if any(x.scope == "register" for x in buffers_read(b))]

    def reindex(self) -> None:
        self.sch.reindex(self.block(), self.rng.choice(["read", "read", "write"]), self.rng.choice([0, 0, 1]))

    def pad_einsum(self) -> None:
        names = self.reductions()
        block = self.named(names) if names and self.chance(0.9) else self.block()
        _, b = self.sch.func.block(block.name)
        self.sch.pad_einsum(block, [self.rng.choice([1, 1, 2, 4, 8]) for _ in b.iters])

    def storage_align(self) -> None:
        self.sch.storage_align(
            self.block(), 0, self.rng.choice([0, 0, 1]), self.rng.choice([8, 16, 5]), self.rng.randint(0, 3)
        )

    def index_map(self, rank: int) -> Callable[..., Any]:
        """Reversed, rotated, or with one index in two pieces, the inner of which may come first."""
        kind, size = self.rng.randrange(4), self.rng.choice([2, 3, 4, 5])
        which = self.rng.randrange(max(1, rank))

        def map_(*at: Any) -> list[Any]:
            if kind == 0 or not at:
                return list(at[::-1])
            if kind == 1:
                return [*at[1:], at[0]]
            pieces = [at[which] // size, at[which] % size]
            rest = [x for n, x in enumerate(at) if n != which]
            return [pieces[0], *rest, pieces[1]] if kind == 2 else [pieces[1], *rest, pieces[0]]

        # The trace prints a map with as many parameters as there are indices.
        names = [f"i{n}" for n in range(rank)]
        made: Callable[..., Any] = eval(f"lambda {', '.join(names)}: f({', '.join(names)})", {"f": map_})
        return made

    def transform_layout(self) -> None:
        block = self.block()
        _, b = self.sch.func.block(block.name)
        pad = self.rng.choice([None, 0])
        self.sch.transform_layout(block, 0, self.index_map(len(b.indices)), pad)

    def transform_block_layout(self) -> None:
        block = self.block()
        _, b = self.sch.func.block(block.name)
        self.sch.transform_block_layout(block, self.index_map(len(b.iters)))

    def blockize(self) -> None:
        self.sch.blockize(self.inner_loop())

    def tensorize(self) -> None:
        """Dot products: sixteen lanes, four steps."""
        block = self.named(self.reductions()) if self.reductions() else self.block()
        name = self.rng.choice(["dot_16x4_i8i8i32", "dot_16x4_u8i8i32", "dot_16x4_f32"])
        if self.chance(0.2):
            self.sch.tensorize(self.loop(block), name)
            return
        dtypes = {x.dtype.code + str(x.dtype.bits) for x in buffers_read(self.sch.func.block(block.name)[1])}
        name = (
            "dot_16x4_f32" if "float32" in dtypes else "dot_16x4_i8i8i32" if "uint8" not in dtypes else name
        )
        loops = self.loops(block)
        steps_of = [x for x in loops[-1:] if (x.var.extent.const or 1) % 4 == 0]
        lanes_of = [x for x in loops[:-1] if (x.var.extent.const or 1) % 16 == 0]
        lane, step = self.one(lanes_of[-1:]), self.one(steps_of)
        _, lanes = self.sch.split(lane, [None, 16])
        _, steps = self.sch.split(step, [None, 4])
        self.sch.reorder(*[x for x in self.loops(block) if x.var not in (lanes.var, steps.var)], lanes, steps)
        first = self.loops(block)[0]
        self.follow("decompose_reduction", lambda: self.sch.decompose_reduction(block, first))
        self.sch.tensorize(lanes, name)


#: What takes other steps first.
SEVERAL = {"tensorize", "unannotate", "compute_ahead", "steps_around_lanes"}
#: How often each is drawn, beside the others.
WEIGHTS: dict[str, float] = {
    "split": 10,
    "split_overlapped": 2,
    "split_partitioned": 2,
    "loop_partition": 3,
    "merge_loops": 6,
    "add_unit_loop": 1,
    "bind": 2,
    "fuse": 4,
    "reorder": 5,
    "parallel": 2,
    "vectorize": 3,
    "unroll": 3,
    "annotate": 1,
    "unannotate": 1,
    "look_around": 1,
    "compute_at": 6,
    "compute_ahead": 4,
    "sample_compute_location": 2,
    "reverse_compute_at": 6,
    "compute_inline": 2,
    "reverse_compute_inline": 2,
    "cache_read": 4,
    "cache_write": 4,
    "set_scope": 3,
    "decompose_reduction": 5,
    "rfactor": 4,
    "flip_sign": 3,
    "convert_read": 3,
    "steps_around_lanes": 5,
    "reindex": 2,
    "pad_einsum": 4,
    "storage_align": 3,
    "transform_layout": 4,
    "transform_block_layout": 3,
    "blockize": 2,
    "tensorize": 14,
}
STEPS: dict[str, Callable[[Walk], None]] = {name: getattr(Walk, name) for name in WEIGHTS}
#: What a schedule offers and the steps above try, beside samplers (which a search resolves before it builds).
COVERED = (
    {"get_block", "get_blocks", "get_loops", "get_producers", "get_consumers"}
    | {"sample_categorical", "sample_perfect_tile"}
    | {
        name.removesuffix("_overlapped").removesuffix("_partitioned")
        for name in WEIGHTS
        if name not in ("look_around", "steps_around_lanes")
    }
)
