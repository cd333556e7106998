"""Functions that return several values: one tensor for each."""

import numpy as np
import pytest

from tilewright.compiler import te
from tilewright.compiler.ir import script
from tilewright.compiler.schedule import Schedule
from tilewright.compiler.space import space_of
from tilewright.compiler.target import Target

RNG = np.random.default_rng(3)


@pytest.fixture
def a():
    return te.placeholder((4, 6), "float32", name="A")


def program(*params):
    return script(te.create_prim_func(list(params), name="f")).splitlines()[1:]


def test_each_value_is_a_stage_of_its_own(a):
    c = te.compute((4, 6), lambda i, j: (a[i, j] + 1.0, a[i, j] > 0.0), name="C")
    assert [repr(t) for t in c] == ["C_v0: float32[4, 6]", "C_v1: bool[4, 6]"]
    assert program(a, *c) == [
        "    for i in range(4):",
        "        for j in range(6):",
        "            C_v0[i, j] = A[i, j] + 1.0",
        "    for i in range(4):",
        "        for j in range(6):",
        "            C_v1[i, j] = (A[i, j] > 0.0)",
    ]


def test_a_tuple_of_one_gives_a_tuple_of_one(a):
    (c,) = te.compute((4, 6), lambda i, j: (a[i, j],), name="C")
    assert c.name == "C_v0"


def test_one_output_alone_may_be_used(a):
    c, _ = te.compute((4, 6), lambda i, j: (a[i, j] + 1.0, a[i, j] > 0.0), name="C")
    assert program(a, c)[-1].strip() == "C_v0[i, j] = A[i, j] + 1.0"


def test_a_reduction_that_two_outputs_use_is_computed_once(a):
    k = te.reduce_axis((0, 6), name="k")

    def element(i, j):
        s = te.sum(a[i, k], axis=k)
        return a[i, j] - s, a[i, j] / s

    c = te.compute((4, 6), element, name="C")
    assert [line for line in program(a, *c) if "=" in line] == [
        "    C_v0_sum = alloc(float32[4])",
        "                    C_v0_sum[i] = 0.0",
        "                C_v0_sum[i] += A[i, k]",
        "            C_v0[i, j] = A[i, j] - C_v0_sum[i]",
        "            C_v1[i, j] = A[i, j] / C_v0_sum[i]",
    ]


def test_an_output_that_another_one_uses_is_read_by_it(a):
    k = te.reduce_axis((0, 6), name="k")

    def element(i):
        s = te.sum(a[i, k], axis=k)
        return s * 2.0, s

    c = te.compute((4,), element, name="C")
    assert [line.strip() for line in program(a, *c) if "=" in line] == [
        "C_v1[i] = 0.0",
        "C_v1[i] += A[i, k]",
        "C_v0[i] = C_v1[i] * 2.0",
    ]


def test_one_reduction_as_both_outputs_is_copied(a, everywhere):
    k = te.reduce_axis((0, 6), name="k")

    def element(i):
        s = te.max(a[i, k], axis=k)
        return s, s

    c = te.compute((4,), element, name="C")
    x = RNG.standard_normal((4, 6)).astype("float32")
    low, high = everywhere([a, *c], x)
    assert np.array_equal(low, x.max(1)) and np.array_equal(high, x.max(1))


def test_reductions_of_one_tuple_give_what_numpy_gives(everywhere):
    x = RNG.integers(-50, 50, (13, 29)).astype("int32")
    X = te.placeholder(x.shape, "int32", name="X")
    k = te.reduce_axis((0, 29), name="k")
    ops = ("sum", "prod", "min", "max", "argmin", "argmax")
    outputs = te.compute((13,), lambda i: tuple(getattr(te, op)(X[i, k], axis=k) for op in ops), name="S")
    for op, got in zip(ops, everywhere([X, *outputs], x), strict=True):
        assert np.array_equal(got, getattr(np, op)(x, axis=1).astype("int32")), op


def test_outputs_of_different_dtypes(everywhere):
    x = RNG.standard_normal((5, 19)).astype("float32")
    X = te.placeholder(x.shape, "float32", name="X")
    outputs = te.compute(
        x.shape, lambda i, j: (te.cast(X[i, j] * 10.0, "int8"), X[i, j] < 0.0, te.abs(X[i, j])), name="O"
    )
    whole, negative, size = everywhere([X, *outputs], x)
    assert np.array_equal(whole, (x * np.float32(10)).astype("int8"))
    assert np.array_equal(negative, x < 0) and np.array_equal(size, np.abs(x))


def test_a_stage_after_several_outputs_reads_them(everywhere):
    x = RNG.standard_normal((8, 33)).astype("float32")
    X = te.placeholder(x.shape, "float32", name="X")
    k = te.reduce_axis((0, 33), name="k")
    low, high = te.compute((8,), lambda i: (te.min(X[i, k], axis=k), te.max(X[i, k], axis=k)), name="R")
    y = te.compute(x.shape, lambda i, j: (X[i, j] - low[i]) / (high[i] - low[i]), name="Y")
    got = everywhere([X, y], x)[0]
    np.testing.assert_allclose(got, (x - x.min(1)[:, None]) / np.ptp(x, 1)[:, None], rtol=1e-5, atol=1e-6)


def test_a_space_of_several_outputs_has_sketches_whose_schedules_apply():
    x = te.placeholder((16, 48), "float32", name="X")
    k = te.reduce_axis((0, 48), name="k")
    outputs = te.compute((16,), lambda i: (te.argmax(x[i, k], axis=k), te.max(x[i, k], axis=k)), name="O")
    func = te.create_prim_func([x, *outputs])
    space = space_of(func, Target.parse("llvm"))
    for sketch in space.sketches:
        rows = sketch.columns.random(8, np.random.default_rng(0))
        for row in rows[:2]:
            assert isinstance(sketch.resolve(row).apply(func), Schedule)
    assert space.sketches
