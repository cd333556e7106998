"""Features of a scheduled block, for the cost model: what its loops touch, level by level.

The layout is fixed, whatever the structure, so that every sketch and workload shares one model: LEVELS loop
levels counted from the innermost, SLOTS accesses (the write, then the reads in order). Columns are raw
counts: trees do not care about monotone maps.
"""

from __future__ import annotations

from math import gcd

from ..arith import Atom, Fn, Poly, Var, ceil_div, poly, region, substitute
from ..ir import Block, Buffer, For, InBounds, IterKind, Load, LoopKind, PrimFunc, loads, walk_expr
from ..schedule.find import writers
from .compile import ColumnCompiler

#: Raised when a column changes its meaning: rows of another schema are not mixed.
FEATURE_SCHEMA = 1
LEVELS = 14
SLOTS = 3
#: Bytes of a cache line, and of what the sets of a first-level cache repeat after (64 sets).
LINE = 64
PAGE = 4096
_COPIES = 2
_SPATIAL = 3

FEATURE_NAMES: tuple[str, ...] = (
    *(
        f"{name}.{level}"
        for level in range(LEVELS)
        for name in (
            "extent",
            *(f"{what}.{slot}" for slot in range(SLOTS) for what in ("elements", "lines")),
            "bytes",
            "conflicting bytes",
            "pages",
            "intensity",
        )
    ),
    "trips",
    "unrolled",
    "lanes",
    "accumulators",
    "inner loads",
    *(f"lane stride.{slot}" for slot in range(SLOTS)),
    "executed",
    "guarded",
    *(f"padded.{d}" for d in range(_SPATIAL)),
    *(f"{what}.{n}" for n in range(_COPIES) for what in ("copy work", "copy strided")),
    "sketch",
)


def relax(p: Poly) -> Poly:
    """An overlapped tile's base min(a, E - tile) spans what a spans."""
    values: dict[Atom, Poly] = {a: a.a for a in p.atoms() if isinstance(a, Fn) and a.op == "min"}
    return substitute(p, values) if values else p


def in_one_go(access: tuple[Buffer, tuple[Poly, ...]]) -> tuple[Buffer, tuple[Poly, ...]]:
    """The access with dimensions that one fused variable walks, as in `A[v // 8, v % 8]`, as one."""
    buffer, indices = access
    shape: list[Poly] = []
    flat: list[Poly] = []
    for i, extent in zip(indices, buffer.shape, strict=True):
        joined = flat[-1] * extent + i if flat else None
        if joined is not None and _has_division(flat[-1]) and not _has_division(joined):
            shape[-1], flat[-1] = shape[-1] * extent, joined
        else:
            shape.append(extent)
            flat.append(i)
    if len(flat) == len(indices):
        return access
    return Buffer(buffer.name, tuple(shape), buffer.dtype, buffer.scope), tuple(flat)


def _has_division(p: Poly) -> bool:
    return any(type(a) is Fn for a in p.atoms())


def feature_columns(func: PrimFunc, main: str, index: int, c: ColumnCompiler) -> list[str]:
    """One column for each of FEATURE_NAMES, as emitted into `c`."""
    return _Features(func, main, index, c).columns()


