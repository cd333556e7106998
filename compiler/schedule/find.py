"""Looking things up in a program, with a ScheduleError when they are not there."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import dropwhile, islice, takewhile

from ..arith import Var
from ..ir import Block, Buffer, For, PrimFunc, Stmt, loads, walk
from ..ir.annotations import UNIT
from .errors import ScheduleError


def find_loop(func: PrimFunc, var: Var, primitive: str) -> For:
    """The loop over `var`, which must not belong to a unit."""
    for path, _ in func.blocks():
        for n, f in enumerate(path):
            if f.var is var:
                unit = next((g for g in path[: n + 1] if g.annotations and unit_of(g)), None)
                if unit is not None:
                    reason = f"loop {var.name!r} belongs to the unit {unit_of(unit)!r}, which is taken whole"
                    raise ScheduleError(primitive, reason, func, unit)
                return f
    raise ScheduleError(
        primitive, f"loop {var.name!r} is no longer in the program: an earlier step consumed it"
    )


def find_block(func: PrimFunc, name: str, primitive: str) -> tuple[tuple[For, ...], Block]:
    """The block of that name and the loops around it, outermost first."""
    for path, b in func.blocks():
        if b.name == name:
            return path, b
    units = [f for _, f in units_of(func) if unit_of(f) == name]
    if units:
        reason = f"{name!r} is a unit, which is taken whole; this step takes one of its blocks"
        raise ScheduleError(primitive, reason, func, units[0])
    raise ScheduleError(primitive, f"block {name!r} is no longer in the program: an earlier step consumed it")


def unit_of(loop: For) -> str | None:
    """The name of the unit that the loop holds, if it holds one."""
    if not loop.annotations:
        return None
    return next((str(v) for k, v in loop.annotations if k == UNIT), None)


def units_of(func: PrimFunc) -> Iterator[tuple[tuple[For, ...], For]]:
    """(enclosing loops, loop) for each loop that holds a unit."""
    seen: set[Var] = set()
    for path, _ in func.blocks():
        for n, f in enumerate(path):
            if unit_of(f) is not None and f.var not in seen:
                seen.add(f.var)
                yield path[:n], f


def find_unit(func: PrimFunc, name: str, primitive: str) -> tuple[tuple[For, ...], For]:
    """The loops around the unit of that name, and the loop that holds it."""
    found = [(path, f) for path, f in units_of(func) if unit_of(f) == name]
    if len(found) > 1:
        reason = f"the unit {name!r} stands in {len(found)} places by now"
        raise ScheduleError(primitive, reason, func, found[1][1])
    if found:
        return found[0]
    blocks = [b for _, b in func.blocks() if b.name == name]
    if blocks:
        reason = f"{name!r} is a block; name the loop around what is to be a unit, or blockize it"
        raise ScheduleError(primitive, reason, func, blocks[0])
    raise ScheduleError(primitive, f"unit {name!r} is no longer in the program: an earlier step consumed it")


def loops_around(func: PrimFunc, name: str, primitive: str) -> tuple[For, ...]:
    """The loops around the block or the unit of that name, outermost first."""
    for path, f in units_of(func):
        if unit_of(f) == name:
            return path
    return find_block(func, name, primitive)[0]


def check_in_no_unit(
    func: PrimFunc, path: tuple[For, ...], block: Block, primitive: str, key: str = UNIT
) -> None:
    """The block is no part of a unit (or, with the key INTRINSIC, of none that is an intrinsic)."""
    for f in path:
        if any(k == key for k, _ in f.annotations):
            reason = f"{block.name!r} belongs to the unit {unit_of(f)!r}, which is taken whole"
            raise ScheduleError(primitive, reason, func, f)


def blocks_under(loop: Stmt) -> Iterator[tuple[tuple[For, ...], Block]]:
    """(path from the loop down, block) for each block under `loop`."""
    yield from walk((loop,))


def root_of(func: PrimFunc, block: str) -> int:
    """The position, in the function's body, of the statement that holds the block."""
    for n, s in enumerate(func.body):
        if any(b.name == block for _, b in blocks_under(s)):
            return n
    raise KeyError(block)


def writers(func: PrimFunc, buffer: Buffer) -> list[Block]:
    """The blocks that write the buffer, in program order."""
    return [b for _, b in func.blocks() if b.buffer is buffer]


def readers(func: PrimFunc, buffer: Buffer) -> list[Block]:
    """The blocks that read the buffer, other than for their own accumulation, in program order."""
    return [
        b
        for _, b in func.blocks()
        if b.buffer is not buffer and any(x.buffer is buffer for x in loads(b.value))
    ]


def producers(func: PrimFunc, block: Block) -> list[Block]:
    """The blocks before `block` that write a buffer which it reads, in program order."""
    read = {x.buffer for x in loads(block.value)}
    return [b for b in takewhile(lambda b: b is not block, _blocks(func)) if b.buffer in read]


def consumers(func: PrimFunc, block: Block) -> list[Block]:
    """The blocks behind `block` that read the buffer which it writes, in program order."""
    behind = islice(dropwhile(lambda b: b is not block, _blocks(func)), 1, None)
    return [b for b in behind if any(x.buffer is block.buffer for x in loads(b.value))]


def _blocks(func: PrimFunc) -> Iterator[Block]:
    return (b for _, b in func.blocks())
