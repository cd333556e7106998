"""cache_read, cache_write, set_scope: copies through another memory scope. The copies keep the full
coordinates; lowering shrinks them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from ...arith import Poly, Var, poly
from ...ir import (
    Block,
    Buffer,
    Expr,
    IterKind,
    Load,
    PrimFunc,
    Scope,
    Stmt,
    buffers_read,
    loads,
    map_loads,
    nest,
)
from ...ir.expr import SCOPES
from ..errors import ScheduleError
from ..find import find_block, readers, root_of, writers


def check_scope(func: PrimFunc, block: Block, scope: str, primitive: str) -> None:
    if scope not in SCOPES:
        raise ScheduleError(primitive, f"unknown scope {scope!r}; known: {', '.join(SCOPES)}", func, block)


def _copy(name: str, source: Buffer, target: Buffer, order: Sequence[int]) -> tuple[Stmt, ...]:
    """`target[permuted i] = source[i]` over the whole buffer."""
    names = [f"{name}_{d}" for d in range(len(source.shape))]
    loops = [Var(n, e) for n, e in zip(names, source.shape, strict=True)]
    iters = tuple(Var(n, e) for n, e in zip(names, source.shape, strict=True))
    at = tuple(poly(v) for v in iters)
    block = Block(
        name, iters, (IterKind.SPATIAL,) * len(iters), tuple(poly(v) for v in loops),
        target, tuple(at[d] for d in order), Load(source, at),
    )  # fmt: skip
    return nest(loops, block)


def accesses_of(block: Block, buffer: Buffer) -> list[tuple[Poly, ...]]:
    """The different places at which a block reads a buffer, in the order of the text."""
    return list(dict.fromkeys(x.indices for x in loads(block.value) if x.buffer is buffer))


def check_cache_read(
    func: PrimFunc,
    block: Block,
    index: int,
    scope: str,
    order: Sequence[int] | None,
    accesses: Sequence[int] | None = None,
) -> Buffer:
    """The buffer to copy: read by the block, and complete before the block's nest begins."""
    check_scope(func, block, scope, "cache_read")
    read = buffers_read(block)
    if type(index) is not int or not 0 <= index < len(read):
        names = ", ".join(f"{n}: {b.name}" for n, b in enumerate(read)) or "none"
        raise ScheduleError(
            "cache_read", f"{block.name!r} has no read buffer {index}; it reads {names}", func, block
        )
    buffer = read[index]
    if order is not None and (not isinstance(order, Sequence) or any(type(d) is not int for d in order)):
        raise ScheduleError("cache_read", f"order is a list of dimensions, got {order!r}", func, block)
    if order is not None and sorted(order) != list(range(len(buffer.shape))):
        rank = len(buffer.shape)
        reason = f"order must be a permutation of the {rank} dimensions of {buffer.name}, got {list(order)}"
        raise ScheduleError("cache_read", reason, func, block)
    _check_accesses(func, block, buffer, accesses)
    root = root_of(func, block.name)
    if any(root_of(func, w.name) >= root for w in writers(func, buffer)):
        reason = (
            f"{buffer.name} is written in the same loop nest; cache it before its producer is moved there"
        )
        raise ScheduleError("cache_read", reason, func, block)
    return buffer


def _check_accesses(func: PrimFunc, block: Block, buffer: Buffer, accesses: Sequence[int] | None) -> None:
    """Some of the block's different accesses, each at most once."""
    if accesses is None:
        return
    there = [f"[{', '.join(map(str, i))}]" for i in accesses_of(block, buffer)]
    given = accesses if isinstance(accesses, Sequence) else ()
    numbers = {n for n in given if type(n) is int and 0 <= n < len(there)}
    if not numbers or len(numbers) < len(given):
        names = ", ".join(f"{n}: {buffer.name}{i}" for n, i in enumerate(there))
        reason = f"accesses is a list of some of {names}, each once, got {accesses!r}"
        raise ScheduleError("cache_read", reason, func, block)


