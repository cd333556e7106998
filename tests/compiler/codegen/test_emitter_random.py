"""Random tiles of random products and windows, on arrays between unreadable pages."""

import random
from collections.abc import Callable
from typing import Any, Protocol

import numpy as np
import pytest

from tilewright.compiler import te
from tilewright.compiler.ir import PrimFunc
from tilewright.compiler.runtime import Function
from tilewright.compiler.schedule import Schedule
from tilewright.compiler.target import Target

Array = np.ndarray[Any, Any]
PROGRAMS = 8


class Guarded(Protocol):
    def array(self, values: Array, *, at_start: bool = False) -> Array: ...


def product(m: int, n: int, k: int) -> PrimFunc:
    """D = max(A B + bias, 0)."""
    a, b = te.placeholder((m, k), "float32", name="A"), te.placeholder((k, n), "float32", name="B")
    bias, r = te.placeholder((n,), "float32", name="bias"), te.reduce_axis((0, k), name="k")
    c = te.compute((m, n), lambda i, j: te.sum(a[i, r] * b[r, j], axis=r), name="C")
    d = te.compute((m, n), lambda i, j: te.maximum(c[i, j] + bias[j], 0.0), name="D")
    return te.create_prim_func([a, b, bias, d])


def window(m: int, n: int, k: int) -> PrimFunc:
    """D[i, j] = sum over a k x k window of A, padded at the left and above, times W."""
    a, w = te.placeholder((m, n), "float32", name="A"), te.placeholder((k, k), "float32", name="W")
    y, x = te.reduce_axis((0, k), name="y"), te.reduce_axis((0, k), name="x")

    def padded(i: te.Index, j: te.Index) -> te.Value:
        return te.if_then_else(te.all(i >= k - 1, j >= k - 1), a[i - (k - 1), j - (k - 1)], 0.0)

    p = te.compute((m + k - 1, n + k - 1), padded, name="P")
    c = te.compute((m, n), lambda i, j: te.sum(w[y, x] * p[i + y, j + x], axis=[y, x]), name="C")
    d = te.compute((m, n), lambda i, j: c[i, j] * 2.0, name="D")
    return te.create_prim_func([a, w, d])


def tiled(func: PrimFunc, r: random.Random) -> PrimFunc:
    """A register tile with lanes along one of the two axes, and what belongs to it moved inside or not."""
    sch = Schedule(func)
    c = sch.get_block("C")
    if any(b.name == "P" for _, b in func.blocks()) and r.random() < 0.5:
        sch.compute_inline(sch.get_block("P"))
    sch.set_scope(c, 0, "register")
    pack = sch.cache_read(c, 1, r.choice(["global", "local"]), order=r.choice([(0, 1), (1, 0)]))
    i, j, *reduce = sch.get_loops(c)
    lane_axis = r.randrange(2)
    outer, mid, inner = [], [], []
    lanes = r.choice([2, 4, 8, 16, 5, 24])
    for n, loop in enumerate((i, j)):
        factors: list[int | None] = [None, r.choice([1, 2, 3]), r.choice([1, 2, 3, 4])]
        own = [lanes] if n == lane_axis else []
        new = sch.split(loop, factors + own, overlap=r.choice([0, 1 + len(own)]))
        outer.append(new[0])
        mid.append(new[1])
        inner.append(new[2])
        lane = new[3] if own else None
        if lane is not None:
            vector = lane
    steps, unrolled = zip(*(sch.split(x, [None, r.choice([1, 2, 3])]) for x in reduce), strict=True)
    sch.reorder(*outer, *mid, *steps, *unrolled, *inner, vector)
    sch.vectorize(vector)
    for loop in (*unrolled, *inner):
        sch.unroll(loop)
    for n, loop in enumerate(sch.reverse_compute_at(sch.get_block("D"), mid[-1])):
        if n == lane_axis:
            # A loop shorter than the lanes is one vector of its own length.
            width, own_width = vector.var.extent.const, r.choice([lanes, 4, 8])
            loop, lane = sch.split(loop, [None, own_width if width == lanes else width])
            sch.unroll(lane) if r.random() < 0.2 else sch.vectorize(lane)
        sch.unroll(loop)
    if r.random() < 0.7:
        sch.compute_at(pack, r.choice(outer))
    return sch.func


