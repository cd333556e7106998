"""The least time that a program can take on a device, so that a time that was made up is known as such.

It is far below what any schedule reaches: nothing that was measured is ever refused. It stands on what cannot
be saved: each step of a reduction over data that the call brings, and each element of an output, once.
"""

from collections.abc import Mapping
from math import isfinite, prod
from typing import Any

from . import ir
from .arith import Var, poly
from .ir.stmt import Block, IterKind
from .ir.visit import loads, walk_expr

CLOCK = 7e9
"""Cycles a second that no processor reaches: the fastest that was sold does 6.2e9 with one of its cores."""

UNITS = 4
"""Vector instructions a cycle: two 512-bit, three 256-bit or four 128-bit ones are the most there are."""

SLACK = 4.0
"""Work that a schedule may save beyond what is counted here, and how much a reported peak may be too low."""

SELECTED_SLACK = 64.0
"""The same, where a selection may leave out parts, as the padding of a small image does."""

_PROCESSORS = ("llvm", "c")
_CALL_CYCLES = 2
_STORES = 128  # bytes a cycle
_UNKNOWN_BITS = 2048
_VECTOR_BITS = (("avx512f", 512), ("avx", 256), ("sse2", 128), ("sve", 2048), ("neon", 128))


def least_seconds(func: ir.PrimFunc, target: Mapping[str, Any], facts: Mapping[str, Any]) -> float:
    """Seconds that no call of `func` can take less than, with the threads of the target (1 where it says
    none), on the device that `facts` describe.

    `peak_flops` and `peak_bytes_per_second` among the facts, of the whole device, make it closer.
    """
    threads = target.get("num-threads")
    threads = threads if type(threads) is int and threads > 0 else 1
    processor = target.get("kind") in _PROCESSORS and not facts.get("accelerator")
    # Of a device that is no processor nothing is known but what it reports.
    steps = _vector_cycles(func, _vector_bits(facts)) / (UNITS * CLOCK * threads) if processor else 0.0
    peak = _positive(facts.get("peak_flops"))
    if peak is not None:
        steps = max(steps, 2 * compulsory_steps(func) / (SLACK * peak))
    written = sum(prod(poly(n).const or 0 for n in b.shape) * b.dtype.bits / 8 for b in func.outputs)
    stores = written / (_STORES * CLOCK * threads) if processor else 0.0
    bandwidth = _positive(facts.get("peak_bytes_per_second"))
    caches = _positive(facts.get("l3")) or _positive(facts.get("l2")) or 0.0
    # What fits a cache need not reach the memory; of what does not, that part stays there.
    if bandwidth is not None and written > SLACK * caches > 0:
        stores = max(stores, (written - SLACK * caches) / (SLACK * bandwidth))
    return max(_CALL_CYCLES / CLOCK, steps, stores)


def compulsory_steps(func: ir.PrimFunc) -> float:
    """Steps of reductions that no schedule can save: an undercount."""
    return sum(steps for _, steps in _reductions(func))


def _vector_cycles(func: ir.PrimFunc, bits: int) -> float:
    """Vector instructions that the steps take, with the narrowest elements that they read."""
    return sum(steps * narrowest / bits for narrowest, steps in _reductions(func))


def _reductions(func: ir.PrimFunc) -> list[tuple[int, float]]:
    """Of each reduction over data of the call: the bits of the narrowest element read, and the steps."""
    ahead = set(func.constants)  # what is computed of constants alone may be computed before the call
    found: list[tuple[int, float]] = []
    for _, block in func.blocks():
        read = [load.buffer for load in loads(block.value) if load.buffer is not block.buffer]
        if all(buffer in ahead for buffer in read):
            ahead.add(block.buffer)
        elif IterKind.REDUCE in block.kinds:
            selects = any(type(e) is ir.Select for e in walk_expr(block.value)) or _reads_selected(func, read)
            slack = SELECTED_SLACK if selects else SLACK
            found.append((min(buffer.dtype.bits for buffer in read), _points(block) / slack))
    return found


def _reads_selected(func: ir.PrimFunc, read: list[ir.Buffer]) -> bool:
    """Whether one of the buffers is made by a selection, as padded inputs are."""
    makers = (block for _, block in func.blocks() if block.buffer in read)
    return any(type(e) is ir.Select for block in makers for e in walk_expr(block.value))


def _points(block: Block) -> float:
    """Instances of a block over the variables that what it reads depends on: the others may be hoisted."""
    used: set[Var] = set()
    for load in loads(block.value):
        if load.buffer is not block.buffer:
            used.update(*(poly(i).vars() for i in load.indices))
    needed = [it for it in block.iters if it in used]
    return float(prod(poly(it.extent).const or 0 for it in needed))


def _vector_bits(facts: Mapping[str, Any]) -> int:
    features = facts.get("features")
    if not isinstance(features, list) or not features:
        return _UNKNOWN_BITS
    return next((bits for name, bits in _VECTOR_BITS if name in features), _UNKNOWN_BITS)


def _positive(value: object) -> float | None:
    """A finite number above 0, or None."""
    if isinstance(value, bool) or not isinstance(value, int | float) or not isfinite(value) or value <= 0:
        return None
    return float(value)
