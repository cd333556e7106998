"""The rule for what is put together from phases: elements a stride apart come from neighbours of one array,
as in `Y[j] = P[j % 2, j // 2]`.

The places of a phase run in lanes, the phases one after the other around them, and what they give is written
side by side.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from ..arith import Fn
from ..ir import Block, PrimFunc, loads
from ..schedule import Schedule
from ..target import Target
from .groups import Group
from .lanes import lane_widths
from .sketch import Constraint

#: Bytes of the elements of all phases at one place, which code generation writes as one integer.
WORDS = (2, 4, 8)


def stride_of_phases(b: Block) -> int | None:
    """By what all reads that take the last written dimension apart divide it; None where there is none."""
    if not b.indices or not b.iters or b.indices[-1].atom is not b.iters[-1]:
        return None
    last = b.iters[-1]
    found = set[int | None]()
    for a in {a for x in loads(b.value) for i in x.indices for a in i.atoms()}:
        if isinstance(a, Fn) and last in a.vars:
            single = a.op == "floordiv" and a.a.coefficient(last) == 1
            found.add(a.b.const if single else None)
    return next(iter(found)) if len(found) == 1 else None


@dataclass(frozen=True, slots=True)
class PutTogether:
    """Lanes over the places of a phase, around them the phases. stride: how many there are."""

    stride: int
    name: str = "phases side by side"
    fallback: bool = False

    def apply(self, sch: Schedule, group: Group, target: Target, tag: str) -> list[Constraint]:
        """Applies the structure; answers what the knobs must satisfy: nothing."""
        block = sch.get_block(group.main)
        loop = sch.get_loops(block)[-1]
        whole = (loop.var.extent.const or 0) % self.stride == 0
        places, phases = sch.split(loop, [None, self.stride], tail="mask" if whole else "partition")
        b = sch.func.block(block.name)[1]
        lanes = sch.sample_categorical(lane_widths(target, b, places.var.extent), name=f"{tag}vl")
        places, lane = sch.split(places, [None, lanes], overlap=1)
        sch.reorder(places, phases, lane)
        sch.unroll(phases)
        sch.vectorize(lane)
        return []


def put_together(func: PrimFunc, group: Group, target: Target) -> Iterator[PutTogether]:
    """The structure of an elementwise block that reads phases, where there are few."""
    b = func.block(group.main)[1]
    if b.is_reduction or b.init is not None:
        return
    stride = stride_of_phases(b)
    if stride is None or b.buffer.dtype.bytes * stride not in WORDS or stride < 2:
        return
    if (b.iters[-1].extent.const or 0) >= 2 * stride:
        yield PutTogether(stride)