def drawn(r: random.Random) -> PrimFunc:
    """A random tile of a random program."""
    m, n, k = r.randint(1, 20), r.randint(1, 60), r.randint(1, 5)
    return tiled(r.choice([product, window])(m, n, k), r)


def computes_what_numpy_does(
    module: Function, r: random.Random, rng: np.random.Generator, guarded: Guarded
) -> None:
    """On arrays that begin or end at an unreadable page."""
    arrays = [
        guarded.array(
            np.full(p.shape, np.nan, "f4") if p.is_output else rng.standard_normal(p.shape).astype("f4"),
            at_start=r.random() < 0.5,
        )
        for p in module.params
    ]
    module(*arrays)
    np.testing.assert_allclose(arrays[-1], reference(*arrays[:-1]), rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("target", ["llvm", "llvm -mcpu=x86-64-v3", "llvm -mcpu=x86-64 -math=strict"])
@pytest.mark.parametrize("seed", range(5))
def test_a_random_tile_computes_what_numpy_does_and_stays_inside_its_arrays(
    built: Callable[..., Function], guarded: Guarded, seed: int, target: str
) -> None:
    r, rng = random.Random(f"{seed} {target}"), np.random.default_rng(seed)
    for _ in range(PROGRAMS):
        module = built(drawn(r), Target.parse(target), versioned=r.random() < 0.7)
        computes_what_numpy_does(module, r, rng, guarded)


@pytest.mark.parametrize("options", ["", "-mcpu=x86-64 -math=strict"])
def test_so_it_does_by_each_code_generator(
    batch: Callable[..., list[Function]], guarded: Guarded, options: str
) -> None:
    r, rng = random.Random(options), np.random.default_rng(0)
    for module in batch([drawn(r) for _ in range(PROGRAMS)], options):
        computes_what_numpy_does(module, r, rng, guarded)


@pytest.mark.slow
@pytest.mark.timeout(600)
@pytest.mark.parametrize("options", ["", "-mcpu=x86-64-v3", "-mcpu=x86-64 -math=strict"])
@pytest.mark.parametrize("seed", range(5))
def test_so_do_many_by_each_code_generator(
    batch: Callable[..., list[Function]], guarded: Guarded, options: str, seed: int
) -> None:
    r, rng = random.Random(f"{seed} {options}"), np.random.default_rng(seed)
    for module in batch([drawn(r) for _ in range(10 * PROGRAMS)], options, seed > 1):
        computes_what_numpy_does(module, r, rng, guarded)


def reference(a: Array, w: Array, bias: Array | None = None) -> Array:
    """What the two programs compute, in float64."""
    x = a.astype("f8")
    if bias is not None:
        return np.asarray(np.maximum(x @ w + bias, 0))
    k = w.shape[0]
    padded = np.pad(x, ((k - 1, 0), (k - 1, 0)))
    return 2 * sum(
        w[y, z] * padded[y : y + a.shape[0], z : z + a.shape[1]] for y in range(k) for z in range(k)
    )  # type: ignore[return-value]


def test_a_tile_whose_epilogue_is_cut_by_unrolled_loops_alone(
    built: Callable[..., Function], guarded: Guarded
) -> None:
    """The epilogue takes pieces of four from a tile of six: two of their elements exist in no tile."""
    sch = Schedule(product(13, 32, 5))
    c = sch.get_block("C")
    sch.set_scope(c, 0, "register")
    i, j, k = sch.get_loops(c)
    i0, i1 = sch.split(i, [None, 2], overlap=1)
    j0, j1, j2 = sch.split(j, [None, 3, 2])
    sch.reorder(i0, j0, k, i1, j1, j2)
    for loop in (i1, j1):
        sch.unroll(loop)
    sch.vectorize(j2)
    rows, columns = sch.reverse_compute_at(sch.get_block("D"), j0)
    for loop in (rows, *sch.split(columns, [None, 4])):
        sch.unroll(loop)
    r, rng = random.Random(0), np.random.default_rng(0)
    for versioned in (True, False):
        module = built(sch.func, Target.parse("llvm"), versioned=versioned)
        computes_what_numpy_does(module, r, rng, guarded)
