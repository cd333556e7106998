"""Unrolled loops around lanes whose iterations belong together: their elements lie next to each other."""

from __future__ import annotations

from dataclasses import dataclass

from ...ir import Block, For, LoopKind, Stmt, loads
from .builder import Builder
from .dtypes import vector_type

#: Bits of an integer that holds the elements of all steps.
_WORDS = (16, 32, 64)


@dataclass(frozen=True, slots=True, eq=False)
class StepNest:
    """One block in lanes, under unrolled loops of which `steps` is the outermost. moves: whether the block
    writes elements of memory that may lie next to each other."""

    steps: For
    around: tuple[For, ...]
    lane: For
    block: Block
    moves: bool

    @property
    def count(self) -> int:
        return self.steps.var.extent.const or 0


def step_nest(steps: For) -> StepNest | None:
    """The nest of an unrolled loop; None where its iterations do not belong together."""
    chain: list[For] = []
    s: Stmt = steps
    while type(s) is For and s.kind is LoopKind.UNROLLED and len(s.body) == 1:
        chain.append(s)
        s = s.body[0]
    if type(s) is not For or s.kind is not LoopKind.VECTORIZED or len(s.body) != 1:
        return None
    b = s.body[0]
    if type(b) is not Block or b.init is not None or any(steps.var in p.vars() for p in b.predicates):
        return None
    count = steps.var.extent.const or 0
    memory = b.buffer.scope != "register" and all(x.buffer is not b.buffer for x in loads(b.value))
    moves = memory and count > 1 and 8 * b.buffer.dtype.bytes * count in _WORDS
    moves = moves and bool(b.indices) and b.indices[-1].coefficient(steps.var) == 1
    return StepNest(steps, tuple(chain[1:]), s, b, moves)


def interleaved(b: Builder, parts: list[str], element: str, lanes: int) -> str:
    """Vectors of the steps, each over the lanes, as one integer for each lane: the first step in the lowest
    bits. There are 2, 4 or 8 steps."""
    count = len(parts)
    width = lanes
    while len(parts) > 1:
        kind = vector_type(element, width)
        mask = f"<{2 * width} x i32> <" + ", ".join(f"i32 {n}" for n in range(2 * width)) + ">"
        pairs = zip(parts[::2], parts[1::2], strict=True)
        parts = [b.shared(f"shufflevector {kind} {x}, {kind} {y}, {mask}") for x, y in pairs]
        width *= 2
    kind = vector_type(element, width)
    order = ", ".join(f"i32 {lanes * s + n}" for n in range(lanes) for s in range(count))
    mixed = b.shared(f"shufflevector {kind} {parts[0]}, {kind} poison, <{width} x i32> <{order}>")
    bits = {"float": 32, "double": 64}.get(element) or int(element[1:])
    return b.shared(f"bitcast {kind} {mixed} to {vector_type(f'i{bits * count}', lanes)}")
