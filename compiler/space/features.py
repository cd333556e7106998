"""Features of a scheduled block, for the cost model: what its loops touch, level by level.

The layout is fixed, whatever the structure, so that every sketch and workload shares one model: LEVELS loop
levels counted from the innermost, SLOTS accesses (the write, then the reads in order). Columns are raw
counts: trees do not care about monotone maps.
"""

from __future__ import annotations

from ..arith import Atom, Fn, Poly, Var, ceil_div, poly, region, substitute
from ..ir import Block, For, IterKind, LoopKind, PrimFunc, loads
from .compile import ColumnCompiler

#: Raised when a column changes its meaning: rows of another schema are not mixed.
FEATURE_SCHEMA = 1
LEVELS = 14
SLOTS = 3
#: Bytes of a cache line.
LINE = 64
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
            "intensity",
        )
    ),
    "trips",
    "unrolled",
    "lanes",
    "accumulators",
    "inner loads",
    *(f"padded.{d}" for d in range(_SPATIAL)),
    *(f"{what}.{n}" for n in range(_COPIES) for what in ("copy work", "copy strided")),
    "sketch",
)


def relax(p: Poly) -> Poly:
    """An overlapped tile's base min(a, E - tile) spans what a spans."""
    values: dict[Atom, Poly] = {a: a.a for a in p.atoms() if isinstance(a, Fn) and a.op == "min"}
    return substitute(p, values) if values else p


def feature_columns(func: PrimFunc, main: str, index: int, c: ColumnCompiler) -> list[str]:
    """One column for each of FEATURE_NAMES, as emitted into `c`."""
    return _Features(func, main, index, c).columns()


class _Features:
    def __init__(self, func: PrimFunc, main: str, index: int, c: ColumnCompiler) -> None:
        self.func, self.index, self.c = func, index, c
        path, block = func.block(main)
        self.path: tuple[For, ...] = path[::-1]
        self.block: Block = block
        m: dict[Atom, Poly] = {k: relax(v) for k, v in block.binding.items()}
        accesses = [(block.buffer, block.indices)]
        accesses += [(x.buffer, x.indices) for x in loads(block.value) if x.buffer is not block.buffer]
        self.accesses = [(b, tuple(substitute(i, m) for i in ix)) for b, ix in accesses[:SLOTS]]
        self.extents = [c.emit(f.var.extent) for f in self.path]

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
                out += slots[s] if s < len(slots) else ("0.0", "0.0")
            size = self.c.let(f"{self.c.sum(x for _, x in slots)} * {float(LINE)}")
            out.append(size)
            out.append(self.c.let(f"{trips[at] if trips else '1.0'} / maximum({size}, 1.0)"))
        tile = {f.var for f in self.path if f.kind in (LoopKind.UNROLLED, LoopKind.VECTORIZED)}
        lanes = next(
            (e for e, f in zip(self.extents, self.path, strict=True) if f.kind is LoopKind.VECTORIZED), "1.0"
        )
        unrolled = [e for e, f in zip(self.extents, self.path, strict=True) if f.kind is LoopKind.UNROLLED]
        out += [trips[-1] if trips else "1.0", self.c.product(unrolled), lanes]
        out.append(self.c.let(f"{self.elements(0, tile)} / {lanes}"))
        # One load instruction fetches all lanes, or one element for all of them.
        still = {v for v in tile if not any(f.var is v and f.kind is LoopKind.VECTORIZED for f in self.path)}
        out.append(self.c.sum(self.elements(s, still) for s in range(1, len(self.accesses))))
        out += self.padded(tile)
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

    def touched(self, level: int) -> list[tuple[str, str]]:
        """(elements, cache lines) of each access while the loops up to `level` run."""
        inner = {f.var for f in self.path[: level + 1]}
        out: list[tuple[str, str]] = []
        for s, (buffer, _) in enumerate(self.accesses):
            spans = self.spans(s, inner)
            elements = self.c.product(spans)
            per_line = LINE // buffer.dtype.bytes
            last = spans[-1] if spans else "1.0"
            rows = self.c.product(spans[:-1])
            lines = (
                rows
                if last == "1.0"
                else self.c.product([rows, self.c.let(f"maximum(1.0, {last} * {1 / per_line})")])
            )
            out.append((elements, lines))
        return out

    def padded(self, tile: set[Var]) -> list[str]:
        """The extents of the first spatial dimensions, rounded up to whole register tiles."""
        out: list[str] = []
        for it, kind, bind in zip(self.block.iters, self.block.kinds, self.block.binds, strict=True):
            if kind is IterKind.SPATIAL and len(out) < _SPATIAL:
                box = region([(relax(bind),)], tile)
                span = box[0][1] if box is not None else poly(1)
                out.append(self.c.emit(ceil_div(it.extent, span) * span))
        return out + ["1.0"] * (_SPATIAL - len(out))

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
