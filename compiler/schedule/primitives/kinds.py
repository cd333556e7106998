"""parallel, vectorize, unroll, bind: how a loop runs."""

from __future__ import annotations

from dataclasses import replace

from ...arith import Poly, Var, is_injective, poly, proven_negative, region, substitute
from ...ir import Block, Buffer, For, IterKind, LoopKind, PrimFunc, Stmt, combines_lanes, loads
from ..depend import accesses, crossing, inner_loops
from ..errors import ScheduleError
from ..find import blocks_under, find_loop, unit_of
from .notes import AXIS, annotate_loop


def check_independent(func: PrimFunc, at: For, primitive: str) -> None:
    """The iterations must not depend on each other: no reduction over the loop, what others see is written
    once, and what one iteration writes no other one reads. A single iteration depends on nothing."""
    if at.var.extent.const == 1:
        return
    private = _private_buffers(func, at)
    for _, b in blocks_under(at):
        if _runs_first_only(at.var, b) or (primitive == "vectorize" and combines_lanes(b, at.var)):
            continue
        if at.var in b.loop_vars(IterKind.REDUCE):
            loop = f"loop {at.var.name!r} carries a reduction into {b.buffer.name}"
            reason = f"{loop} and cannot be a {_word(primitive)} loop"
            raise ScheduleError(primitive, reason, func, at)
        clamped = any(at.var in p.clamped_vars() for p in b.binds)
        repeatable = b.buffer in private or (primitive == "parallel" and _written_in_one_go(at, b.buffer))
        if clamped and (not repeatable or primitive == "vectorize"):
            reason = f"iterations of loop {at.var.name!r} overlap in {b.buffer.name}"
            raise ScheduleError(primitive, reason, func, at)
        if at.var not in b.loop_vars(IterKind.SPATIAL) and b.buffer not in private:
            reason = f"every iteration of loop {at.var.name!r} writes the same elements of {b.buffer.name}"
            raise ScheduleError(primitive, reason, func, at)
    # That a block's own iterations write different elements is seen above, from its bindings.
    met = crossing(at, at, private, lambda a, b: a.block is not b.block)
    if met is not None:
        one, two = met[0].block.name, met[1].block.name
        reason = f"{one!r} and {two!r} may use one element of {met[0].buffer.name} in different iterations"
        raise ScheduleError(primitive, f"{reason} of loop {at.var.name!r}", func, at)


def check_nest(func: PrimFunc, at: For, primitive: str) -> None:
    """A loop that runs on threads stands in no vector loop, and all loops of a nest that run on threads are
    of one kind; of parallel loops, there is one."""
    for path, _ in func.blocks():
        if not any(f is at for f in path):
            continue
        position = [f is at for f in path].index(True)
        for n, f in enumerate(path):
            if f.kind is LoopKind.VECTORIZED and n < position:
                reason = f"loop {f.var.name!r} around it is a vector loop; whole loops cannot be its lanes"
                raise ScheduleError(primitive, reason, func, at)
            if f is at or f.kind not in (LoopKind.PARALLEL, LoopKind.THREAD):
                continue
            where = "around" if n < position else "inside of"
            if f.kind is LoopKind.PARALLEL and primitive == "parallel":
                reason = f"loop {f.var.name!r} {where} it is parallel already; fuse the two to run both so"
                raise ScheduleError(primitive, reason, func, at)
            if (f.kind is LoopKind.PARALLEL) is not (primitive == "parallel"):
                kind = "parallel" if f.kind is LoopKind.PARALLEL else "bound to a thread axis"
                reason = f"loop {f.var.name!r} {where} it is {kind}; a nest runs one way or the other"
                raise ScheduleError(primitive, reason, func, at)


def _word(primitive: str) -> str:
    return {"vectorize": "vector", "bind": "thread"}.get(primitive, primitive)


def _runs_first_only(v: Var, b: Block) -> bool:
    """Whether a predicate leaves only the first iteration of a loop around the block."""
    later = poly(Var(v.name, v.extent - 1)) + 1
    return any(v in p.vars() and proven_negative(-substitute(p, {v: later}) - 1) for p in b.predicates)


