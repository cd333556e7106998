"""transform_layout, storage_align: how an intermediate lies in memory."""

from __future__ import annotations

from dataclasses import replace

from ...arith import Var, poly
from ...ir import (
    Block,
    Buffer,
    Const,
    Expr,
    IterKind,
    Load,
    PrimFunc,
    Stmt,
    TypeMismatch,
    loads,
    map_loads,
    nest,
)
from ...ir.annotations import MAX_FACTOR, alignments, with_alignment
from ...te.literal import literal
from ..errors import ScheduleError
from ..find import find_block, root_of, writers
from ..index_expr import MapError, MapFunction, Plain
from ..index_map import IndexMap, index_map
from ..pad_number import PadValue, number_of


def check_own_intermediate(func: PrimFunc, block: Block, index: int, primitive: str) -> Buffer:
    """Buffer 0 that the block writes, which must not be a parameter."""
    if type(index) is not int or index != 0:
        reason = f"{block.name!r} has one write buffer, 0; there is no {index!r}"
        raise ScheduleError(primitive, reason, func, block)
    if block.buffer in func.params:
        name = block.buffer.name
        advice = "cache_write the block, or cache_read where it is read, and change the copy"
        reason = f"{name} is a parameter, whose layout is the caller's; {advice}"
        raise ScheduleError(primitive, reason, func, block)
    return block.buffer


def check_transform_layout(
    func: PrimFunc, block: Block, index: int, function: MapFunction, pad_value: object
) -> tuple[Buffer, IndexMap, Const | None]:
    """An allocated buffer, a map that is one to one on its shape, a value that its dtype holds."""
    buffer = check_own_intermediate(func, block, index, "transform_layout")
    if any(alignments(w) for w in writers(func, buffer)):
        reason = f"the rows of {buffer.name} were aligned already; transform its layout before that"
        raise ScheduleError("transform_layout", reason, func, block)
    try:
        found = index_map(function, buffer.shape)
    except MapError as e:
        raise ScheduleError("transform_layout", str(e), func, block) from None
    return buffer, found, None if pad_value is None else _padding(func, block, pad_value)


def _padding(func: PrimFunc, block: Block, value: object) -> Const:
    try:
        return literal(number_of(value), block.buffer.dtype)
    except TypeMismatch:
        reason = f"{value!r} is no value of {block.buffer.dtype}, which {block.buffer.name} holds"
        raise ScheduleError("transform_layout", reason, func, block) from None


def transform_layout(
    func: PrimFunc, name: str, index: int, function: MapFunction, pad_value: PadValue | None = None
) -> tuple[PrimFunc, Plain]:
    """Lays out the intermediate that the block writes by an index map, a function from its indices to those
    of the new layout.

    before: `T: float32[10, 6]`, `T[i, j] = A[i, j]`, `C[i, j] = T[i, j]`
    after `lambda i, j: (i // 4, j, i % 4)`: `T: float32[3, 6, 4]`, `T[i // 4, j, i % 4] = A[i, j]`,
    `C[i, j] = T[i // 4, j, i % 4]`

    The map takes +, -, * and, with positive integers, // and %. It must be one to one from the shape onto a
    box, of which only the part that belongs to a short last piece may be padding. Nobody reads padding; with
    `pad_value` a block that runs before fills the buffer, so that padding holds that value. Refused:
    parameters, a map that is not one to one, a buffer whose rows were aligned. Returns the program and the
    map as plain values.
    """
    _, block = find_block(func, name, "transform_layout")
    old, found, padding = check_transform_layout(func, block, index, function, pad_value)
    new = replace(old, shape=found.shape)

    def put(x: Load) -> Expr:
        return Load(new, found.at(x.indices)) if x.buffer is old else x

    def visit(s: Stmt) -> Stmt:
        if type(s) is not Block or (s.buffer is not old and all(x.buffer is not old for x in loads(s.value))):
            return s
        value = map_loads(s.value, put)
        if s.buffer is not old:
            return replace(s, value=value)
        return replace(s, buffer=new, indices=found.at(s.indices), value=value)

    moved = func.rewrite(visit)
    allocs = tuple(new if b is old else b for b in func.allocs)
    body = moved.body
    if padding is not None and not found.is_onto:
        first = min(root_of(func, w.name) for w in writers(func, old))
        body = (*body[:first], *_fill(func, new, padding), *body[first:])
    return replace(moved, allocs=allocs, body=body), found.plain()


def _fill(func: PrimFunc, buffer: Buffer, value: Const) -> tuple[Stmt, ...]:
    """`buffer[i] = value` over the whole buffer."""
    name = func.fresh_block_name(f"{buffer.name}_pad")
    names = [f"{name}_{d}" for d in range(len(buffer.shape))]
    loops = [Var(n, e) for n, e in zip(names, buffer.shape, strict=True)]
    iters = tuple(Var(n, e) for n, e in zip(names, buffer.shape, strict=True))
    kinds, at = (IterKind.SPATIAL,) * len(iters), tuple(poly(v) for v in iters)
    return nest(loops, Block(name, iters, kinds, tuple(poly(v) for v in loops), buffer, at, value))


def check_storage_align(func: PrimFunc, block: Block, index: int, axis: int, factor: int, offset: int) -> int:
    """An allocated buffer in memory, one of its dimensions but the last, and a pitch that exists; the axis
    counted from the front."""
    buffer = check_own_intermediate(func, block, index, "storage_align")
    rank = len(buffer.shape)

    def refuse(reason: str) -> ScheduleError:
        return ScheduleError("storage_align", reason, func, block)

    if type(axis) is not int or not -rank <= axis < rank:
        raise refuse(f"{buffer.name} has {rank} dimensions; there is no axis {axis!r}")
    if axis % rank == rank - 1:
        raise refuse(f"elements of the last dimension of {buffer.name} are next to each other; align another")
    if type(factor) is not int or not 1 <= factor <= MAX_FACTOR:
        raise refuse(f"factor is a number of elements from 1 to {MAX_FACTOR}, got {factor!r}")
    if type(offset) is not int or not 0 <= offset < factor:
        raise refuse(f"offset is a number of elements from 0 to {factor - 1}, got {offset!r}")
    if buffer.scope == "register":
        raise refuse(f"{buffer.name} is in registers, which have no pitch")
    return axis % rank


def storage_align(func: PrimFunc, name: str, index: int, axis: int, factor: int, offset: int) -> PrimFunc:
    """Aligns the distance in memory between neighbours along `axis` of the intermediate that the block
    writes: lowering makes it the smallest number of elements that is `offset` more than a multiple of
    `factor`.

    before: `T: float32[10, 6]`, whose rows are 6 elements apart
    after `axis=0, factor=8, offset=1`: rows are 9 elements apart, and the program is the same

    Refused: parameters, registers, the last dimension. The same axis again replaces what was asked for.
    """
    _, block = find_block(func, name, "storage_align")
    axis = check_storage_align(func, block, index, axis, factor, offset)
    names = {w.name for w in writers(func, block.buffer)}

    def visit(s: Stmt) -> Stmt:
        return with_alignment(s, axis, factor, offset) if type(s) is Block and s.name in names else s

    return func.rewrite(visit)
