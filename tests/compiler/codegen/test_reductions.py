"""Reductions over NaN, infinities, denormal numbers and integers that overflow, in every kind of loop."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from tilewright import te
from tilewright.compiler.ir import DType, PrimFunc
from tilewright.compiler.runtime import Module
from tilewright.compiler.schedule import Schedule
from tilewright.compiler.target import Target
from tilewright.compiler.target.runs import missing_features

Array = np.ndarray[Any, Any]
Build = Callable[..., Module]

TARGETS = tuple(
    t for t in ("llvm", "llvm -mcpu=x86-64-v3", "llvm -mcpu=x86-64") if not missing_features(Target.parse(t))
)
FLOATS = ("float16", "bfloat16", "float32", "float64")
INTEGERS = tuple(f"{sign}int{bits}" for sign in ("", "u") for bits in (8, 16, 32, 64))

on_every_processor = pytest.mark.parametrize("target", TARGETS)


def rows(word: str, dtype: str, m: int, n: int) -> PrimFunc:
    """out[j] = the reduction of A[:, j]."""
    a = te.placeholder((m, n), dtype, name="A")
    k = te.reduce_axis((0, m), name="k")
    reduce = getattr(te, word)
    return te.create_prim_func([a, te.compute((n,), lambda j: reduce(a[k, j], axis=k), name="out")])


def schedules(func: PrimFunc) -> list[Schedule]:
    """As it stands; the columns in lanes; the reduction four times unrolled."""
    plain, lanes, unrolled = Schedule(func), Schedule(func), Schedule(func)
    name = next(b.name for _, b in func.blocks() if b.init is not None)
    j, k = lanes.get_loops(lanes.get_block(name))
    lanes.reorder(k, j)
    lanes.vectorize(j)
    _, k = unrolled.get_loops(unrolled.get_block(name))
    unrolled.unroll(unrolled.split(k, [None, 4])[1])
    return [plain, lanes, unrolled]


@on_every_processor
@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("word", ["max", "min"])
def test_extremes_hand_on_nan_from_wherever_it_stands(
    built: Build, word: str, dtype: str, target: str
) -> None:
    kind = DType.parse(dtype).numpy
    x = np.random.default_rng(0).standard_normal((6, 37)).astype(kind)
    for j in range(24):
        x[j % 6, j] = (np.nan, np.inf, -np.inf, -0.0)[j // 6]
    func = rows(word, dtype, 6, 37)
    for sch in schedules(func):
        out = np.zeros(37, kind)
        built(sch.func, Target.parse(target))(x, out)
        want = getattr(np, word)(x.astype(np.float64), axis=0)
        np.testing.assert_array_equal(out.astype(np.float64), want)


@on_every_processor
@pytest.mark.parametrize("dtype", FLOATS)
def test_denormal_numbers_are_kept(built: Build, dtype: str, target: str) -> None:
    kind = DType.parse(dtype).numpy
    bits = (1 + np.arange(6 * 37) % 19).astype(f"u{kind.itemsize}").reshape(6, 37)
    x = bits.view(kind)
    for word in ("sum", "max"):
        for sch in schedules(rows(word, dtype, 6, 37)):
            out = np.zeros(37, kind)
            built(sch.func, Target.parse(target))(x, out)
            want = bits.sum(0) if word == "sum" else bits.max(0)
            np.testing.assert_array_equal(out.view(bits.dtype), want.astype(bits.dtype))


@on_every_processor
@pytest.mark.parametrize("dtype", INTEGERS)
@pytest.mark.parametrize("word", ["sum", "prod", "max", "min"])
def test_integers_wrap_around_once_at_the_end(built: Build, word: str, dtype: str, target: str) -> None:
    i = np.iinfo(dtype)
    x = np.random.default_rng(1).integers(i.min, i.max, (6, 37), dtype, endpoint=True)
    x[:, 0], x[:, 1] = i.max, i.min
    with np.errstate(all="ignore"):
        want = getattr(np, word)(x, axis=0, **({"dtype": dtype} if word in ("sum", "prod") else {}))
    for sch in schedules(rows(word, dtype, 6, 37)):
        out = np.zeros(37, dtype)
        built(sch.func, Target.parse(target))(x, out)
        np.testing.assert_array_equal(out, want)


@pytest.mark.parametrize("vector", [False, True], ids=["scalar", "vector"])
def test_a_bool_of_any_byte_is_true_and_leaves_as_one(
    elementwise: Callable[..., Array], vector: bool
) -> None:
    x = np.arange(37, dtype=np.uint8).view(np.bool_)
    got = elementwise(lambda a: a, "bool", x, vector=vector)
    np.testing.assert_array_equal(got.view(np.uint8), np.minimum(np.arange(37), 1))
