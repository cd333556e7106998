"""Reductions across the lanes of register vectors: rows in partial results, for each reducer and dtype."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from tilewright import te
from tilewright.compiler.codegen.errors import LoweringError
from tilewright.compiler.codegen.lower import lower
from tilewright.compiler.ir import DType, PrimFunc
from tilewright.compiler.runtime import Function
from tilewright.compiler.schedule import Schedule, ScheduleError
from tilewright.compiler.target import Target

Array = np.ndarray[Any, Any]
Build = Callable[..., Function]

FLOATS = ("float16", "bfloat16", "float32", "float64")
INTEGERS = ("int8", "uint8", "int32", "uint64")
ROWS = 3


def rows(word: str, dtype: str, n: int) -> PrimFunc:
    """out[i] = the reduction of A[i, :]."""
    a = te.placeholder((ROWS, n), dtype, name="A")
    k = te.reduce_axis((0, n), name="k")
    reduce = getattr(te, word)
    return te.create_prim_func([a, te.compute((ROWS,), lambda i: reduce(a[i, k], axis=k), name="out")])


def in_lanes(func: PrimFunc, lanes: int, vectors: int) -> Schedule:
    """Vectors of partial results beside each other, added up to one, whose lanes are combined."""
    sch = Schedule(func)
    name = next(b.name for _, b in func.blocks() if b.init is not None)
    block = sch.get_block(name)
    _, _, lane = sch.split(sch.get_loops(block)[1], [None, vectors, lanes])
    parts = sch.rfactor(lane, 1)
    vectors_of_parts = sch.rfactor(sch.get_loops(parts)[2], 1)
    for b in (parts, vectors_of_parts):
        sch.set_scope(b, 0, "register")
    for b in (vectors_of_parts, parts):
        unrolled, lane = sch.get_loops(b)[-2:]
        sch.unroll(unrolled)
        sch.vectorize(lane)
    sch.vectorize(sch.get_loops(block)[-1])
    return sch


@pytest.mark.parametrize("n", [1, 3, 37, 127])
@pytest.mark.parametrize(("lanes", "vectors"), [(4, 2), (16, 4), (40, 1)])
@pytest.mark.parametrize("dtype", FLOATS)
def test_sums_of_floats(built: Build, dtype: str, lanes: int, vectors: int, n: int) -> None:
    x = np.random.default_rng(0).integers(-8, 8, (ROWS, n)).astype(DType.parse(dtype).numpy)
    out = np.full(ROWS, 99, x.dtype)
    built(in_lanes(rows("sum", dtype, n), lanes, vectors).func)(x, out)
    np.testing.assert_array_equal(out, x.astype(np.float64).sum(1).astype(x.dtype))


@pytest.mark.parametrize("n", [1, 3, 37, 127])
@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("word", ["max", "min"])
def test_extremes_hand_on_nan_from_every_lane(built: Build, word: str, dtype: str, n: int) -> None:
    kernel = built(in_lanes(rows(word, dtype, n), 16, 2).func)
    for place in range(n):
        x = np.random.default_rng(0).standard_normal((ROWS, n)).astype(DType.parse(dtype).numpy)
        x[:, place] = np.nan, np.inf, -np.inf
        out = np.zeros(ROWS, x.dtype)
        kernel(x, out)
        want = getattr(np, word)(x.astype(np.float64), axis=1)
        np.testing.assert_array_equal(out.astype(np.float64), want)


@pytest.mark.parametrize("n", [1, 37])
@pytest.mark.parametrize("dtype", INTEGERS)
@pytest.mark.parametrize("word", ["sum", "prod", "max", "min"])
def test_integers_wrap_around(built: Build, word: str, dtype: str, n: int) -> None:
    i = np.iinfo(dtype)
    x = np.random.default_rng(1).integers(i.min, i.max, (ROWS, n), dtype, endpoint=True)
    with np.errstate(all="ignore"):
        want = getattr(np, word)(x, axis=1, **({"dtype": dtype} if word in ("sum", "prod") else {}))
    out = np.zeros(ROWS, dtype)
    built(in_lanes(rows(word, dtype, n), 16, 2).func)(x, out)
    np.testing.assert_array_equal(out, want)


@pytest.mark.parametrize("target", ["llvm -mcpu=x86-64-v3", "llvm -mcpu=x86-64"])
def test_narrower_registers_combine_fewer_lanes(built: Build, target: str) -> None:
    x = np.random.default_rng(0).integers(-8, 8, (ROWS, 127)).astype(np.float32)
    out = np.zeros(ROWS, np.float32)
    built(in_lanes(rows("sum", "float32", 127), 16, 2).func, Target.parse(target))(x, out)
    np.testing.assert_array_equal(out, x.sum(1))


def test_the_lanes_are_halved_until_one_is_left(host: Target) -> None:
    text = lower(in_lanes(rows("sum", "float32", 64), 4, 1).func, host).text
    tree = [w for w in text.split() if w in ("shufflevector", "extractelement")]
    assert tree == ["shufflevector"] * 2 + ["extractelement"] * 2


def test_parts_in_memory_are_no_lanes(host: Target) -> None:
    sch = Schedule(rows("sum", "float32", 64))
    block = sch.get_block("out")
    _, lane = sch.split(sch.get_loops(block)[1], [None, 16])
    sch.rfactor(lane, 1)
    with pytest.raises(ScheduleError) as e:
        sch.vectorize(sch.get_loops(block)[-1])
    assert e.value.reason == (
        f"loop '{sch.get_loops(block)[-1].var.name}' carries a reduction into out and cannot be a vector loop"
    )


def test_parts_moved_to_memory_later_have_no_code(built: Build) -> None:
    sch = in_lanes(rows("sum", "float32", 64), 16, 1)
    parts = next(b.name for _, b in sch.func.blocks() if b.buffer.name == "out_rf" and b.init is not None)
    sch.set_scope(sch.get_block(parts), 0, "local")
    with pytest.raises(LoweringError, match="carries a reduction into out and cannot be a vector loop"):
        built(sch.func)
