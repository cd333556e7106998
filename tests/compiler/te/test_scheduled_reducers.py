"""Reductions by and, or and xor, places and several outputs under schedules: vectors, unrolled accumulators,
registers, decomposed inits."""

import numpy as np
import pytest

from tilewright.compiler import interpret, te
from tilewright.compiler.build import build
from tilewright.compiler.schedule import Schedule

RNG = np.random.default_rng(5)


def columns(op, dtype, rows=7, width=21):
    X = te.placeholder((rows, width), dtype, name="X")
    k = te.reduce_axis((0, rows), name="k")
    y = te.compute((width,), lambda j: getattr(te, op)(X[k, j], axis=k), name="Y")
    return te.create_prim_func([X, y], name="f")


def vectors(s):
    j, k = s.get_loops(s.get_block("Y"))
    outer, lanes = s.split(j, [None, 8])
    s.reorder(outer, k, lanes)
    s.vectorize(lanes)


def unrolled_steps(s):
    _, k = s.get_loops(s.get_block("Y"))
    _, inner = s.split(k, [None, 3])
    s.unroll(inner)


def registers(s):
    block = s.get_block("Y")
    written = s.cache_write(block, 0, "register")
    j, k = s.get_loops(block)
    outer, lanes = s.split(j, [None, 4])
    s.reorder(outer, k, lanes)
    s.vectorize(lanes)
    s.vectorize(s.reverse_compute_at(written, outer)[0])


def decomposed(s):
    block = s.get_block("Y")
    j, k = s.get_loops(block)
    outer, lanes = s.split(j, [None, 16])
    s.reorder(outer, k, lanes)
    s.decompose_reduction(block, k)
    s.vectorize(lanes)


def names(s):
    return [b.name for _, b in s.func.blocks()]


@pytest.mark.parametrize("schedule", [vectors, unrolled_steps, registers, decomposed])
@pytest.mark.parametrize("dtype", ["bool", "uint8", "int64"])
@pytest.mark.parametrize("op", ["reduce_and", "reduce_or", "reduce_xor"])
def test_a_reduction_of_bits_under(op, dtype, schedule):
    func = columns(op, dtype)
    s = Schedule(func)
    schedule(s)
    x = RNG.random((7, 21)) < 0.8 if dtype == "bool" else RNG.integers(0, 100, (7, 21)).astype(dtype)
    want = getattr(np, op.replace("reduce_", "bitwise_")).reduce(x, axis=0)
    interpreted, built = (np.full(21, 0xA5, np.uint8).astype(dtype) for _ in range(2))
    interpret.run(s.func, [x, interpreted])
    build(s)(x, built)
    assert np.array_equal(interpreted, want) and np.array_equal(built, want)


@pytest.mark.parametrize("op", ["argmin", "argmax"])
def test_a_place_whose_passes_are_vectors(op):
    func = columns(op, "float32", 9, 19)
    s = Schedule(func)
    for name in names(s):
        j, k = s.get_loops(s.get_block(name))
        outer, lanes = s.split(j, [None, 8])
        s.reorder(outer, k, lanes)
        s.vectorize(lanes)
    x = RNG.integers(0, 4, (9, 19)).astype("float32")
    x[3, ::5] = np.nan
    got = np.full(19, -1, "int32")
    build(s)(x, got)
    assert np.array_equal(got, getattr(np, op)(x, axis=0))


@pytest.mark.parametrize("op", ["argmin", "argmax"])
def test_a_place_whose_passes_are_factored(op):
    X = te.placeholder((6, 40), "float32", name="X")
    k = te.reduce_axis((0, 40), name="k")
    y = te.compute((6,), lambda i: getattr(te, op)(X[i, k], axis=k), name="Y")
    s = Schedule(te.create_prim_func([X, y], name="f"))
    for name in names(s):
        _, steps = s.get_loops(s.get_block(name))
        _, lanes = s.split(steps, [None, 8])
        s.rfactor(lanes, 0)
    x = RNG.integers(0, 6, (6, 40)).astype("float32")
    x[2, 7] = np.nan
    got = np.full(6, -1, "int32")
    build(s)(x, got)
    assert np.array_equal(got, getattr(np, op)(x, axis=1))


@pytest.mark.parametrize("op", ["reduce_and", "reduce_or", "reduce_xor"])
@pytest.mark.parametrize("dtype", ["bool", "int8", "uint32"])
def test_a_reduction_of_bits_that_is_factored(op, dtype):
    func = columns(op, dtype, 10, 6)
    s = Schedule(func)
    _, steps = s.get_loops(s.get_block("Y"))
    s.rfactor(s.split(steps, [None, 4])[1], 0)
    x = RNG.random((10, 6)) < 0.8 if dtype == "bool" else RNG.integers(0, 100, (10, 6)).astype(dtype)
    got = np.zeros(6, dtype)
    build(s)(x, got)
    assert np.array_equal(got, getattr(np, op.replace("reduce_", "bitwise_")).reduce(x, axis=0))


def test_the_value_of_a_place_may_be_inlined_into_both_passes():
    X = te.placeholder((6, 24), "float32", name="X")
    k = te.reduce_axis((0, 6), name="k")
    y = te.compute((24,), lambda j: te.argmin(X[k, j] * X[k, j] + X[k, j] * 0.3, axis=k), name="Y")
    s = Schedule(te.create_prim_func([X, y], name="f"))
    s.compute_inline(s.get_block("Y_value"))
    x = RNG.standard_normal((6, 24)).astype("float32")
    got = np.full(24, -1, "int32")
    build(s)(x, got)
    assert np.array_equal(got, (x.astype("float64") ** 2 + x * 0.3).argmin(0))
