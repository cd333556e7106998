"""Features of a scheduled block, for the cost model: what its loops touch, level by level.

The layout is fixed, whatever the structure, so that every sketch and workload shares one model: LEVELS loop
levels counted from the innermost, SLOTS accesses (the write, then the reads in order). Columns are raw
counts: trees do not care about monotone maps.
"""

from __future__ import annotations

from ..arith import Atom, Poly, Var, ceil_div, poly, region, substitute, upper
from ..ir import (
    Block,
    Buffer,
    For,
    InBounds,
    IterKind,
    Load,
    LoopKind,
    PrimFunc,
    loads,
    walk_expr,
)
from ..ir.annotations import is_ahead
from ..schedule.find import writers
from .accesses import (
    LINE,
    MAX_STRIDE,
    PAGE,
    as_walked,
    is_contiguous_in,
    operations,
    relax,
    row_places,
    stride_class,
)
from .compile import ColumnCompiler
from .feature_names import COPIES, LEVELS, SLOTS, SPATIAL
from .rows_in_memory import last_dim

#: Bytes of the word that an instruction adds products up in.
WORD = 4


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
        reads = [x for x in loads(block.value) if x.buffer is not block.buffer][: SLOTS - 1]
        accesses = [(block.buffer, block.indices), *((y.buffer, y.indices) for y in map(self.source, reads))]
        self.accesses = [as_walked(b, tuple(substitute(i, m) for i in ix)) for b, ix in accesses]
        #: Of each access, whether it comes by way of registers, where lanes lie as they are needed.
        self.by_registers = [False, *(x.buffer.scope == "register" for x in reads)]
        #: Of each access, whether its vectors may lie across cache lines: the caller's arrays start anywhere.
        self.across = [b in func.params for b, _ in accesses]
        self.moving = [[i.vars() for i in ix] for _, ix in self.accesses]
        self.known: dict[tuple[int, frozenset[Var]], str] = {}
        self.extents = [c.emit(f.var.extent) for f in self.path]
        #: Steps of the reduction that one instruction adds up in each lane; the lanes count once for each.
        self.steps = self.taken_together()

    def taken_together(self) -> int:
        """The extent of an unrolled loop right around the lanes whose steps lie next to each other in both
        factors of a product, with nothing between one lane's steps and the next one's, and fill the word that
        a lane adds up; 1 where there is none."""
        if len(self.path) < 2 or self.path[0].kind is not LoopKind.VECTORIZED:
            return 1
        lane, steps, reads = self.path[0].var, self.path[1], self.accesses[1:]
        count = steps.var.extent.const or 1
        together = all(
            i
            and i[-1].coefficient(steps.var) == 1
            and i[-1].coefficient(lane) in (0, count)
            and count * b.dtype.bytes == WORD
            for b, i in reads
        )
        is_reduced = all(steps.var not in i.vars() for i in self.accesses[0][1])
        return count if len(reads) == 2 and together and is_reduced and steps.kind is LoopKind.UNROLLED else 1

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
            size = self.bytes_of(slots)
            out.append(size)
            out.append(self.c.let(f"{self.c.sum(x[2] for x in slots)} * {float(LINE)}"))
            out.append(self.c.sum(x[3] for x in slots))
            whole = self.c.let(f"maximum({size}, 1.0)")
            out.append(self.c.let(f"{trips[at] if trips else '1.0'} / {whole}"))
            out += self.reuse(level, touched)
        tile = {f.var for f in self.path if f.kind in (LoopKind.UNROLLED, LoopKind.VECTORIZED)}
        lanes = next(
            (e for e, f in zip(self.extents, self.path, strict=True) if f.kind is LoopKind.VECTORIZED), "1.0"
        )
        unrolled = [e for e, f in zip(self.extents, self.path, strict=True) if f.kind is LoopKind.UNROLLED]
        together, outputs = float(self.steps), f"{self.elements(0, tile)} / {lanes}"
        bodies = self.c.product(unrolled)
        if self.steps > 1:
            lanes, bodies = self.c.let(f"{lanes} * {together}"), self.c.let(f"{bodies} / {together}")
        every = trips[-1] if trips else "1.0"
        out += [every, bodies, lanes, self.c.let(f"{every} / {lanes}")]
        out.append(self.c.let(outputs))
        out.append(self.registers(tile, lanes))
        strides = self.lane_strides()
        # One load instruction fetches all lanes, or one element for all of them; a strided read is a load for
        # each lane.
        loads_, across = [], []
        # A number of lanes that is still open may turn out to be 1.
        several = self.c.let(f"{lanes} >= 2.0") if lanes[0] in "kv" else "1.0"
        for slot in range(1, len(self.accesses)):
            elements, at_once = self.elements(slot, tile), lanes if strides[slot] == "1.0" else repr(together)
            loads_.append(self.c.let(f"{elements} / {at_once}") if at_once != "1.0" else elements)
            if self.across[slot] and strides[slot] == "1.0" and lanes != "1.0":
                across.append(self.c.product([loads_[-1], several]))
        out += [self.c.sum(loads_), self.c.sum(across)]
        out += [*strides, self.stored_lanes()]
        padded = self.padded(tile)
        steps = [self.c.emit(it.extent) for it, k in self.kinds() if k is IterKind.REDUCE]
        out.append(self.c.product([*padded, *steps]))
        out += [self.guarded(), repr(float(operations(self.block)))]
        sizes = [p for p, (it, _) in zip(padded, self.kinds(), strict=False) if it.extent.const != 1]
        out += (sizes + ["1.0"] * SPATIAL)[:SPATIAL]
        out += self.copies()
        out.append(repr(float(self.index)))
        return out

    def bytes_of(self, slots: list[tuple[str, str, str, str]]) -> str:
        """The cache lines of all accesses, in bytes."""
        return self.c.let(f"{self.c.sum(x[1] for x in slots)} * {float(LINE)}")

    def reuse(self, level: int, touched: list[list[tuple[str, str, str, str]]]) -> list[str]:
        """For each access, the bytes that are touched before the loop at a level comes back to the same
        elements: those of one of its turns. 0 where the loop moves the access, runs once, or is not there."""
        if level >= len(self.path):
            return ["0.0"] * SLOTS
        loop, again = self.path[level].var, self.c.let(f"{self.extents[level]} >= 2.0")
        turn = self.bytes_of(touched[level - 1]) if level else repr(float(LINE * len(self.accesses)))
        turn = self.c.let(f"{turn} * {again}")
        stays = [all(loop not in v for v in moving) for moving in self.moving]
        return [turn if s else "0.0" for s in stays] + ["0.0"] * (SLOTS - len(stays))

    def registers(self, tile: set[Var], lanes: str) -> str:
        """Vector registers for the results of a register tile and for what it reads in one step of the
        reduction."""
        moving = {v for of in self.moving[0] for v in of} if self.accesses else set()
        step = tile & moving
        strides = self.lane_strides()
        held = []
        for slot in range(len(self.accesses)):
            elements = self.elements(slot, step)
            is_vector = lanes != "1.0" and (slot == 0 or strides[slot] != "0.0")
            held.append(self.c.let(f"{elements} / {lanes}") if is_vector else elements)
        return self.c.sum(held)

    def guarded(self) -> str:
        """1 where a condition around a read does not hold everywhere."""
        open_ = "0.0"
        for e in walk_expr(self.block.value):
            for p in e.conditions if type(e) is InBounds else ():
                top = upper(p)
                if top.const is None:
                    holds = self.c.let(f"{self.c.emit(top)} >= 0.0")
                    open_ = self.c.let(f"maximum({open_}, {holds} * 1.0)")
                elif top.const >= 0:
                    return "1.0"
        return open_

    def spans(self, slot: int, inner: set[Var]) -> list[str]:
        """The extent of what an access touches in each dimension while `inner` run."""
        buffer, indices = self.accesses[slot]
        each = zip(buffer.shape, indices, self.moving[slot], strict=True)
        return [self.span(i, moving & inner, e.const) for e, i, moving in each]

    def span(self, i: Poly, inner: frozenset[Var], most: int | None) -> str:
        """The extent of an index while `inner`, all of which move it, run; `most` is that of the buffer."""
        if not inner:
            return "1.0"
        known = self.known.get((id(i), inner))
        if known is None:
            box = region([(i,)], inner)
            if box is not None:
                known = self.c.emit(box[0][1])
            else:
                # Not a box (fused loops): at most as many elements as iterations that move this index.
                moved = self.c.product(self.c.emit(v.extent) for v in sorted(inner))
                known = moved if most is None else self.c.let(f"minimum({moved}, {float(most)})")
            self.known[id(i), inner] = known
        return known

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
        """For each access: 0 when it does not move with the lanes, 1 for one element a lane or a few, 2 for
        anything else. A result in registers counts as what takes it from there writes."""
        lane = next((f.var for f in self.path if f.kind is LoopKind.VECTORIZED), None)
        out = []
        for (buffer, indices), turned in zip(self.accesses, self.by_registers, strict=True):
            # The steps that are taken together lie between the lanes, or lanes lie behind them.
            apart = self.steps > 1 and lane is not None and indices[-1].coefficient(lane) == self.steps
            last = last_dim(buffer) if indices and (self.steps == 1 or apart) else len(indices) - 2
            stride = stride_class(indices, lane, max(MAX_STRIDE, self.steps), last)
            out.append("1.0" if stride == "2.0" and turned else stride)
        taken = self.taken_by()
        if taken is not None:
            path, b = taken
            m: dict[Atom, Poly] = {k: relax(v) for k, v in b.binding.items()}
            across = next((f.var for f in path if f.kind is LoopKind.VECTORIZED), None)
            if across is not None:
                out[0] = stride_class(
                    tuple(substitute(i, m) for i in b.indices), across, 1, last_dim(b.buffer)
                )
        return out + ["0.0"] * (SLOTS - len(out))

    def stored_lanes(self) -> str:
        """Results that one instruction writes to memory."""
        taken = self.taken_by()
        path = self.path if taken is None else taken[0]
        return next((self.c.emit(f.var.extent) for f in path if f.kind is LoopKind.VECTORIZED), "1.0")

    def taken_by(self) -> tuple[tuple[For, ...], Block] | None:
        """The block that reads the result from registers and writes it to memory, with its loops."""
        result = self.block.buffer
        if result.scope != "register":
            return None
        return next(
            (
                (path, b)
                for path, b in self.func.blocks()
                if b.buffer is not result and any(x.buffer is result for x in loads(b.value))
            ),
            None,
        )

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
                len(out) >= 2 * COPIES
                or b.buffer in self.func.params
                or b.buffer.scope == "register"
                or is_ahead(b)
                or b.is_reduction
                or b is self.block
            ):
                continue
            work = self.c.product(self.c.emit(f.var.extent) for f in path)
            lane = next((f.var for f in path if f.kind is LoopKind.VECTORIZED), None)
            out += [work, "0.0" if lane is not None and is_contiguous_in(b, lane) else "1.0"]
        return out + ["0.0"] * (2 * COPIES - len(out))
