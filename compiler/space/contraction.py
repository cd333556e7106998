"""The rule for reductions: a register tile of vectors under tiled spatial loops, the reduction inside, the
epilogue at its end.

What differs in structure is a choice: the axis of the lanes, which operands are packed, and whether
elementwise producers (padding) are inlined.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from math import prod

from ..arith import Var
from ..ir import Block, Buffer, IterKind, Load, PrimFunc, loads
from ..schedule import Schedule
from ..target import Target
from .ahead import constants_of
from .batches import batches
from .contraction_tiles import ContractionTiles
from .groups import Group
from .rows_in_memory import last_dim
from .sketch import Constraint
from .staged_tiles import StagedTiles, long_reduction
from .windows import Windows, lane_stride

#: Rows that repay a packed copy of a block of what they meet, and up to which it is worth reading as it lies:
#: with 16 a copy took half of the time, with 128 both came within a few percent of each other.
PACKING_ROWS, READING_ROWS = 32, 256
#: Lanes that an axis has where another one has as many.
FEW_LANES = 4


@dataclass(frozen=True, slots=True)
class Contraction:
    """One structure. lane: the position of the iteration variable whose steps are vector lanes, or None for
    scalar code. staged: the reduction is taken block by block, with the sums kept in a cache between them."""

    lane: int | None
    packed: tuple[Buffer, ...]
    inline: bool
    name: str
    staged: bool = False

    @property
    def fallback(self) -> bool:
        """Scalar code is only worth a sketch where nothing runs in lanes."""
        return self.lane is None

    def apply(self, sch: Schedule, group: Group, target: Target, tag: str) -> list[Constraint]:
        """Applies the structure; answers what the knobs must satisfy."""
        tiles = (StagedTiles if self.staged else ContractionTiles)(sch, group, self, target, tag)
        tiles.apply()
        return tiles.constraints


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


def lane_uses(reads: list[Load], it: Var) -> dict[Buffer, str]:
    """How each buffer meets lanes along `it`; `bad` where a copy of what the lanes read could not be what
    else is read of it."""
    found: dict[Buffer, str] = {}
    for x in reads:
        use = lane_use(x, it)
        both = {use, found.get(x.buffer, use)}
        found[x.buffer] = use if len(both) == 1 else "unit" if both == {"unit", "none"} else "bad"
    return found


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
        use = lane_uses(reads, it)
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
        # One copy would not serve what the lanes move and what they do not.
        free |= {x.buffer for x in reads if use[x.buffer] == "unit" and lane_use(x, it) == "none"}
        may = [b for b, u in use.items() if u == "unit" and b not in (*free, *must) and len(b.shape) > 1]
        found += [(n, packed) for packed in (must, *((*must, b) for b in may))]
    extents = [main.iters[n].extent.const or 0 for n, _ in found]
    choices = [f for f, e in zip(found, extents, strict=True) if e >= min(FEW_LANES, max(extents))]
    scalar: tuple[None, tuple[Buffer, ...]] = (None, ())
    for lane, packed in (*choices, scalar):
        # What is packed is made where it is packed.
        for inline in (True, False) if produced - set(packed) else (bool(produced),):
            name = _name(main, lane, packed, inline, group)
            yield Contraction(lane, packed, inline, name)
            if lane is not None and _stages(func, main, lane, packed, target):
                yield Contraction(lane, packed, inline, f"{name}, blocks of the reduction", True)


def _stages(func: PrimFunc, main: Block, lane: int, packed: tuple[Buffer, ...], target: Target) -> bool:
    """Whether the reduction is worth taking block by block. What is packed ahead lies in the order of the
    tiles however long the reduction is."""
    if constants_of(func, main) or long_reduction(func, main, target) is None:
        return False
    others = [
        n for n, k in enumerate(main.kinds) if k is IterKind.SPATIAL and n not in (lane, *batches(main))
    ]
    rows = prod(main.iters[n].extent.const or 1 for n in others)
    return rows > PACKING_ROWS if packed else rows <= READING_ROWS


def _scatters(main: Block, n: int) -> bool:
    """Whether steps of an iteration variable are written apart from each other."""
    return not main.indices or main.indices[-1].coefficient(main.iters[n]) != 1


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
