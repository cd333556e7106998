"""Arrays to run a program on: random inputs, poisoned outputs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ..ir.bind import bind_sizes, sizes_from
from ..ir.dtype import DType
from ..ir.expr import Buffer
from ..ir.func import PrimFunc

Array = np.ndarray[Any, np.dtype[Any]]

#: Every byte of an output of integers or booleans before a run.
POISON = 0xA5
#: Integers are drawn from -SPAN to SPAN (from 0 when unsigned): sums of some thousand products stay exact in
#: float32 and int32.
SPAN = 8


def shape_of(buffer: Buffer) -> tuple[int, ...]:
    """The extents as integers. Raises ValueError while a knob is open."""
    shape = tuple(p.const for p in buffer.shape)
    if any(n is None for n in shape):
        raise ValueError(f"the buffer {buffer.name!r} has an open shape: {buffer.shape}")
    return tuple(n for n in shape if n is not None)


def poisoned(buffer: Buffer) -> Array:
    """An array that no computation leaves behind by chance: NaN, or bytes 0xA5."""
    out = np.empty(shape_of(buffer), buffer.dtype.numpy)
    if buffer.dtype.is_float:
        out.fill(np.nan)
    else:
        # Flat first: an array without dimensions has no view of another width.
        out.reshape(-1).view(np.uint8)[:] = POISON
    return out


def random_inputs(func: PrimFunc, seed: int) -> list[Array]:
    """One array for each parameter, the same on every platform for one seed: floats standard normal, integers
    small, outputs poisoned."""
    outputs = func.outputs
    return [poisoned(p) if p in outputs else _random(p, seed, n) for n, p in enumerate(func.params)]


def _random(buffer: Buffer, seed: int, number: int) -> Array:
    # A stream for each parameter: the contents of one do not depend on the size of those before it.
    rng = np.random.Generator(np.random.PCG64(np.random.SeedSequence([seed, number])))
    shape, dtype = shape_of(buffer), buffer.dtype
    if dtype.is_float:
        return rng.standard_normal(shape).astype(dtype.numpy)
    low, high = _range(dtype)
    return rng.integers(low, high + 1, shape, dtype=np.int64).astype(dtype.numpy)


def _range(dtype: DType) -> tuple[int, int]:
    if dtype.is_bool:
        return 0, 1
    return (0 if dtype.code == "uint" else -SPAN), SPAN


def bound_to(func: PrimFunc, arrays: Sequence[Array]) -> PrimFunc:
    """The program with its sizes read off the arrays. Raises ValueError where an argument that tells one is
    missing."""
    return bind_sizes(func, sizes_from(func, [a.shape for a in arrays])) if func.sizes else func


def check_arrays(func: PrimFunc, arrays: Sequence[Array]) -> None:
    """Raises ValueError unless there is one array of the right dtype and shape for each parameter."""
    if len(arrays) != len(func.params):
        raise ValueError(f"{func.name!r} has {len(func.params)} parameters, got {len(arrays)} arrays")
    for p, a in zip(func.params, arrays, strict=True):
        if a.dtype != p.dtype.numpy or a.shape != shape_of(p):
            raise ValueError(
                f"the parameter {p.name!r} is {p.dtype}{list(shape_of(p))}, got {a.dtype}{list(a.shape)}"
            )
