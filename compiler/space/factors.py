"""Domains of tile factors, and what bounds the tiles."""

from __future__ import annotations

from itertools import product as cartesian

from ..arith import Poly, evaluate
from ..target import Target

TILES = (1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 64)
REGISTERS = (1, 2, 3, 4, 5, 6, 7, 8, 10, 12, 13, 14)
#: Vector registers that are few: those of AVX2.
FEW_REGISTERS = 16
#: Emitted multiply-adds of one unrolled body; more only costs compile time and instruction cache.
MAX_BODY = 260
#: Operations of unrolled code, of which each function counts for several: up to 3 instructions each of floats
#: and 5 of doubles.
MAX_CODE = 800
#: Independent accumulators that hide the latency of a fused multiply-add (4 cycles, 2 a cycle).
MIN_ACCUMULATORS = 8
#: Loads of one step of the reduction for its multiply-adds, in tenths: two of each a cycle, and loads that
#: cross a cache line count twice.
MAX_LOADS = 7
#: Share of the places that may be computed twice, or masked, for a register tile.
WASTE = 1.1
#: Channels up to this prime number are unrolled whole.
MAX_PRIME = 13
#: Packed panels larger than this are better not packed, however large the last cache is.
MAX_PANEL_BYTES = 4 << 20


def panel_bytes(target: Target) -> int:
    """Bytes of a packed panel that stays in the last cache of a target."""
    return min(MAX_PANEL_BYTES, target.l3 or target.l2 or target.l1d or MAX_PANEL_BYTES)


def divisors(n: int, at_most: int) -> tuple[int, ...]:
    """Ascending."""
    return tuple(d for d in range(1, min(n, at_most) + 1) if n % d == 0)


def blocks(sizes: tuple[int, ...], most: int = 6) -> tuple[int, ...]:
    """At most so many of the ascending sizes, spread evenly, the largest among them."""
    if len(sizes) <= most:
        return sizes
    return tuple(sizes[-1 - n * (len(sizes) - 1) // (most - 1)] for n in reversed(range(most)))


def fit(domain: tuple[int, ...], extent: Poly) -> tuple[int, ...]:
    """The values of the domain that are no larger than the extent."""
    return tuple(x for x in domain if x <= (extent.const or 1)) or (1,)


def even_parts(extent: int, domain: tuple[int, ...]) -> tuple[int, ...]:
    """The values of the domain of which little more than the extent is covered by whole pieces."""
    fitting = [d for d in domain if d <= extent] or [1]
    covered = {d: -(-extent // d) * d for d in fitting}
    least = min(covered[d] for d in fitting if d >= min(4, max(fitting)))
    return tuple(d for d in fitting if covered[d] <= max(least, WASTE * extent))


def steps_unrolled(extent: int) -> tuple[int, ...]:
    """Divisors, so that no step is masked; of a short prime, the whole."""
    found = divisors(extent, 8)
    return found if len(found) > 1 or extent > MAX_PRIME else (1, extent)


def smallest(extent: Poly) -> int:
    """The smallest value over the knobs' domains."""
    knobs = sorted(extent.knobs(), key=lambda k: k.name)
    every = cartesian(*(k.domain for k in knobs))
    return min(evaluate(extent, dict(zip(knobs, values, strict=True))) for values in every)


def tile_registers(registers: int) -> int:
    """How many of a target's vector registers a tile and what it reads may fill: of many, one is left for
    what moves meanwhile; 4 rows of 3 vectors fill all of few, and are the fastest there."""
    return registers if registers <= FEW_REGISTERS else registers - 1


def reuses(rows: int, vectors: int, registers: int) -> bool:
    """Whether some tile of at most so many rows and vectors needs few loads for each multiply-add."""
    return any(
        10 * (r + v) <= MAX_LOADS * r * v and r * v + v + 1 <= registers
        for r in REGISTERS
        for v in REGISTERS
        if r <= rows and v <= vectors
    )


def fitting(rows: int, vectors: int, registers: int) -> int:
    """The most accumulators of a tile of at most so many rows and vectors that leaves registers for its
    operands."""
    return max(
        r * v
        for r in REGISTERS
        for v in REGISTERS
        if r <= rows and v <= vectors and r * v + v + 1 <= registers
    )


def reachable(most: int) -> int:
    """A number of accumulators that some register tile of at most `most` vectors surely reaches."""
    return (
        most
        if most < 4
        else min(most, MIN_ACCUMULATORS) // 2
        if most < 2 * MIN_ACCUMULATORS
        else MIN_ACCUMULATORS
    )
