"""compute_inline and reverse_compute_inline: blocks that vanish into their neighbours."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from ...arith import Atom, Poly, Var, poly, substitute
from ...ir import Block, Expr, Load, PrimFunc, Stmt, loads, map_expr, map_loads, walk_expr
from ...ir.annotations import INTRINSIC
from ..errors import ScheduleError
from ..find import check_in_no_unit, find_block, readers, root_of, writers

MAX_VALUE = 20_000
"""Nodes of one block's value: inlining may double it each time."""


def inlined_size(block: Block, reader: Block) -> int:
    """The nodes of the reader's value once the block is inlined into it."""
    reads = sum(x.buffer is block.buffer for x in loads(reader.value))
    return _size(reader) + reads * _size(block)


def _size(block: Block) -> int:
    return sum(1 for _ in walk_expr(block.value))


def is_permutation(indices: Sequence[Poly], iters: Sequence[Var]) -> bool:
    """Whether the indices are the iteration variables, each once, in any order."""
    return len(indices) == len(iters) and {p.atom for p in indices} == set(iters)


def check_compute_inline(func: PrimFunc, block: Block) -> None:
    """An elementwise, sole writer of an intermediate that somebody reads."""
    if block.buffer in func.params:
        raise ScheduleError(
            "compute_inline",
            f"{block.name!r} writes the output {block.buffer.name}, which must stay",
            func,
            block,
        )
    if block.is_reduction or block.init is not None:
        raise ScheduleError(
            "compute_inline",
            f"{block.name!r} is a reduction; only elementwise blocks can be inlined",
            func,
            block,
        )
    if writers(func, block.buffer) != [block]:
        raise ScheduleError(
            "compute_inline", f"{block.buffer.name} is written by more than one block", func, block
        )
    if not is_permutation(block.indices, block.iters):
        raise ScheduleError(
            "compute_inline", f"{block.name!r} is not elementwise over its iteration variables", func, block
        )
    if any(x.buffer is block.buffer for x in loads(block.value)):
        raise ScheduleError("compute_inline", f"{block.name!r} reads the buffer that it writes", func, block)
    users = readers(func, block.buffer)
    if not users:
        raise ScheduleError("compute_inline", f"nobody reads {block.buffer.name}", func, block)
    for user in users:
        if (size := inlined_size(block, user)) > MAX_VALUE:
            reason = f"the value of {user.name!r} would have {size} nodes; at most {MAX_VALUE} are allowed"
            raise ScheduleError("compute_inline", reason, func, block)
    order = [b.name for _, b in func.blocks()]
    for x in loads(block.value):
        for w in writers(func, x.buffer):
            if order.index(w.name) > order.index(block.name):
                reason = f"{block.name!r} reads {x.buffer.name} before {w.name!r} writes it"
                raise ScheduleError("compute_inline", reason, func, block)


def compute_inline(func: PrimFunc, name: str) -> PrimFunc:
    """Replaces every read of an elementwise block's buffer by the block's expression, and removes the block.

    before: `B[i] = A[i] * 2` and `C[i] = B[i] + 1`; after: `C[i] = A[i] * 2 + 1`
    Refused: outputs, reductions, blocks whose indices are not just their iteration variables.
    """
    path, block = find_block(func, name, "compute_inline")
    check_in_no_unit(func, path, block, "compute_inline")
    check_compute_inline(func, block)
    for r in readers(func, block.buffer):
        check_in_no_unit(func, find_block(func, r.name, "compute_inline")[0], r, "compute_inline", INTRINSIC)

    def value_at(indices: Sequence[Poly]) -> Expr:
        m: dict[Atom, Poly] = {}
        for p, i in zip(block.indices, indices, strict=True):
            assert p.atom is not None
            m[p.atom] = i
        return map_expr(block.value, lambda p: substitute(p, m))

    def visit(s: Stmt) -> Stmt | tuple[Stmt, ...]:
        if type(s) is not Block:
            return s
        if s.name == name:
            return ()
        return replace(
            s, value=map_loads(s.value, lambda x: value_at(x.indices) if x.buffer is block.buffer else x)
        )

    return replace(func.rewrite(visit), allocs=tuple(b for b in func.allocs if b is not block.buffer))


