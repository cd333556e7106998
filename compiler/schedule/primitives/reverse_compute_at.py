"""reverse_compute_at: a block moved under a loop of its producer."""

from __future__ import annotations

from collections.abc import Sequence

from ...arith import (
    Poly,
    Var,
    ends,
    is_contiguous,
    is_positive,
    positive_atoms,
    proven_negative,
    region,
)
from ...arith.region import Range
from ...ir import Block, Buffer, For, IterKind, PrimFunc, loads
from ..errors import ScheduleError
from ..find import blocks_under, find_block, find_loop, root_of, writers
from .compute_at import check_target, identity_dims, moved_under, renest


def existing_iterations(blocks: Sequence[Block], inner: set[Var]) -> list[Poly]:
    """Predicates without which no block has any instance in an iteration: those of whole tiles past the
    end. A reduction without steps still gives its init, so that the predicates of steps are none of
    these."""
    lowest = [
        [
            low[0]
            for p in b.predicates
            if not p.vars() & b.loop_vars(IterKind.REDUCE) and (low := ends(p, inner)) is not None
        ]
        for b in blocks
    ]
    first, *others = lowest
    return [p for n, p in enumerate(first) if p not in first[:n] and all(p in o for o in others)]


def check_all_used(func: PrimFunc, block: Block, dims: dict[Var, int], source: Buffer) -> None:
    """Every element of the consumer belongs to one that the producer writes: others would never be
    computed."""
    for it, d in dims.items():
        if not proven_negative(it.extent - source.shape[d] - 1):
            reason = (
                f"{block.name!r} runs over {it.extent!r} in {it.name!r}, and {source.name} has the extent "
                f"{source.shape[d]!r} there; it is not known to be as long, so that elements may be left out"
            )
            raise ScheduleError("reverse_compute_at", reason, func, block)


def check_runs(func: PrimFunc, block: Block, at: For) -> None:
    """The loops that the consumer moves under run an iteration wherever it has elements."""
    known = positive_atoms(block.iters)
    path = next(p for p, _ in func.blocks() if any(f is at for f in p))
    for f in path[: _position(path, at.var) + 1]:
        if not is_positive(f.var.extent, known):
            what = f"loop {f.var.name!r} runs {f.var.extent!r} times, which may be 0"
            raise ScheduleError(
                "reverse_compute_at", f"{what} where {block.name!r} has elements to compute", func, f
            )


def check_written_box(
    func: PrimFunc, at: For, producers: Sequence[Block], box: Sequence[Range], inner: set[Var]
) -> None:
    """What an iteration writes must be a box without gaps: a consumer of all of it would read what was never
    written."""
    parts = []
    for b in producers:
        indices = b.bound_indices()
        moving = [v for i in indices for v in i.vars() & inner]
        part = region([indices], inner)
        gapless = len(set(moving)) == len(moving) and all(is_contiguous(i, inner) for i in indices)
        gapless = gapless and not _masked_inside(b, indices, inner)
        if part is None or not gapless:
            raise ScheduleError("reverse_compute_at", _gaps(at, b), func, at)
        parts.append(part)
    if not _fill(parts, box):
        raise ScheduleError("reverse_compute_at", _gaps(at, producers[0]), func, at)


def _masked_inside(b: Block, indices: Sequence[Poly], inner: set[Var]) -> bool:
    """Whether a predicate leaves elements of the box out that lie inside of the buffer: those of a loop that
    was split again, which another iteration writes."""
    beyond = [i - extent for i, extent in zip(indices, b.buffer.shape, strict=True)]
    spatial = b.loop_vars(IterKind.SPATIAL) & inner
    return any(p.vars() & spatial and p not in beyond for p in b.predicates)


def _gaps(at: For, b: Block) -> str:
    what = f"what an iteration of loop {at.var.name!r} writes of {b.buffer.name}"
    return f"{what} is not a box without gaps"


def _fill(parts: Sequence[Sequence[Range]], box: Sequence[Range]) -> bool:
    """Whether the parts fill the box: one of them does, or they lie side by side along one dimension."""
    if any(list(p) == list(box) for p in parts):
        return True
    along = [d for d in range(len(box)) if any(p[d] != box[d] for p in parts)]
    if len(along) != 1:
        return False
    reached = box[along[0]][0]
    left = [p[along[0]] for p in parts]
    while left:
        # The next part begins where the ones before it end, or before that.
        fitting = next((r for r in left if proven_negative(r[0] - reached - 1)), None)
        if fitting is None:
            return False
        left.remove(fitting)
        end = fitting[0] + fitting[1]
        if not proven_negative(end - reached - 1):
            reached = end
    return True


