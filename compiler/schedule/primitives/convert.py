"""convert_read: conversions of what a block reads, done once in a copy."""

from __future__ import annotations

from dataclasses import replace

from ...arith import Var, poly
from ...ir import (
    Binary,
    Block,
    Buffer,
    Cast,
    Compare,
    DType,
    Expr,
    Load,
    PrimFunc,
    Select,
    Stmt,
    TypeMismatch,
    Unary,
    buffers_read,
    map_loads,
    walk_expr,
)
from ...ir.annotations import INTRINSIC
from ...ir.func import fresh
from ..errors import ScheduleError
from ..find import check_in_no_unit, find_block, root_of, writers
from .reindex import nest_over


def holds(wide: DType, narrow: DType) -> bool:
    """Whether every value of `narrow` is one of `wide`."""
    if narrow.is_int and wide.is_int:
        return wide.limits[0] <= narrow.limits[0] and narrow.limits[1] <= wide.limits[1]
    if narrow.is_float and wide.is_float:
        return wide == narrow or (wide.bits > narrow.bits and wide.bits >= 32)
    return narrow == wide


def check_convert_read(func: PrimFunc, block: Block, index: int, dtype: str) -> tuple[Buffer, DType]:
    """A buffer that the block converts wherever it reads it, complete before the block's nest begins; a dtype
    that holds all of its values, and whose values the block's own conversions take."""

    def refuse(reason: str) -> ScheduleError:
        return ScheduleError("convert_read", reason, func, block)

    read = buffers_read(block)
    if type(index) is not int or not 0 <= index < len(read):
        names = ", ".join(f"{n}: {b.name}" for n, b in enumerate(read)) or "none"
        raise refuse(f"{block.name!r} has no read buffer {index}; it reads {names}")
    buffer = read[index]
    try:
        wide = DType.scalar(dtype)
    except TypeMismatch as e:
        raise refuse(str(e)) from None
    if wide == buffer.dtype or not holds(wide, buffer.dtype):
        raise refuse(f"{buffer.name} holds {buffer.dtype}, of which {wide} is no wider dtype")
    nodes = list(walk_expr(block.value))
    plain = [e for e in nodes if type(e) is Load and e.buffer is buffer]
    casts = [e for e in nodes if type(e) is Cast and type(e.a) is Load and e.a.buffer is buffer]
    if len(casts) != len(plain):
        raise refuse(f"{block.name!r} does not convert {buffer.name} wherever it reads it")
    for c in casts:
        if not holds(c.dtype, wide):
            raise refuse(f"{block.name!r} converts {buffer.name} to {c.dtype}, which does not hold {wide}")
    root = root_of(func, block.name)
    if any(root_of(func, w.name) >= root for w in writers(func, buffer)):
        raise refuse(f"{buffer.name} is written in the same loop nest; do this before its producer is moved")
    return buffer, wide


def convert_read(func: PrimFunc, name: str, index: int, dtype: str) -> tuple[PrimFunc, str]:
    """The block reads its `index`-th read buffer through a copy of another dtype, so that conversions leave
    its loops.

    before: `C[i, j] += float32(A[i, k]) * float32(B[k, j])`
    after `convert_read(C, 0, "float32")`: `A_float32[i, k] = float32(A[i, k])` in a nest of its own, then
    `C[i, j] += A_float32[i, k] * float32(B[k, j])`

    Returns the program and the name of the converting block. Refused: a dtype that does not hold every value
    of the buffer, a block that does not convert the buffer to that dtype or a wider one wherever it reads it,
    a buffer written in the block's own loop nest, a block that stands for an intrinsic.
    """
    path, block = find_block(func, name, "convert_read")
    check_in_no_unit(func, path, block, "convert_read", INTRINSIC)
    buffer, wide = check_convert_read(func, block, index, dtype)
    copy = Buffer(func.fresh_buffer_name(f"{buffer.name}_{wide}"), buffer.shape, wide)
    copy_name = func.fresh_block_name(copy.name)

    def put(x: Load) -> Expr:
        return Load(copy, x.indices) if x.buffer is buffer else x

    def visit(s: Stmt) -> Stmt:
        if type(s) is not Block or s.name != name:
            return s
        return replace(s, value=_without_idle_casts(map_loads(s.value, put)))

    taken: set[str] = set()
    iters = [Var(fresh(f"{copy_name}_{d}", taken), e) for d, e in enumerate(buffer.shape)]
    at = tuple(poly(v) for v in iters)
    made = nest_over(copy_name, iters, Load(copy, at), Cast(wide, Load(buffer, at)))
    root = root_of(func, name)
    new = func.rewrite(visit)
    body = (*new.body[:root], *made, *new.body[root:])
    return replace(new, allocs=(*func.allocs, copy), body=body), copy_name


def _without_idle_casts(e: Expr) -> Expr:
    """Without conversions to the dtype that is there already."""
    match e:
        case Cast(dtype, a):
            inner = _without_idle_casts(a)
            return inner if inner.dtype == dtype else Cast(dtype, inner)
        case Binary(op, a, b):
            return Binary(op, _without_idle_casts(a), _without_idle_casts(b))
        case Compare(op, a, b):
            return Compare(op, _without_idle_casts(a), _without_idle_casts(b))
        case Unary(op, a):
            return Unary(op, _without_idle_casts(a))
        case Select(cond, a, b):
            return Select(_without_idle_casts(cond), _without_idle_casts(a), _without_idle_casts(b))
    return e
