"""reindex: an access through a copy that is indexed by the block's iteration variables."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from ...arith import Atom, Poly, Var, is_injective, poly, substitute
from ...ir import (
    Block,
    Buffer,
    Const,
    DType,
    Expr,
    InBounds,
    IterKind,
    Load,
    PrimFunc,
    Select,
    Stmt,
    buffers_read,
    guarded_loads,
    map_loads,
    nest,
)
from ..errors import ScheduleError
from ..find import find_block, readers, root_of, writers

Conditions = tuple[Poly, ...]


def check_read(func: PrimFunc, block: Block, index: int) -> tuple[Load, Conditions]:
    """The one place at which the block reads its `index`-th buffer, with the conditions that guard it; the
    buffer is complete before the block's nest begins."""

    def refuse(reason: str) -> ScheduleError:
        return ScheduleError("reindex", reason, func, block)

    read = buffers_read(block)
    if type(index) is not int or not 0 <= index < len(read):
        names = ", ".join(f"{n}: {b.name}" for n, b in enumerate(read)) or "none"
        raise refuse(f"{block.name!r} has no read buffer {index}; it reads {names}")
    buffer = read[index]
    found = [(x, known) for x, known in guarded_loads(block.value, ()) if x.buffer is buffer]
    first, known = found[0]
    if any(x.indices != first.indices or k != known for x, k in found):
        raise refuse(f"{block.name!r} reads {buffer.name} at more than one place")
    root = root_of(func, block.name)
    if any(root_of(func, w.name) >= root for w in writers(func, buffer)):
        reason = f"{buffer.name} is written in the same loop nest"
        raise refuse(f"{reason}; reindex it before its producer is moved there")
    return first, known


def check_write(func: PrimFunc, block: Block, index: int) -> None:
    """Output 0 of the block, of which each instance writes an element of its own, and which nobody reads in
    the same nest."""

    def refuse(reason: str) -> ScheduleError:
        return ScheduleError("reindex", reason, func, block)

    if type(index) is not int or index != 0:
        raise refuse(f"{block.name!r} has one write buffer, 0; there is no {index!r}")
    if writers(func, block.buffer) != [block]:
        raise refuse(f"{block.buffer.name} is written by more than one block")
    root = root_of(func, block.name)
    for r in readers(func, block.buffer):
        if root_of(func, r.name) <= root:
            reason = (
                f"{r.name!r} reads {block.buffer.name} in the same loop nest; reindex it before that move"
            )
            raise refuse(reason)
    if not is_injective(block.indices, block.buffer.shape, set(spatial_iters(block))):
        raise refuse(f"instances of {block.name!r} may write one element of {block.buffer.name}")


def spatial_iters(block: Block) -> list[Var]:
    """The spatial iteration variables, in order."""
    return [it for it, k in zip(block.iters, block.kinds, strict=True) if k is IterKind.SPATIAL]


def zero(dtype: DType) -> Const:
    """0 of a dtype."""
    return Const(False if dtype.is_bool else 0.0 if dtype.is_float else 0, dtype)


def reindex(func: PrimFunc, name: str, access: str, index: int) -> tuple[PrimFunc, str]:
    """The block accesses its `index`-th read buffer, or with `access="write"` the buffer that it writes,
    through a copy that has one dimension for each iteration variable in the access.

    before: `C[i, j] = A[j * 2 + 1, i]`
    after `reindex(C, "read", 0)`: `A_reindex[i, j] = A[j * 2 + 1, i]` in a nest of its own, then
    `C[i, j] = A_reindex[i, j]`
    after `reindex(C, "write", 0)` of `C[i * 2] = A[i]`: `C_reindex[i] = A[i]`, then `C[i * 2] = C_reindex[i]`

    What guards a read guards the copy too. Returns the program and the name of the copying block. Refused: a
    buffer read at several places, a write of one element by several instances, a producer or a consumer in
    the block's own loop nest.
    """
    _, block = find_block(func, name, "reindex")
    if access == "read":
        return _reindex_read(func, block, *check_read(func, block, index))
    if access == "write":
        check_write(func, block, index)
        return _reindex_write(func, block)
    raise ScheduleError("reindex", f"access is 'read' or 'write', got {access!r}", func, block)


def _copied(func: PrimFunc, old: Buffer, extents: Sequence[Var]) -> Buffer:
    shape = tuple(v.extent for v in extents)
    return Buffer(func.fresh_buffer_name(f"{old.name}_reindex"), shape, old.dtype)


def nest_over(name: str, iters: Sequence[Var], target: Load, value: Expr) -> tuple[Stmt, ...]:
    """An assignment over iteration variables, each in a loop of its own."""
    loops = [Var(v.name, v.extent) for v in iters]
    kinds, binds = (IterKind.SPATIAL,) * len(iters), tuple(poly(v) for v in loops)
    return nest(loops, Block(name, tuple(iters), kinds, binds, target.buffer, target.indices, value))


def _reindex_read(func: PrimFunc, block: Block, load: Load, known: Conditions) -> tuple[PrimFunc, str]:
    used = {v for p in (*load.indices, *known) for v in p.vars()}
    dims = [it for it in block.iters if it in used]
    copy = _copied(func, load.buffer, dims)
    fresh = {it: Var(it.name, it.extent) for it in dims}
    m: dict[Atom, Poly] = {it: poly(v) for it, v in fresh.items()}
    value: Expr = Load(load.buffer, tuple(substitute(i, m) for i in load.indices))
    if known:
        value = Select(InBounds(tuple(substitute(p, m) for p in known)), value, zero(copy.dtype))
    copy_name = func.fresh_block_name(copy.name)
    made = nest_over(copy_name, list(fresh.values()), Load(copy, tuple(m.values())), value)
    at = Load(copy, tuple(poly(it) for it in dims))

    def visit(s: Stmt) -> Stmt:
        if s is not block:
            return s
        return replace(block, value=map_loads(block.value, lambda x: at if x.buffer is load.buffer else x))

    new, root = func.rewrite(visit), root_of(func, block.name)
    body = (*new.body[:root], *made, *new.body[root:])
    return replace(new, allocs=(*func.allocs, copy), body=body), copy_name


def _reindex_write(func: PrimFunc, block: Block) -> tuple[PrimFunc, str]:
    dims = spatial_iters(block)
    copy = _copied(func, block.buffer, dims)
    at = tuple(poly(it) for it in dims)
    fresh = {it: Var(it.name, it.extent) for it in dims}
    m: dict[Atom, Poly] = {it: poly(v) for it, v in fresh.items()}
    target = Load(block.buffer, tuple(substitute(i, m) for i in block.indices))
    copy_name = func.fresh_block_name(copy.name)
    made = nest_over(copy_name, list(fresh.values()), target, Load(copy, tuple(m.values())))

    def visit(s: Stmt) -> Stmt:
        if s is not block:
            return s
        own = map_loads(block.value, lambda x: Load(copy, at) if x.buffer is block.buffer else x)
        return replace(block, buffer=copy, indices=at, value=own)

    new, root = func.rewrite(visit), root_of(func, block.name)
    body = (*new.body[: root + 1], *made, *new.body[root + 1 :])
    return replace(new, allocs=(*func.allocs, copy), body=body), copy_name
