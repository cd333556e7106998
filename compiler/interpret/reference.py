"""What a program must compute."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ..ir.dtype import DType
from ..ir.func import PrimFunc
from ..ir.verify import verify
from .approx import Approx
from .blocks import Memory, run_block
from .check import Expected
from .inputs import Array, bound_to, check_arrays, poisoned
from .places import places_of
from .plain import plain_problem


class NotPlain(ValueError):
    """A scheduled program where an unscheduled one is needed; `run` interprets those."""


def expected(func: PrimFunc, arrays: Sequence[Array]) -> Expected:
    """The outputs of an unscheduled program on the inputs among `arrays` (one array for each parameter; none
    is written), in float64 for floats and exact for integers, with the tolerance of each element. Sizes are
    read off the arrays.

    Raises NotPlain for a scheduled program, VerifyError for one that is not well formed, ValueError for
    arrays that do not fit.
    """
    func = bound_to(func, arrays)
    verify(func)
    problem = plain_problem(func)
    if problem is not None:
        raise NotPlain(f"{func.name!r} is not an unscheduled program: {problem}")
    check_arrays(func, arrays)
    memory: Memory = {p: Approx(_stored(a, p.dtype)) for p, a in zip(func.params, arrays, strict=True)}
    for b in func.allocs:
        memory[b] = Approx(_stored(poisoned(b), b.dtype))
    places = places_of(func)
    with np.errstate(all="ignore"):
        for _, block in func.blocks():
            run_block(block, memory, is_place=block in places)
    outputs = func.outputs
    return Expected(
        tuple(memory[o].value for o in outputs),
        tuple(_tolerance(memory[o]) for o in outputs),
        tuple(o.name for o in outputs),
        tuple(func.params.index(o) for o in outputs),
    )


def _stored(a: Array, dtype: DType) -> Array:
    return np.array(a, np.float64 if dtype.is_float else a.dtype, order="C")


def _tolerance(x: Approx) -> Array:
    if x.error is None:
        return np.zeros(x.value.shape)
    if x.error.dtype == np.bool_:
        # A boolean that may be either way decides nothing.
        return np.where(x.error, np.inf, 0.0)
    e = x.error if x.error.dtype == np.float64 else x.error.astype(np.float64)
    e[np.isnan(e)] = 0.0
    return e
