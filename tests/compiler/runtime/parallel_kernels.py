"""Kernels with parallel loops, also for processes that the tests start."""

import numpy as np

import tilewright as tw
from tilewright import te
from tilewright.compiler.schedule import Schedule


def doubled(m: int, n: int) -> Schedule:
    """B = 2 A, its rows in parallel."""
    a = te.placeholder((m, n), "float32", name="A")
    b = te.compute((m, n), lambda i, j: a[i, j] * 2.0, name="B")
    sch = Schedule(te.create_prim_func([a, b], name="doubled"))
    sch.parallel(sch.get_loops(sch.get_block("B"))[0])
    return sch


def called(seed: int) -> bool:
    """Whether a kernel that is built here gives what it should."""
    a = np.random.default_rng(seed).random((40, 21), np.float32)
    b = np.empty_like(a)
    tw.build(doubled(40, 21), "llvm -num-threads=3")(a, b)
    return np.array_equal(b, 2 * a)
