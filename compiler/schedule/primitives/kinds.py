"""parallel, vectorize, unroll, annotate: how a loop runs."""

from __future__ import annotations

from dataclasses import replace

from ...arith import Var, is_injective
from ...ir import Block, Buffer, For, IterKind, LoopKind, PrimFunc, Stmt, loads
from ..errors import ScheduleError
from ..find import blocks_under, find_block, find_loop


def check_independent(func: PrimFunc, at: For, primitive: str) -> None:
    """The iterations must not depend on each other: no reduction over the loop, and what others see is
    written once."""
    private = _private_buffers(func, at)
    for _, b in blocks_under(at):
        if at.var in b.loop_vars(IterKind.REDUCE):
            loop = f"loop {at.var.name!r} carries a reduction into {b.buffer.name}"
            reason = f"{loop} and cannot be a {_word(primitive)} loop"
            raise ScheduleError(primitive, reason, func, at)
        clamped = any(at.var in p.clamped_vars() for p in b.binds)
        if clamped and (b.buffer not in private or primitive == "vectorize"):
            reason = f"iterations of loop {at.var.name!r} overlap in {b.buffer.name}"
            raise ScheduleError(primitive, reason, func, at)
        if at.var not in b.loop_vars(IterKind.SPATIAL) and b.buffer not in private:
            reason = f"every iteration of loop {at.var.name!r} writes the same elements of {b.buffer.name}"
            raise ScheduleError(primitive, reason, func, at)


def _word(primitive: str) -> str:
    return {"vectorize": "vector"}.get(primitive, primitive)


def _private_buffers(func: PrimFunc, at: For) -> set[Buffer]:
    """Allocated buffers that only blocks under the loop touch."""
    under = {b.name for _, b in blocks_under(at)}
    touched = {
        x
        for _, b in func.blocks()
        if b.name not in under
        for x in (b.buffer, *(y.buffer for y in loads(b.value)))
    }
    return {b for b in func.allocs if b not in touched}


def set_kind(func: PrimFunc, loop: Var, kind: LoopKind, primitive: str) -> PrimFunc:
    """The loop with another kind; a loop gets one kind once."""
    at = find_loop(func, loop, primitive)
    if at.kind is not LoopKind.SERIAL:
        raise ScheduleError(primitive, f"loop {loop.name!r} is {at.kind} already", func, at)
    if kind in (LoopKind.VECTORIZED, LoopKind.UNROLLED) and loop.extent.sizes():
        what = "lanes" if kind is LoopKind.VECTORIZED else "copies"
        reason = f"loop {loop.name!r} runs {loop.extent!r} times, which only a call tells; split it first"
        raise ScheduleError(primitive, f"{reason}: the number of {what} must be a constant", func, at)

    def visit(s: Stmt) -> Stmt:
        return replace(s, kind=kind) if type(s) is For and s.var is loop else s

    return func.rewrite(visit)


def parallel(func: PrimFunc, loop: Var) -> PrimFunc:
    """Marks the iterations of a loop as free to run on different threads.

    before: `for i in range(8): …` after: `for i in parallel(8): …`
    Refused: a loop that carries a reduction, or whose iterations write the same elements of a buffer seen
    outside.
    """
    check_independent(func, find_loop(func, loop, "parallel"), "parallel")
    return set_kind(func, loop, LoopKind.PARALLEL, "parallel")


def vectorize(func: PrimFunc, loop: Var) -> PrimFunc:
    """Makes the iterations of a loop the lanes of vectors; extents that are no power of two, or wider than a
    register, are legal.

    before: `for i in range(16): …` after: `for i in vectorized(16): …`
    Refused: a loop that carries a reduction, one with another vector loop around or inside, one whose lanes
    write one element, or one over a size, which must be split first.
    """
    at = find_loop(func, loop, "vectorize")
    check_independent(func, at, "vectorize")
    for path, b in func.blocks():
        if any(f is at for f in path):
            for f in path:
                if f.kind is LoopKind.VECTORIZED and f is not at:
                    raise ScheduleError(
                        "vectorize",
                        f"loop {f.var.name!r} around the same block is a vector loop already",
                        func,
                        f,
                    )
            inner = {f.var for f in path[[f is at for f in path].index(True) :]}
            if b.is_reduction and not is_injective(b.binds, [it.extent for it in b.iters], inner):
                reason = f"steps of {b.name!r} are repeated under loop {loop.name!r}; its lanes would overlap"
                raise ScheduleError("vectorize", reason, func, at)
            if loop not in b.loop_vars(IterKind.SPATIAL):
                raise ScheduleError(
                    "vectorize",
                    f"all lanes of loop {loop.name!r} would write one element of {b.buffer.name}",
                    func,
                    at,
                )
    return set_kind(func, loop, LoopKind.VECTORIZED, "vectorize")


def unroll(func: PrimFunc, loop: Var) -> PrimFunc:
    """Unrolls a loop when code is emitted. Legal for a serial loop that does not run over a size.

    before: `for i in range(4): …` after: `for i in unrolled(4): …`
    """
    return set_kind(func, loop, LoopKind.UNROLLED, "unroll")


def annotate_loop(func: PrimFunc, loop: Var, key: str, value: str | int) -> PrimFunc:
    """Attaches a key and a value to a loop; the same key again replaces the value.

    before: `for i in range(4): …` after `annotate(i, "hint", 1)`: `for i in range(4, hint=1): …`
    """
    find_loop(func, loop, "annotate")

    def visit(s: Stmt) -> Stmt:
        return (
            replace(s, annotations=_with(s.annotations, key, value))
            if type(s) is For and s.var is loop
            else s
        )

    return func.rewrite(visit)


def annotate_block(func: PrimFunc, block: str, key: str, value: str | int) -> PrimFunc:
    """Attaches a key and a value to a block; the same key again replaces the value."""
    find_block(func, block, "annotate")

    def visit(s: Stmt) -> Stmt:
        return (
            replace(s, annotations=_with(s.annotations, key, value))
            if type(s) is Block and s.name == block
            else s
        )

    return func.rewrite(visit)


def _with(
    old: tuple[tuple[str, str | int], ...], key: str, value: str | int
) -> tuple[tuple[str, str | int], ...]:
    return tuple(sorted({**dict(old), key: value}.items()))
