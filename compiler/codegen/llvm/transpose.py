"""Columns of a matrix whose rows are vectors in registers, by a network of shuffles of two vectors each."""

from __future__ import annotations

from collections.abc import Sequence

from .builder import Builder
from .dtypes import vector_type

#: With fewer rows than this, moving the elements one by one is no more instructions.
MIN_ROWS = 4
ZERO = "zeroinitializer"


def column(builder: Builder, rows: Sequence[str], lanes: int, lane: int, element: str) -> str:
    """One lane of each row as a vector, whose length is the number of rows rounded up to a power of two; what
    is beyond the rows is 0.

    rows: vectors of `lanes` elements, a power of two. The network takes log2(rows) stages of a shuffle for
    each row; columns of the same rows share it, so that a square of n x n costs n log2(n) shuffles. Each
    stage puts one bit of the row's number into the lane's number, and one bit of the lane's number into the
    row's: those that 128-bit parts of registers exchange first, then whole parts.
    """
    count = 1 << (len(rows) - 1).bit_length()
    if count > lanes:
        half = count // 2
        left = column(builder, rows[:half], lanes, lane, element)
        right = column(builder, [*rows[half:], *[ZERO] * (count - len(rows))], lanes, lane, element)
        mask = ", ".join(f"i32 {n}" for n in range(count))
        kind = vector_type(element, half)
        return builder.shared(f"shufflevector {kind} {left}, {kind} {right}, <{count} x i32> <{mask}>")
    values = [*rows, *[ZERO] * (count - len(rows))]
    width = lanes.bit_length() - 1
    #: What each bit of the lane's number stands for: a bit of the row's number (True, n), or of the column's.
    bits: list[tuple[bool, int]] = [(False, n) for n in range(width)]
    #: The bit of the column's number that each bit of the row's number was exchanged for.
    chosen: list[int] = []
    for stage in range(count.bit_length() - 1):
        order = _order(stage, width)
        values = _stage(builder, values, stage, order, lanes, element)
        chosen.append(bits[order[-1]][1])
        bits = _moved(bits, order, (True, stage))
    row = sum((lane >> bit & 1) << n for n, bit in enumerate(chosen))
    at = [
        sum(((n >> b) if own else (lane >> b)) % 2 << i for i, (own, b) in enumerate(bits))
        for n in range(count)
    ]
    if at == list(range(lanes)):
        return values[row]
    mask = ", ".join(f"i32 {n}" for n in at)
    kind = vector_type(element, lanes)
    return builder.shared(f"shufflevector {kind} {values[row]}, {kind} poison, <{count} x i32> <{mask}>")


def _order(stage: int, width: int) -> list[int]:
    """The bits of the lane's number that move up by one place each, beginning with the place that the row's
    bit takes; the last leaves the lane's number."""
    if stage == 0:
        return [0, 1] if width > 1 else [0]
    if stage == 1:
        return [1]
    return list(range(width - 1, 1, -1))


def _moved(
    bits: list[tuple[bool, int]], order: Sequence[int], new: tuple[bool, int]
) -> list[tuple[bool, int]]:
    out = list(bits)
    for place in order:
        out[place], new = new, bits[place]
    return out


def _stage(
    builder: Builder, values: Sequence[str], stage: int, order: Sequence[int], lanes: int, element: str
) -> list[str]:
    """The rows whose numbers differ in bit `stage`, shuffled into each other in pairs."""
    kind = vector_type(element, lanes)
    masks = []
    for left in (0, 1):
        sources = []
        for lane in range(lanes):
            # The source's lane: each place takes back what had moved to the next one.
            taken = [lane >> p & 1 for p in order]
            source = lane
            for place, bit in zip(order, [*taken[1:], left], strict=True):
                source = source & ~(1 << place) | bit << place
            sources.append(source + lanes * taken[0])
        masks.append(f"<{lanes} x i32> <" + ", ".join(f"i32 {s}" for s in sources) + ">")
    out = list(values)
    for n in range(len(values)):
        other = n | 1 << stage
        if other == n:
            continue
        a, b = values[n], values[other]
        for target, mask in zip((n, other), masks, strict=True):
            out[target] = (
                ZERO if a == b == ZERO else builder.shared(f"shufflevector {kind} {a}, {kind} {b}, {mask}")
            )
    return out
