"""The schedule of a program over sizes: by rule, since there is no size to search for."""

from __future__ import annotations

from collections.abc import Callable

from ..arith import Var
from ..codegen.errors import BuildError
from ..codegen.lower import lower
from ..ir import Block, IterKind, PrimFunc, buffers_read, loads, walk_expr
from ..schedule import BlockRV, LoopRV, Schedule, ScheduleError
from ..target import Target
from .ahead import constants_of, pack_ahead, packed_order
from .groups import Group, groups_of, inline_elementwise

#: Rows of a tile of accumulators, and vectors of lanes beside each other where registers are wide.
ROWS = 4
#: Bytes of a vector register from which on a row of a tile has four of them, since there are 32.
WIDE = 64


def symbolic_schedule(func: PrimFunc, target: Target) -> Schedule:
    """Elementwise blocks in vectors with a masked tail; reductions in tiles of accumulators: of vectors where
    the last dimension is contiguous, else of scalars. What fits no rule, and what a rule makes that has no
    code, stays as written."""
    sch = Schedule(func)
    inline_elementwise(sch)
    for group in groups_of(sch.func):
        for rule in _rules(sch.func, group):
            trial = sch.copy()
            try:
                rule(trial, group, target)
                lower(trial.func, target)
            except (ScheduleError, BuildError):
                continue
            sch.adopt(trial)
            break
    return sch


def _rules(func: PrimFunc, group: Group) -> list[Callable[[Schedule, Group, Target], None]]:
    if func.block(group.main)[1].is_reduction:
        return [_tiled, _elementwise_rest]
    return [_elementwise]


def _elementwise(sch: Schedule, group: Group, target: Target) -> None:
    _vectors(sch, group.main, target)


def _elementwise_rest(sch: Schedule, group: Group, target: Target) -> None:
    """What stands around a reduction that no tile fits."""
    for name in (*group.producers, group.epilogue):
        if name is not None:
            _vectors(sch, name, target)


def _vectors(sch: Schedule, name: str, target: Target) -> None:
    """Lanes along the last dimension that is written."""
    block = sch.get_block(name)
    _, b = sch.func.block(name)
    loops = sch.get_loops(block)
    lane = next((x for x in loops if b.indices and x.var is _loop_of(b, b.indices[-1].atom)), None)
    if lane is None:
        return
    sch.reorder(*(x for x in loops if x is not lane), lane)
    sch.vectorize(_inner(sch, lane, 2 * _lanes(b, target)))


def _tiled(sch: Schedule, group: Group, target: Target) -> None:
    """A tile of accumulators in registers, over whose elements the steps of the reduction run outermost."""
    for producer in group.producers:
        _vectors(sch, producer, target)
    main = sch.get_block(group.main)
    copies = _copies_of_constants(sch, main)
    _, b = sch.func.block(group.main)
    loops = sch.get_loops(main)
    spatial = [x for x, kind in zip(loops, b.kinds, strict=True) if kind is IterKind.SPATIAL]
    steps = [x for x, kind in zip(loops, b.kinds, strict=True) if kind is IterKind.REDUCE]
    if not spatial:
        raise ScheduleError("default", "the result has one element")
    lane_var = b.iters[loops.index(spatial[-1])]
    in_lanes = _is_contiguous_in(b, lane_var)
    width = _lanes(b, target) * (4 if target.vector_bytes >= WIDE else 2) if in_lanes else ROWS
    if len(spatial) == 1 and not in_lanes:
        width = 2 * ROWS
    lane_0, lane_1 = _halves(sch, spatial[-1], width)
    rows = _halves(sch, spatial[-2], ROWS) if len(spatial) > 1 else None
    outer = [*spatial[:-2], *([rows[0]] if rows else []), lane_0]
    inner = [*([rows[1]] if rows else []), lane_1]
    sch.reorder(*outer, *steps, *inner)
    for copy in copies:
        pack_ahead(sch, copy, lane_0)
    moved = _written_back(sch, group, main, lane_0)
    for loop in moved[:-1]:
        sch.unroll(loop)
    for loop in inner[:-1]:
        sch.unroll(loop)
    for loop in (lane_1, moved[-1]):
        (sch.vectorize if in_lanes else sch.unroll)(loop)
    sch.decompose_reduction(main, steps[0])


def _copies_of_constants(sch: Schedule, main: BlockRV) -> list[BlockRV]:
    """Copies of what is constant, the dimension of the last spatial variable last."""
    _, b = sch.func.block(main.name)
    spatial = [it for it, kind in zip(b.iters, b.kinds, strict=True) if kind is IterKind.SPATIAL]
    copies: list[BlockRV] = []
    for x in constants_of(sch.func, b) if spatial else ():
        slot = buffers_read(sch.func.block(main.name)[1]).index(x)
        copies.append(sch.cache_read(main, slot, "local", packed_order(b, x, spatial[-1])))
    return copies


def _written_back(sch: Schedule, group: Group, main: BlockRV, at: LoopRV) -> list[LoopRV]:
    """Puts main's result into registers, and what uses it under the loop; the loops of that over the tile, in
    the order of main's dimensions."""
    buffer = sch.func.block(group.main)[1].buffer
    if group.epilogue is not None:
        sch.set_scope(main, 0, "register")
        block = sch.get_block(group.epilogue)
    else:
        block = sch.cache_write(main, 0, "register")
    loops = sch.reverse_compute_at(block, at)
    _, b = sch.func.block(block.name)
    made = sch.func.block(group.main)[1].buffer if group.epilogue is None else None
    name = made.name if made is not None else buffer.name
    read = next(x for x in loads(b.value) if x.buffer.name == name)
    by_iter = dict(zip(b.iters, loops, strict=True))
    moved = [by_iter[a] for a in (i.atom for i in read.indices) if isinstance(a, Var)]
    sch.reorder(*moved)
    return moved[-2:]


def _halves(sch: Schedule, loop: LoopRV, factor: int) -> tuple[LoopRV, LoopRV]:
    outer, inner = sch.split(loop, [None, _fitting(loop, factor)])
    return outer, inner


def _inner(sch: Schedule, loop: LoopRV, factor: int) -> LoopRV:
    return _halves(sch, loop, factor)[1]


def _fitting(loop: LoopRV, factor: int) -> int:
    """At most the power of two that covers a loop of known length."""
    extent = loop.var.extent.const
    return factor if extent is None else min(factor, 1 << (extent - 1).bit_length())


def _loop_of(b: Block, it: object) -> object:
    return next((p.atom for v, p in zip(b.iters, b.binds, strict=True) if v is it), None)


def _lanes(b: Block, target: Target) -> int:
    widest = max([b.buffer.dtype.bytes, *(e.dtype.bytes for e in walk_expr(b.value))])
    return max(1, target.vector_bytes // widest)


def _is_contiguous_in(b: Block, lane: Var) -> bool:
    """Whether neighbouring lanes read neighbouring elements, or all the same one, of each buffer."""
    moves = False
    for x in loads(b.value):
        if x.buffer is b.buffer:
            continue
        for d, i in enumerate(x.indices):
            if lane not in i.vars():
                continue
            if d < len(x.indices) - 1 or i.coefficient(lane) != 1 or lane in (i - lane).vars():
                return False
            moves = True
    return moves