def check_reverse_compute_at(func: PrimFunc, block: Block, path: tuple[For, ...], at: For) -> list[Block]:
    """The producers under the loop whose result is complete at the end of each iteration."""

    def refuse(reason: str) -> ScheduleError:
        return ScheduleError("reverse_compute_at", reason, func, block)

    check_target(func, at, path, block, "reverse_compute_at")
    if block.is_reduction or block.init is not None:
        raise refuse(
            f"{block.name!r} is a reduction; only elementwise consumers can be moved under a producer's loop"
        )
    target = root_of(func, next(b.name for _, b in blocks_under(at)))
    if root_of(func, block.name) <= target:
        raise refuse(f"{block.name!r} does not come after loop {at.var.name!r}")
    under = {b.name: b for _, b in blocks_under(at)}
    sources: dict[str, list[Block]] = {}
    for x in loads(block.value):
        for w in writers(func, x.buffer):
            if root_of(func, w.name) > target:
                raise refuse(f"{w.name!r} writes {x.buffer.name} after loop {at.var.name!r}")
            if root_of(func, w.name) == target:
                sources.setdefault(x.buffer.name, []).append(w)
    if len(sources) != 1:
        raise refuse(
            f"{block.name!r} must read one buffer made under loop {at.var.name!r}; it reads {len(sources)}"
        )
    (producers,) = sources.values()
    around = {f.var for p, b in func.blocks() if b.name in under for f in p[: _position(p, at.var) + 1]}
    for w in producers:
        if w.name not in under:
            raise refuse(f"{w.name!r} writes {w.buffer.name} outside of loop {at.var.name!r}")
        carried = sorted(v.name for v in w.loop_vars(IterKind.REDUCE) & around)
        if carried:
            raise refuse(
                f"loop {carried[0]!r} carries the reduction of {w.name!r}, which is not complete under it"
            )
    steps = all(w.is_reduction for w in producers)
    for w in writers(func, producers[0].buffer):
        # An init in a nest of its own writes no more than its steps; any other block writes something else.
        if w.name not in under and (w.is_reduction or not steps):
            raise refuse(f"{w.name!r} writes {w.buffer.name} outside of loop {at.var.name!r}")
    _check_writes_last(func, block, target)
    return producers


def _check_writes_last(func: PrimFunc, block: Block, target: int) -> None:
    """The block passes nobody who writes its buffer too, such as what fills padding: who wrote last would be
    another one. Nor anybody who reads what was there before."""
    for _, other in func.blocks():
        if other is block:
            return
        if root_of(func, other.name) < target:
            continue
        if other.buffer is block.buffer:
            reason = (
                f"{other.name!r} writes {block.buffer.name} as well, and would do so after {block.name!r}"
            )
            raise ScheduleError("reverse_compute_at", f"{reason} instead of before", func, other)
        if any(x.buffer is block.buffer for x in loads(other.value)):
            reason = f"{other.name!r} reads {block.buffer.name}, and would do so after {block.name!r}"
            raise ScheduleError("reverse_compute_at", f"{reason} instead of before", func, other)


def _position(path: tuple[For, ...], var: Var) -> int:
    return next(n for n, f in enumerate(path) if f.var is var)


def reverse_compute_at(func: PrimFunc, name: str, loop: Var) -> tuple[PrimFunc, list[Var]]:
    """Moves an elementwise consumer to the end of a loop's body, where it uses just what that iteration made.

    before: `for i_0: for i_1: B[i_0 * 4 + i_1] = …` then `for i: C[i] = B[i]`
    after `reverse_compute_at(C, i_0)`: `for i_0: { for i_1: B[…] = …; for i: C[i_0 * 4 + i] = B[i_0 * 4 + i]
    }` Returns the program and the block's new loops, one for each iteration variable. Refused: reductions,
    consumers that read elsewhere than at their own place or have more elements than what they read, a loop
    under which a reduction is not complete yet, a move past another block that writes the consumer's buffer.
    """
    path, block = find_block(func, name, "reverse_compute_at")
    at = find_loop(func, loop, "reverse_compute_at")
    producers = check_reverse_compute_at(func, block, path, at)
    source = producers[0].buffer
    used = {x.indices for x in loads(block.value) if x.buffer is source}
    distinct = {tuple(p.key for p in i) for i in used}
    if len(distinct) != 1:
        raise ScheduleError(
            "reverse_compute_at", f"{block.name!r} reads {source.name} at more than one place", func, block
        )
    dims = identity_dims(func, block, next(iter(used)), "reverse_compute_at", source.name)
    check_all_used(func, block, dims, source)
    check_runs(func, block, at)
    under = list(blocks_under(at))
    inner = {f.var for p, _ in under for f in p if f is not at}
    box = region([b.bound_indices() for b in producers], inner)
    if box is None:
        raise ScheduleError(
            "reverse_compute_at", f"what loop {loop.name!r} writes of {source.name} is not a box", func, at
        )
    check_written_box(func, at, producers, box, inner)
    keep = existing_iterations(producers, inner)
    body, loops = renest(block, dims, box, keep, func, "reverse_compute_at")
    return moved_under(func, name, loop, body, at_end=True), loops
