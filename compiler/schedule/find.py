"""Looking things up in a program, with a ScheduleError when they are not there."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import dropwhile, islice, takewhile

from ..arith import Var
from ..ir import Block, Buffer, For, PrimFunc, Stmt, loads, walk
from .errors import ScheduleError


def find_loop(func: PrimFunc, var: Var, primitive: str) -> For:
    """The loop over `var`."""
    for path, _ in func.blocks():
        for f in path:
            if f.var is var:
                return f
    raise ScheduleError(
        primitive, f"loop {var.name!r} is no longer in the program: an earlier step consumed it"
    )


def find_block(func: PrimFunc, name: str, primitive: str) -> tuple[tuple[For, ...], Block]:
    """The block of that name and the loops around it, outermost first."""
    for path, b in func.blocks():
        if b.name == name:
            return path, b
    raise ScheduleError(primitive, f"block {name!r} is no longer in the program: an earlier step consumed it")


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
