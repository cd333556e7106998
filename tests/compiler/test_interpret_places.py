"""The reference of the place of an extreme value: exact where the numbers decide it, and no wider than the
candidates where they do not."""

import numpy as np
import pytest

from tilewright.compiler import interpret, te
from tilewright.compiler.interpret.places import places_of


def program(op, f, n=50, rows=3):
    x = te.placeholder((rows, n), "float32", name="X")
    k = te.reduce_axis((0, n), name="k")
    y = te.compute((rows,), lambda i: getattr(te, op)(f(x[i, k]), axis=k), name="Y")
    return te.create_prim_func([x, y])


def expected(func, x):
    y = np.zeros(x.shape[0], "int32")
    return interpret.expected(func, [x, y])


@pytest.mark.parametrize("op", ["argmin", "argmax"])
@pytest.mark.parametrize("f", [lambda v: v, lambda v: te.exp(v) - v, lambda v: v * 1.1 + 0.3])
def test_a_place_that_the_numbers_decide_is_exact(op, f):
    func = program(op, f)
    x = np.random.default_rng(0).standard_normal((3, 50)).astype("float32")
    got = expected(func, x)
    assert [b.name for b in places_of(func)] == ["Y"]
    assert not got.tolerances[0].any()
    y = np.zeros(3, "int32")
    interpret.run(func, [x, y])
    assert np.array_equal(got.outputs[0], y)
    assert not interpret.check(got, [x, y + 1]).ok


def test_a_place_that_two_candidates_share_is_known_up_to_their_distance():
    func = program("argmin", lambda v: te.exp(v) * 3.0, n=10, rows=1)
    x = np.full((1, 10), 5, "float32")
    x[0, 2], x[0, 6] = 1.0, np.nextafter(np.float32(1.0), np.float32(0.0))
    got = expected(func, x)
    assert (got.outputs[0].tolist(), got.tolerances[0].tolist()) == ([6], [4.0])


def test_a_nan_decides_the_place():
    func = program("argmax", lambda v: v * 1.1, n=6, rows=1)
    got = expected(func, np.array([[1, 2, np.nan, 9, np.nan, 3]], "float32"))
    assert (got.outputs[0].tolist(), got.tolerances[0].tolist()) == ([2], [0.0])


def test_another_comparison_with_an_extreme_value_is_no_place():
    x = te.placeholder((8,), "float32", name="X")
    w = te.placeholder((8,), "float32", name="W")
    k, m = te.reduce_axis((0, 8), name="k"), te.reduce_axis((0, 8), name="m")
    low = te.compute((), lambda: te.min(x[k], axis=k), name="low")
    y = te.compute(
        (), lambda: te.min(te.if_then_else(w[m] == low[()], te.cast(m, "int32"), 99), axis=m), name="Y"
    )
    assert not places_of(te.create_prim_func([x, w, y]))