def check_reverse_compute_inline(func: PrimFunc, block: Block) -> Block:
    """The producer that the consumer can vanish into."""

    def refuse(reason: str) -> ScheduleError:
        return ScheduleError("reverse_compute_inline", reason, func, block)

    if block.is_reduction or block.init is not None:
        raise refuse(f"{block.name!r} is a reduction; only elementwise blocks can be inlined")
    sources = {x.buffer for x in loads(block.value) if x.buffer in func.allocs}
    candidates = [b for b in sources if readers(func, b) == [block]]
    if len(candidates) != 1:
        raise refuse(f"{block.name!r} is not the only reader of exactly one intermediate")
    source = candidates[0]
    producers = writers(func, source)
    if len(producers) != 1 or producers[0].is_reduction or producers[0].init is not None:
        raise refuse(
            f"{source.name} is made by a reduction, whose steps must be over before its value is used"
        )
    producer = producers[0]
    if (size := inlined_size(producer, block)) > MAX_VALUE:
        raise refuse(f"its value would have {size} nodes; at most {MAX_VALUE} are allowed")
    if not is_permutation(producer.indices, producer.iters):
        raise refuse(f"{producer.name!r} is not elementwise over its iteration variables")
    used = {x.indices for x in loads(block.value) if x.buffer is source}
    if len({tuple(p.key for p in i) for i in used}) != 1 or not is_permutation(next(iter(used)), block.iters):
        raise refuse(f"{block.name!r} does not read {source.name} at its own iteration variables")
    if not is_permutation(block.indices, block.iters):
        raise refuse(f"{block.name!r} is not elementwise over its iteration variables")
    extents = {p.atom: e for p, e in zip(next(iter(used)), source.shape, strict=True)}
    if any(extents[it] != it.extent for it in block.iters):
        raise refuse(f"{block.name!r} covers only a part of {source.name}")
    if writers(func, block.buffer) != [block]:
        raise refuse(f"{block.buffer.name} is written by more than one block")
    for x in loads(block.value):
        for w in writers(func, x.buffer) if x.buffer is not source else ():
            if root_of(func, w.name) >= root_of(func, producer.name):
                late = f"{w.name!r} writes no earlier than {producer.name!r}, its producer"
                raise refuse(f"{block.name!r} reads {x.buffer.name}, which {late}")
    return producer


def reverse_compute_inline(func: PrimFunc, name: str) -> PrimFunc:
    """Moves an elementwise consumer's expression into its only producer, and removes the consumer.

    before: `B[i] = A[i] * 2` and `C[i] = B[i] + 1`; after: `C[i] = A[i] * 2 + 1`, computed where B was
    Refused: producers that are reductions, intermediates with other readers, consumers that read elsewhere
    than at their own place.
    """
    path, block = find_block(func, name, "reverse_compute_inline")
    check_in_no_unit(func, path, block, "reverse_compute_inline")
    producer = check_reverse_compute_inline(func, block)
    path, _ = find_block(func, producer.name, "reverse_compute_inline")
    check_in_no_unit(func, path, producer, "reverse_compute_inline", INTRINSIC)
    source = producer.buffer
    read = next(x.indices for x in loads(block.value) if x.buffer is source)
    m: dict[Atom, Poly] = {}
    for p, i in zip(read, producer.indices, strict=True):
        assert p.atom is not None
        m[p.atom] = poly(i)

    def visit(s: Stmt) -> Stmt | tuple[Stmt, ...]:
        if type(s) is not Block or s.name not in (name, producer.name):
            return s
        if s.name == name:
            return ()

        def put(x: Load) -> Expr:
            return s.value if x.buffer is source else x

        value = map_expr(block.value, lambda p: substitute(p, m), put)
        return replace(
            s, buffer=block.buffer, indices=tuple(substitute(i, m) for i in block.indices), value=value
        )

    return replace(func.rewrite(visit), allocs=tuple(b for b in func.allocs if b is not source))
