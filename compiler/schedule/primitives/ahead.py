"""compute_ahead: what is made of constants alone, made before the calls."""

from __future__ import annotations

from dataclasses import replace

from ...ir import Block, PrimFunc, Stmt, loads
from ...ir.annotations import AHEAD, made_ahead
from ..errors import ScheduleError
from ..find import check_in_no_unit, find_block, writers


def check_compute_ahead(func: PrimFunc, block: Block) -> None:
    """An intermediate in memory, every one of whose writers reads constants, or what is made of them ahead,
    and nothing else."""

    def refuse(reason: str, at: Block = block) -> ScheduleError:
        return ScheduleError("compute_ahead", reason, func, at)

    result = block.buffer
    if result in func.params:
        raise refuse(f"{block.name!r} writes the output {result.name}, which belongs to a call")
    if result.scope == "register":
        raise refuse(f"{result.name} is in registers, which hold nothing between calls")
    ready = made_ahead(func)
    for w in writers(func, result):
        for x in loads(w.value):
            if x.buffer is result or x.buffer.constant or x.buffer in ready:
                continue
            if x.buffer in func.params:
                advice = "declare it so with te.placeholder(…, constant=True) where it is one"
                raise refuse(f"{w.name!r} reads {x.buffer.name}, which is no constant; {advice}", w)
            makers = ", ".join(repr(m.name) for m in writers(func, x.buffer))
            raise refuse(
                f"{w.name!r} reads {x.buffer.name}, which {makers} makes at each call; "
                f"compute {makers} ahead first",
                w,
            )
    for p in (*result.shape, *(it.extent for it in block.iters)):
        for size in p.sizes():
            raise refuse(f"it runs over the size {size.name!r}, which only a call tells")


def compute_ahead(func: PrimFunc, name: str) -> PrimFunc:
    """Makes what the block writes before the calls: once, where the constants it reads are bound.

    before: `for j_0: { for k: for j: B_local[k, j_0 * 8 + j] = B[k, j_0 * 8 + j]; … }` at each call
    after: the same program, with `ahead=1` at the block. Lowering makes two functions of it: one that fills
    `B_local: [j_0, k, j]`, a part for each iteration of the loops that move it, and the kernel, which reads
    that.

    The loops around the block stay where they are, and decide the layout: what one iteration of them uses
    lies together. Refused: outputs, registers, a block that reads anything but constants and what is made
    ahead, loops over sizes.
    """
    path, block = find_block(func, name, "compute_ahead")
    check_in_no_unit(func, path, block, "compute_ahead")
    check_compute_ahead(func, block)

    def visit(s: Stmt) -> Stmt:
        if type(s) is not Block or s.name != name:
            return s
        return replace(s, annotations=tuple(sorted({**dict(s.annotations), AHEAD: 1}.items())))

    return func.rewrite(visit)
