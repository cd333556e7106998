"""Kernels with constants, packed ahead of their calls."""

from __future__ import annotations

from typing import Any

import numpy as np

from tilewright import te
from tilewright.compiler.ir import PrimFunc
from tilewright.compiler.runtime.arrays import numpy_dtype
from tilewright.compiler.schedule import Schedule

Array = np.ndarray[Any, np.dtype[Any]]


def affine(m: int = 5, n: int = 13, k: int = 7, dtype: str = "float32", name: str = "affine") -> PrimFunc:
    """Y = X W + B; W and B constant. B is not packed by `packed`."""
    x = te.placeholder((m, k), dtype, name="X")
    w, b = (
        te.placeholder((k, n), dtype, name="W", constant=True),
        te.placeholder((n,), dtype, name="B", constant=True),
    )
    r = te.reduce_axis((0, k), name="k")
    c = te.compute((m, n), lambda i, j: te.sum(x[i, r] * w[r, j], axis=r, dtype=dtype), name="C")
    y = te.compute((m, n), lambda i, j: c[i, j] + b[j], name="Y")
    return te.create_prim_func([x, w, b, y], name=name)


def packed(func: PrimFunc, *, lanes: int = 4) -> Schedule:
    """Tiles of two rows and some lanes, whose weights lie together; tails of both."""
    sch = Schedule(func)
    c, y = sch.get_block("C"), sch.get_block("Y")
    i, j, k = sch.get_loops(c)
    copy = sch.cache_read(c, 1, "local")
    sch.set_scope(c, 0, "register")
    i0, i1 = sch.split(i, [None, 2])
    j0, j1, j2 = sch.split(j, [None, 2, lanes], overlap=1)
    sch.reorder(i0, j0, j1, k, i1, j2)
    sch.unroll(i1)
    sch.vectorize(j2)
    rows, columns = sch.reverse_compute_at(y, j1)
    sch.unroll(rows)
    sch.vectorize(columns)
    sch.compute_at(copy, j1)
    sch.compute_ahead(copy)
    sch.decompose_reduction(c, k)
    return sch


def inputs(m: int = 5, n: int = 13, k: int = 7, dtype: str = "float32", seed: int = 0) -> tuple[Array, ...]:
    """X, W, B and X W + B, of small integers, which every dtype adds up exactly."""
    rng = np.random.default_rng(seed)
    x, w, b = (rng.integers(-2, 3, s).astype(numpy_dtype(dtype)) for s in ((m, k), (k, n), (n,)))
    y = (x.astype("f8") @ w.astype("f8") + b.astype("f8")).astype(numpy_dtype(dtype))
    return x, w, b, y


def blank(y: Array) -> Array:
    return np.full_like(y, 99)