def _written_in_one_go(at: For, buffer: Buffer) -> bool:
    """Whether iterations that write the same elements may do so at once: each is written by one assignment,
    which gives the same whoever makes it, and nobody under the loop reads it."""
    blocks = [b for _, b in blocks_under(at)]
    if sum(b.buffer is buffer for b in blocks) > 1:
        return False
    return not any(x.buffer is buffer for b in blocks for x in loads(b.value))


def _private_buffers(func: PrimFunc, at: For) -> set[Buffer]:
    """Allocated buffers that only blocks under the loop touch, each iteration for itself."""
    under = {b.name for _, b in blocks_under(at)}
    touched = {
        x
        for _, b in func.blocks()
        if b.name not in under
        for x in (b.buffer, *(y.buffer for y in loads(b.value)))
    }
    return {b for b in func.allocs if b not in touched and not _handed_on(at, b)}


def _handed_on(at: For, buffer: Buffer) -> bool:
    """Whether an iteration reads what an earlier one wrote, as far as the boxes of what is read and written
    are known."""
    uses = [a for a in accesses(at.body) if a.buffer is buffer]
    inner = inner_loops(at.body)
    writes = region([a.indices for a in uses if a.is_write], inner)
    reads = region([a.indices for a in uses if not a.is_write], inner)
    if writes is None or reads is None:
        return False
    for (w, w_span), (r, r_span) in zip(writes, reads, strict=False):
        if at.var not in w.vars() | r.vars():
            continue
        first, last = (substitute(w, {at.var: i}) for i in (poly(0), at.var.extent - 1))
        # What lies on the side that no iteration has written yet is masked, where the program means anything.
        falls = proven_negative(last - first)
        gap = (w + w_span - r - r_span if falls else r - w).const
        if gap is not None and gap < 0:
            return True
    return False


def check_serial(func: PrimFunc, at: For, primitive: str) -> None:
    """A loop gets a kind once."""
    if at.kind is not LoopKind.SERIAL:
        raise ScheduleError(primitive, f"loop {at.var.name!r} is {at.kind} already", func, at)


def check_constant(func: PrimFunc, at: For, kind: LoopKind, primitive: str) -> None:
    """Lanes and unrolled copies are counted when code is made, not when it is called."""
    if kind in (LoopKind.VECTORIZED, LoopKind.UNROLLED) and at.var.extent.sizes():
        what = "lanes" if kind is LoopKind.VECTORIZED else "copies"
        reason = f"loop {at.var.name!r} runs {at.var.extent!r} times, which only a call tells; split it first"
        raise ScheduleError(primitive, f"{reason}: the number of {what} must be a constant", func, at)


def set_kind(func: PrimFunc, loop: Var, kind: LoopKind, primitive: str) -> PrimFunc:
    """The loop with another kind."""
    at = find_loop(func, loop, primitive)
    check_serial(func, at, primitive)
    check_constant(func, at, kind, primitive)

    def visit(s: Stmt) -> Stmt:
        return replace(s, kind=kind) if type(s) is For and s.var is loop else s

    return func.rewrite(visit)


def parallel(func: PrimFunc, loop: Var) -> PrimFunc:
    """Marks the iterations of a loop as free to run on different threads.

    before: `for i in range(8): …` after: `for i in parallel(8): …`
    Refused: a loop that carries a reduction, whose iterations write the same elements of a buffer seen
    outside (overlapped tiles may, where one assignment writes each element and nobody reads it), or around or
    inside of another parallel loop (fuse the two). A loop of one iteration may always be parallel where no
    other loop is.
    """
    at = find_loop(func, loop, "parallel")
    check_independent(func, at, "parallel")
    check_nest(func, at, "parallel")
    return set_kind(func, loop, LoopKind.PARALLEL, "parallel")