def cache_read(
    func: PrimFunc,
    name: str,
    index: int,
    scope: Scope,
    order: Sequence[int] | None = None,
    accesses: Sequence[int] | None = None,
) -> tuple[PrimFunc, str]:
    """The block reads its `index`-th read buffer through a copy, whose dimensions may be permuted by `order`.

    before: `C[i] = A[i] * 2`; after: `A_local[i] = A[i]` in a nest of its own, then `C[i] = A_local[i] * 2`
    accesses: which of the different places at which the block reads the buffer are read from the copy, by
    their numbers in the order of the text; all where it is None. With [1], `C[i] += A[i] * A[i + 1]` becomes
    `C[i] += A[i] * A_local[i + 1]`.
    Returns the program and the name of the copying block. Refused: a buffer written in the block's own loop
    nest.
    """
    _, block = find_block(func, name, "cache_read")
    buffer = check_cache_read(func, block, index, scope, order, accesses)
    places = accesses_of(block, buffer)
    moved = places if accesses is None else [places[n] for n in accesses]
    order = tuple(order) if order is not None else tuple(range(len(buffer.shape)))

    def permuted(indices: Sequence[Poly]) -> tuple[Poly, ...]:
        return tuple(indices[d] for d in order)

    copy = Buffer(
        func.fresh_buffer_name(f"{buffer.name}_{scope}"), permuted(buffer.shape), buffer.dtype, scope
    )
    copy_name = func.fresh_block_name(copy.name)
    root = root_of(func, name)

    def put(x: Load) -> Expr:
        return Load(copy, permuted(x.indices)) if x.buffer is buffer and x.indices in moved else x

    def visit(s: Stmt) -> Stmt:
        return replace(s, value=map_loads(s.value, put)) if type(s) is Block and s.name == name else s

    new = func.rewrite(visit)
    body = (*new.body[:root], *_copy(copy_name, buffer, copy, order), *new.body[root:])
    return replace(new, allocs=(*func.allocs, copy), body=body), copy_name


def check_cache_write(func: PrimFunc, block: Block, index: int, scope: str) -> None:
    """Output 0 of the block; nobody may read the buffer inside the block's loop nest."""
    check_scope(func, block, scope, "cache_write")
    if type(index) is not int or index != 0:
        raise ScheduleError(
            "cache_write", f"{block.name!r} has one write buffer, 0; there is no {index!r}", func, block
        )
    root = last_root(func, block.buffer)
    for r in readers(func, block.buffer):
        if root_of(func, r.name) <= root:
            reason = f"{r.name!r} reads {block.buffer.name} in the same loop nest; cache it before that move"
            raise ScheduleError("cache_write", reason, func, block)


def last_root(func: PrimFunc, buffer: Buffer) -> int:
    """The position, in the function's body, of the last nest that writes the buffer: an init may stand in one
    of its own."""
    return max(root_of(func, w.name) for w in writers(func, buffer))


def cache_write(func: PrimFunc, name: str, index: int, scope: Scope) -> tuple[PrimFunc, str]:
    """The block writes a new buffer in `scope`, which a copying block behind its nest writes back.

    before: `C[i] = A[i] * 2`; after: `C_register[i] = A[i] * 2`, then `C[i] = C_register[i]` in a nest of its
    own Returns the program and the name of the copying block. Refused: a buffer read in the block's own loop
    nest.
    """
    _, block = find_block(func, name, "cache_write")
    check_cache_write(func, block, index, scope)
    old = block.buffer
    copy = Buffer(func.fresh_buffer_name(f"{old.name}_{scope}"), old.shape, old.dtype, scope)
    copy_name = func.fresh_block_name(f"{old.name}_write" if old.name == name else old.name)
    new = _redirect(func, old, copy, writers(func, old))
    root = last_root(func, old)
    body = (*new.body[: root + 1], *_copy(copy_name, copy, old, range(len(old.shape))), *new.body[root + 1 :])
    return replace(new, allocs=(*func.allocs, copy), body=body), copy_name


def _redirect(func: PrimFunc, old: Buffer, new: Buffer, blocks: Sequence[Block]) -> PrimFunc:
    """The given blocks write, and for their own accumulation read, `new` instead of `old`."""
    names = {b.name for b in blocks}

    def put(x: Load) -> Expr:
        return Load(new, x.indices) if x.buffer is old else x

    def visit(s: Stmt) -> Stmt:
        return (
            replace(s, buffer=new, value=map_loads(s.value, put))
            if type(s) is Block and s.name in names
            else s
        )

    return func.rewrite(visit)


def set_scope(func: PrimFunc, name: str, index: int, scope: Scope) -> PrimFunc:
    """Puts the intermediate that the block writes into another memory scope.

    before: `C = global(…)` after `set_scope(block, 0, "register")`: `C = register(…)`
    Refused: parameters, which live where the caller put them.
    """
    _, block = find_block(func, name, "set_scope")
    check_scope(func, block, scope, "set_scope")
    if type(index) is not int or index != 0:
        raise ScheduleError(
            "set_scope", f"{block.name!r} has one write buffer, 0; there is no {index!r}", func, block
        )
    old = block.buffer
    if old in func.params:
        raise ScheduleError("set_scope", f"{old.name} is a parameter and stays in global memory", func, block)
    new = replace(old, scope=scope)

    def put(x: Load) -> Expr:
        return Load(new, x.indices) if x.buffer is old else x

    def visit(s: Stmt) -> Stmt:
        if type(s) is not Block:
            return s
        if s.buffer is not old and not any(x.buffer is old for x in loads(s.value)):
            return s
        return replace(s, buffer=new if s.buffer is old else s.buffer, value=map_loads(s.value, put))

    return replace(func.rewrite(visit), allocs=tuple(new if b is old else b for b in func.allocs))
