"""The least time that a machine's peak and bandwidths leave to a workload."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import pairwise

from tilewright.compiler.ir import PrimFunc, flop_count


@dataclass(frozen=True, slots=True)
class Limits:
    """peaks: operations a second by dtype of the inputs. capacity: bytes of each cache from the first on, 0
    for memory. bandwidth: bytes a second of each level, by kind of stream (`read`, `triad`, `copy`)."""

    peaks: Mapping[str, float]
    capacity: Mapping[str, int]
    bandwidth: Mapping[str, Mapping[str, float]]

    def level(self, size: int) -> str:
        """The first cache that holds a working set of `size` bytes, or memory."""
        return next((n for n, room in self.capacity.items() if not room or size <= room), "memory")

    def rate(self, level: str, written: float) -> float:
        """Bytes a second of a mix of which the share `written` is stores. Time a byte is linear between what
        was measured: read 0, triad 1/3, copy 1/2; beyond it is that of copy."""
        b = self.bandwidth[level]
        points = [(0.0, 1 / b["read"]), (1 / 3, 1 / b["triad"]), (1 / 2, 1 / b["copy"])]
        for (x0, y0), (x1, y1) in pairwise(points):
            if written <= x1:
                return 1 / (y0 + (y1 - y0) * (written - x0) / (x1 - x0))
        return b["copy"]


@dataclass(frozen=True, slots=True)
class Demand:
    """What one call needs at least: operations, and each parameter read or written once, in bytes."""

    dtype: str
    flops: int
    read: int
    written: int

    @property
    def size(self) -> int:
        return self.read + self.written

    @property
    def intensity(self) -> float:
        """Operations a byte."""
        return self.flops / self.size

    @staticmethod
    def of(func: PrimFunc) -> Demand:
        """The demand of a program; its dtype is that of the first input."""
        outputs = set(func.outputs)
        sizes = {p: _bytes(p) for p in func.params}
        written = sum(s for p, s in sizes.items() if p in outputs)
        first = next(p for p in func.params if p not in outputs)
        return Demand(str(first.dtype), flop_count(func), sum(sizes.values()) - written, written)


def _bytes(p: object) -> int:
    from tilewright.compiler.ir import Buffer

    assert isinstance(p, Buffer)
    size = p.dtype.bytes
    for e in p.shape:
        size *= e.const or 0
    return size


@dataclass(frozen=True, slots=True)
class Bound:
    """seconds: the least for one call. by: `compute`, or the level whose bandwidth decides. peak:
    operations a second of the dtype. bandwidth: bytes a second of the level where the working set lives."""

    seconds: float
    by: str
    level: str
    peak: float
    bandwidth: float


def bound(demand: Demand, limits: Limits) -> Bound | None:
    """min(peak, intensity x bandwidth of the level where the working set lives), as the time of a call; None
    where the peak of the dtype is not known."""
    dtype = {"uint8": "int8"}.get(demand.dtype, demand.dtype)
    if dtype not in limits.peaks:
        return None
    level = limits.level(demand.size)
    rate = limits.rate(level, demand.written / demand.size)
    compute, move = demand.flops / limits.peaks[dtype], demand.size / rate
    return Bound(
        max(compute, move), "compute" if compute >= move else level, level, limits.peaks[dtype], rate
    )