def vectorize(func: PrimFunc, loop: Var) -> PrimFunc:
    """Makes the iterations of a loop the lanes of vectors; extents that are no power of two, or wider than a
    register, are legal.

    before: `for i in range(16): …` after: `for i in vectorized(16): …`
    A reduction over the elements of a register buffer, such as the parts that rfactor made, may run in lanes:
    the elements of a vector are combined with each other, then with the result, which changes the order of
    floating point additions.
    Refused: a loop that carries any other reduction, one with another vector loop around or inside, one whose
    lanes write one element, or one over a size, which must be split first.
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
                if unit_of(f) is not None:
                    reason = f"loop {loop.name!r} stands around the unit {unit_of(f)!r}, which is no lane"
                    raise ScheduleError("vectorize", reason, func, f)
            inner = {f.var for f in path[[f is at for f in path].index(True) :]}
            if b.is_reduction and not is_injective(b.binds, [it.extent for it in b.iters], inner):
                reason = f"steps of {b.name!r} are repeated under loop {loop.name!r}; its lanes would overlap"
                raise ScheduleError("vectorize", reason, func, at)
            if combines_lanes(b, loop):
                _check_alone(func, at, b)
            elif loop not in b.loop_vars(IterKind.SPATIAL) and at.var.extent.const != 1:
                raise ScheduleError(
                    "vectorize",
                    f"all lanes of loop {loop.name!r} would write one element of {b.buffer.name}",
                    func,
                    at,
                )
    return set_kind(func, loop, LoopKind.VECTORIZED, "vectorize")


def _check_alone(func: PrimFunc, at: For, block: Block) -> None:
    """What lanes combine is complete behind the loop only: nobody under it may use that."""
    for _, b in blocks_under(at):
        if b is not block and (
            b.buffer is block.buffer or any(x.buffer is block.buffer for x in loads(b.value))
        ):
            reason = f"{b.name!r} uses {block.buffer.name} before the lanes of loop {at.var.name!r}"
            raise ScheduleError("vectorize", f"{reason} are combined into it", func, at)


def unroll(func: PrimFunc, loop: Var) -> PrimFunc:
    """Unrolls a loop when code is emitted. Legal for a serial loop that does not run over a size.

    before: `for i in range(4): …` after: `for i in unrolled(4): …`
    """
    return set_kind(func, loop, LoopKind.UNROLLED, "unroll")


#: What a loop can be bound to.
THREAD_AXES = (*(f"{a}.{d}" for a in ("blockIdx", "threadIdx", "vthread") for d in "xyz"), "vthread")


def check_bind(func: PrimFunc, at: For, axis: str) -> list[Poly]:
    """A known axis, once around each block, and with the same extent wherever it is bound; polynomials that
    must be at most 0 when that depends on knobs."""
    if axis not in THREAD_AXES:
        reason = f"unknown thread axis {axis!r}; known: {', '.join(THREAD_AXES)}"
        raise ScheduleError("bind", reason, func, at)
    check_serial(func, at, "bind")
    check_independent(func, at, "bind")
    check_nest(func, at, "bind")
    open_: list[Poly] = []
    for path, _ in func.blocks():
        for f in path:
            if f.kind is not LoopKind.THREAD or dict(f.annotations).get(AXIS) != axis:
                continue
            if any(g is at for g in path):
                reason = f"loop {f.var.name!r} around the same block is bound to {axis} already"
                raise ScheduleError("bind", reason, func, at)
            more = at.var.extent - f.var.extent
            if more.const == 0:
                continue
            if not more.knobs():
                extents = (
                    f"{at.var.extent!r} iterations, loop {f.var.name!r} on the same axis {f.var.extent!r}"
                )
                raise ScheduleError("bind", f"loop {at.var.name!r} has {extents}", func, at)
            open_ += [more, -more]
    return open_


def bind(func: PrimFunc, loop: Var, axis: str) -> tuple[PrimFunc, list[Poly]]:
    """Runs each iteration of a loop on a thread of the axis. Where the target has no such threads, they run
    one after the other.

    before: `for i in range(8): …` after `bind(i, "blockIdx.x")`: `for i in thread(8, axis='blockIdx.x'): …`
    Refused: what parallel refuses, an axis bound twice around one block, and extents that differ from nest to
    nest. Returns the program and polynomials over knobs that must stay at most 0.
    """
    at = find_loop(func, loop, "bind")
    open_ = check_bind(func, at, axis)
    named = annotate_loop(func, loop, AXIS, axis)
    return set_kind(named, loop, LoopKind.THREAD, "bind"), open_