def row_places(buffer: Buffer) -> int:
    """At how many different places of a page the rows of a buffer start; the copies that the schedule makes
    are dense panels."""
    if buffer.scope != "global" or len(buffer.shape) < 2:
        return PAGE // LINE
    stride = (buffer.shape[-1].const or 1) * buffer.dtype.bytes
    return min(PAGE // LINE, PAGE // gcd(PAGE, stride))


class _Features:
    def __init__(self, func: PrimFunc, main: str, index: int, c: ColumnCompiler) -> None:
        self.func, self.index, self.c = func, index, c
        path, block = func.block(main)
        self.path: tuple[For, ...] = path[::-1]
        self.block: Block = block
        m: dict[Atom, Poly] = {k: relax(v) for k, v in block.binding.items()}
        reads = [x for x in loads(block.value) if x.buffer is not block.buffer][: SLOTS - 1]
        accesses = [(block.buffer, block.indices), *((y.buffer, y.indices) for y in map(self.source, reads))]
        self.accesses = [(b, tuple(substitute(i, m) for i in ix)) for b, ix in map(in_one_go, accesses)]
        #: Of each access, whether it comes by way of registers, where lanes lie as they are needed.
        self.by_registers = [False, *(x.buffer.scope == "register" for x in reads)]
        self.extents = [c.emit(f.var.extent) for f in self.path]

    def source(self, x: Load) -> Load:
        """What a read of registers finds there, if a copy of memory: as a read of that memory."""
        if x.buffer.scope != "register":
            return x
        made = writers(self.func, x.buffer)
        if len(made) != 1 or type(made[0].value) is not Load:
            return x
        iters = [i.atom for i in made[0].indices]
        if any(type(a) is not Var for a in iters):
            return x
        m: dict[Atom, Poly] = {a: i for a, i in zip(iters, x.indices, strict=True) if a is not None}
        value = made[0].value
        return Load(value.buffer, tuple(substitute(i, m) for i in value.indices))

    def columns(self) -> list[str]:
        out: list[str] = []
        touched = [self.touched(level) for level in range(len(self.path))]
        trips, inner = [], "1.0"
        for e in self.extents:
            inner = self.c.product([inner, e])
            trips.append(inner)
        for level in range(LEVELS):
            at = min(level, len(self.path) - 1)
            out.append(self.extents[level] if level < len(self.path) else "1.0")
            slots = touched[at] if self.path else []
            for s in range(SLOTS):
                out += slots[s][:2] if s < len(slots) else ("0.0", "0.0")
            size = self.c.let(f"{self.c.sum(x[1] for x in slots)} * {float(LINE)}")
            out.append(size)
            out.append(self.c.let(f"{self.c.sum(x[2] for x in slots)} * {float(LINE)}"))
            out.append(self.c.sum(x[3] for x in slots))
            out.append(self.c.let(f"{trips[at] if trips else '1.0'} / maximum({size}, 1.0)"))
        tile = {f.var for f in self.path if f.kind in (LoopKind.UNROLLED, LoopKind.VECTORIZED)}
        lanes = next(
            (e for e, f in zip(self.extents, self.path, strict=True) if f.kind is LoopKind.VECTORIZED), "1.0"
        )
        unrolled = [e for e, f in zip(self.extents, self.path, strict=True) if f.kind is LoopKind.UNROLLED]
        out += [trips[-1] if trips else "1.0", self.c.product(unrolled), lanes]
        out.append(self.c.let(f"{self.elements(0, tile)} / {lanes}"))
        strides = self.lane_strides()
        # One load instruction fetches all lanes, or one element for all of them; a strided read is a load for
        # each lane.
        loads_ = []
        for slot in range(1, len(self.accesses)):
            elements = self.elements(slot, tile)
            loads_.append(self.c.let(f"{elements} / {lanes}") if strides[slot] == "1.0" else elements)
        out.append(self.c.sum(loads_))
        out += strides
        padded = self.padded(tile)
        steps = [self.c.emit(it.extent) for it, k in self.kinds() if k is IterKind.REDUCE]
        out.append(self.c.product([*padded, *steps]))
        out.append("1.0" if any(type(e) is InBounds for e in walk_expr(self.block.value)) else "0.0")
        sizes = [p for p, (it, _) in zip(padded, self.kinds(), strict=False) if it.extent.const != 1]
        out += (sizes + ["1.0"] * _SPATIAL)[:_SPATIAL]
        out += self.copies()
        out.append(repr(float(self.index)))
        return out

    def spans(self, slot: int, inner: set[Var]) -> list[str]:
        """The extent of what an access touches in each dimension while `inner` run."""
        _, indices = self.accesses[slot]
        out: list[str] = []
        for i in indices:
            box = region([(i,)], inner)
            if box is None:
                # Not a box (fused loops): at most as many elements as iterations that move this index.
                out.append(self.c.product(self.c.emit(v.extent) for v in sorted(i.vars() & inner)))
            else:
                out.append(self.c.emit(box[0][1]))
        return out

    def elements(self, slot: int, inner: set[Var]) -> str:
        return self.c.product(self.spans(slot, inner))

    def touched(self, level: int) -> list[tuple[str, str, str, str]]:
        """(elements, cache lines, lines as the first-level cache feels them, pages) of each access while the
        loops up to `level` run."""
        inner = {f.var for f in self.path[: level + 1]}
        out: list[tuple[str, str, str, str]] = []
        for s, (buffer, _) in enumerate(self.accesses):
            spans = self.spans(s, inner)
            elements = self.c.product(spans)
            per_line = LINE // buffer.dtype.bytes
            last = spans[-1] if spans else "1.0"
            rows = self.c.product(spans[:-1])
            row_lines = "1.0" if last == "1.0" else self.c.let(f"maximum(1.0, {last} * {1 / per_line})")
            lines = self.c.product([rows, row_lines])
            felt = self.felt(buffer, lines, rows, row_lines)
            out.append((elements, lines, felt, self.pages(buffer, lines, rows)))
        return out

    def felt(self, buffer: Buffer, lines: str, rows: str, row_lines: str) -> str:
        """Lines as a first-level cache feels them: rows that start at few places of a page share its sets, so
        that R rows of l lines fill only places * l of the PAGE / LINE sets."""
        places, sets = row_places(buffer), PAGE // LINE
        if places >= sets:
            return lines
        filled = self.c.let(f"minimum({float(sets)}, {float(places)} * {row_lines})")
        crowded = self.c.let(f"maximum({lines}, {lines} * {float(sets)} / {filled})")
        # One row is never crowded.
        return self.c.let(f"minimum({crowded}, {lines} * {rows})")

    def pages(self, buffer: Buffer, lines: str, rows: str) -> str:
        """Pages that the rows lie on; a dense panel fills its pages."""
        dense = self.c.let(f"{lines} * {LINE / PAGE}")
        if buffer.scope != "global" or len(buffer.shape) < 2:
            return dense
        apart = min(1.0, (buffer.shape[-1].const or 1) * buffer.dtype.bytes / PAGE)
        return self.c.let(f"maximum({dense}, {rows} * {apart})")

    def lane_strides(self) -> list[str]:
        """For each access: 0 when it does not move with the lanes, 1 for one element a lane, 2 for anything
        else."""
        lane = next((f.var for f in self.path if f.kind is LoopKind.VECTORIZED), None)
        out: list[str] = []
        for (_, indices), turned in zip(self.accesses, self.by_registers, strict=True):
            moving = [d for d, i in enumerate(indices) if lane is not None and lane in i.vars()]
            unit = lane is not None and moving == [len(indices) - 1] and indices[-1].coefficient(lane) == 1
            out.append("0.0" if not moving else "1.0" if unit or turned else "2.0")
        return out + ["0.0"] * (SLOTS - len(out))

    def kinds(self) -> list[tuple[Var, IterKind]]:
        """The iteration variables, the spatial ones first, each with its kind."""
        pairs = list(zip(self.block.iters, self.block.kinds, strict=True))
        return sorted(pairs, key=lambda p: p[1] is IterKind.REDUCE)

    def padded(self, tile: set[Var]) -> list[str]:
        """The extent of each spatial iteration variable, rounded up to whole register tiles: tiles beyond do
        not run."""
        out: list[str] = []
        for it, kind, bind in zip(self.block.iters, self.block.kinds, self.block.binds, strict=True):
            if kind is IterKind.SPATIAL:
                box = region([(relax(bind),)], tile)
                span = box[0][1] if box is not None else poly(1)
                out.append(self.c.emit(ceil_div(it.extent, span) * span))
        return out

    def copies(self) -> list[str]:
        """For the first copies into memory: how many elements they copy in all, and whether the lanes run
        along a strided read."""
        out: list[str] = []
        for path, b in self.func.blocks():
            if (
                len(out) >= 2 * _COPIES
                or b.buffer in self.func.params
                or b.buffer.scope == "register"
                or b is self.block
            ):
                continue
            work = self.c.product(self.c.emit(f.var.extent) for f in path)
            lane = next((f.var for f in path if f.kind is LoopKind.VECTORIZED), None)
            out += [work, "0.0" if lane is not None and _unit(b, lane) else "1.0"]
        return out + ["0.0"] * (2 * _COPIES - len(out))


def _unit(b: Block, lane: Var) -> bool:
    """Whether every read of the block moves by one element with the lane, or not at all."""
    m = b.binding
    for x in loads(b.value):
        last = [substitute(i, m) for i in x.indices]
        if any(lane in i.vars() for i in last[:-1]) or (
            last and lane in last[-1].vars() and last[-1].coefficient(lane) != 1
        ):
            return False
    return True
