"""Loops shared out to the threads of the target, from outside of whatever structure a nest has."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress

from ..arith import Atom, Poly, ceil_div, poly, substitute
from ..ir import Block, For, IterKind, LoopKind, walk
from ..schedule import LoopRV, Schedule, ScheduleError
from .sketch import Constraint

#: Steps of a reduction, and elements of other blocks, from which on a nest is shared out: what one thread
#: does in some 10 µs. A launch takes 1 µs, or 6 where the threads were asleep.
MIN_STEPS = 1 << 19
MIN_ELEMENTS = 1 << 16
#: Iterations for each thread that the fused loops have with the smallest tiles: fewer leave little to choose.
CHOICE = 16
#: Idle time of the threads at the end of a loop, at most, as a part of its time: 1 / 20, so that two threads
#: take 1.9 times less than one.
IDLE = 20


def deal_out(sch: Schedule, threads: int) -> None:
    """Gives reductions to a single element one for each step of their first axis instead, which are as many
    rows to share out, and one over these."""
    for _, b in list(sch.func.blocks()):
        steps = [n for n, it in enumerate(b.iters) if it.extent.const != 1]
        is_whole = b.is_reduction and all(b.kinds[n] is IterKind.REDUCE for n in steps)
        if not is_whole or _points(b) < MIN_STEPS or len(steps) < 2:
            continue
        if (b.iters[steps[0]].extent.const or 0) < CHOICE * threads:
            continue
        trial = sch.copy()
        with suppress(ScheduleError):
            loops = trial.get_loops(trial.get_block(b.name))
            first = loops[steps[0]]
            # Outermost, so that rows and the reduction over them are nests of their own.
            trial.reorder(first, *(x for x in loops if x is not first))
            trial.rfactor(first, -1)
            sch.adopt(trial)


def share_out(sch: Schedule, threads: int) -> list[Constraint]:
    """Makes the outermost loops of every nest that is worth it one parallel loop; answers what keeps the
    threads busy. A nest whose iterations depend on each other stays as it is."""
    constraints: list[Constraint] = []
    for root in [s for s in sch.func.body if type(s) is For]:
        if _is_worth_it(root):
            constraints += _shared_out(sch, root, threads)
    return constraints


def _is_worth_it(root: For) -> bool:
    return any(_points(b) >= (MIN_STEPS if b.is_reduction else MIN_ELEMENTS) for _, b in walk(root.body))


def _points(b: Block) -> int:
    """Its instances, about: the variables that an iteration was split into, all with the smallest tiles."""
    total = 1
    for it in b.iters:
        total *= _largest(it.extent)
    return total


def _shared_out(sch: Schedule, root: For, threads: int) -> list[Constraint]:
    chain = list(_chain(root))
    block = next(b for _, b in walk(root.body))
    for count in _counts(chain, threads):
        trial = sch.copy()
        loops = trial.get_loops(trial.get_block(block.name))
        try:
            loop = trial.fuse(*loops[:count]) if count > 1 else loops[0]
            trial.parallel(loop)
        except ScheduleError:
            continue
        sch.adopt(trial)
        return _busy(loop, threads)
    return []


def _chain(root: For) -> Iterator[For]:
    """The serial loops from the outermost inwards, each directly inside of the one before."""
    s = root
    while s.kind is LoopKind.SERIAL:
        yield s
        if len(s.body) != 1 or type(s.body[0]) is not For:
            return
        s = s.body[0]


def _counts(chain: list[For], threads: int) -> list[int]:
    """How many loops to fuse, the best number first: so many that there is a choice, then fewer."""
    most, total = 0, 1
    for n, f in enumerate(chain):
        if total >= CHOICE * threads:
            break
        total *= _largest(f.var.extent)
        most = n + 1
    return list(range(most, 0, -1)) if total > 1 else []


def _largest(extent: Poly) -> int:
    """The iterations with the smallest tiles."""
    values: dict[Atom, Poly] = {k: poly(min(k.domain)) for k in extent.knobs()}
    return substitute(extent, values).const or 1


def _busy(loop: LoopRV, threads: int) -> list[Constraint]:
    """At most that much idle time, or what the smallest tiles come to where that is more."""
    extent = loop.var.extent
    most = _largest(extent)
    if not extent.knobs() or most < threads:
        return []
    allowed = max(IDLE + 1, -(-IDLE * -(-most // threads) * threads // most))
    rounds = ceil_div(extent, threads) * threads
    return [Constraint("threads left idle", rounds * IDLE - extent * allowed, 0)]
