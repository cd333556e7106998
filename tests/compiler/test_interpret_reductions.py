"""The reference of reductions, contractions and indices, and of random expressions."""

import time

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tilewright.compiler import interpret, te, topi

from .interpreted import FLOATS, INTEGERS, agree, elementwise, reference

REDUCERS = {"sum": te.sum, "prod": te.prod, "min": te.min, "max": te.max}


@pytest.mark.parametrize("dtype", FLOATS + INTEGERS)
@pytest.mark.parametrize("name", REDUCERS)
def test_reductions_agree_with_the_scalar_interpreter(name, dtype):
    x = te.placeholder((5, 4, 6), dtype, name="X")
    k, m = te.reduce_axis((0, 4), name="k"), te.reduce_axis((1, 6), name="m")
    y = te.compute((5,), lambda i: REDUCERS[name](x[i, k, m] + x[i, k, 0], axis=[m, k]), name="Y")
    assert agree(te.create_prim_func([x, y])).message == ""


def test_a_sum_of_a_hundred_thousand_halves_is_right_in_float16():
    h = te.placeholder((100_000,), "float16", name="H")
    k = te.reduce_axis((0, 100_000), name="k")
    func = te.create_prim_func([h, te.compute((), lambda: te.sum(h[k] * 0.5, axis=k), name="S")])
    out, _ = reference(func, np.full(100_000, 1.0, np.float16))
    assert float(out) == 50_000.0


def test_a_reduction_over_more_points_than_fit_at_once_is_right():
    x = te.placeholder((3, 3_000_000), "float32", name="X")
    k = te.reduce_axis((0, 3_000_000), name="k")
    func = te.create_prim_func([x, te.compute((3,), lambda i: te.sum(te.exp(x[i, k]), axis=k), name="S")])
    arrays = interpret.random_inputs(func, 0)
    want = np.exp(arrays[0].astype(np.float64)).sum(1)
    np.testing.assert_allclose(interpret.expected(func, arrays).outputs[0], want, rtol=1e-12)


def test_a_contraction_over_more_terms_than_fit_at_once_is_right():
    func = topi.create({"op": "matmul", "m": 2, "n": 1, "k": 5_000_000})
    arrays = interpret.random_inputs(func, 0)
    a, b = (x.astype(np.float64) for x in arrays[:2])
    e = interpret.expected(func, arrays)
    np.testing.assert_allclose(e.outputs[0], a @ b, rtol=1e-9)
    magnitude = np.abs(a) @ np.abs(b)
    np.testing.assert_allclose(e.tolerances[0], 8 * np.sqrt(5e6) * 2.0**-23 * magnitude, rtol=1e-9)


def test_an_integer_contraction_beyond_the_exact_floats_still_wraps_exactly():
    func = topi.create({"op": "matmul", "m": 4, "n": 5, "k": 6, "dtype": "int64"})
    rng = np.random.default_rng(0)
    a, b = (rng.integers(-(2**62), 2**62, shape) for shape in ((4, 6), (6, 5)))
    with np.errstate(all="ignore"):
        assert np.array_equal(reference(func, a, b)[0], a @ b)


CONTRACTIONS = {
    "three factors": ((2, 3), lambda a, b, s, i, j, k: a[i, k] * s[k] * b[k, j]),
    "a factor of the output alone": ((2, 3), lambda a, b, s, i, j, k: a[i, k] * b[k, j] * s[j]),
    "four variables on one side": ((2, 3), lambda a, b, s, i, j, k: (a[i, k] * b[k, j]) * (s[k] * s[k])),
    "a sum instead of a product": ((2, 3), lambda a, b, s, i, j, k: a[i, k] + b[k, j]),
    "a product under a function": ((2, 3), lambda a, b, s, i, j, k: te.exp(a[i, k] * b[k, j])),
    "one factor twice": ((2, 3), lambda a, b, s, i, j, k: a[i, k] * a[i, k]),
    "a factor that nothing is summed of": ((2, 3), lambda a, b, s, i, j, k: s[i] * b[k, j]),
    "a function of a factor": ((2, 3), lambda a, b, s, i, j, k: te.exp(a[i, k]) * te.tanh(b[k, j] * s[k])),
    "a constant factor": ((2, 3), lambda a, b, s, i, j, k: a[i, k] * b[k, j] * 0.25),
    "a reversed factor": ((2, 3), lambda a, b, s, i, j, k: a[i, 3 - k] * b[k, j]),
    "a sliding factor": ((2, 2), lambda a, b, s, i, j, k: a[i, k] * s[(j + k) % 4]),
    "a guarded factor": (
        (2, 3),
        lambda a, b, s, i, j, k: te.if_then_else(k >= 1, a[i, k - 1], 0.0) * b[k, j],
    ),
}


@pytest.mark.parametrize("dtype", ["float32", "float16"])
@pytest.mark.parametrize("name", CONTRACTIONS)
def test_sums_of_many_forms_agree_with_the_scalar_interpreter(name, dtype):
    shape, term = CONTRACTIONS[name]
    a, b, s = (te.placeholder(x, dtype, name=n) for x, n in (((2, 4), "A"), ((4, 3), "B"), ((4,), "S")))
    k = te.reduce_axis((0, 4), name="k")
    y = te.compute(shape, lambda i, j: te.sum(term(a, b, s, i, j, k), axis=k), name="Y")
    assert agree(te.create_prim_func([a, b, s, y])).message == ""


INDICES = {
    "transposed": lambda x, i, j: x[j, i],
    "broken by a division": lambda x, i, j: x[(i * 4 + j) // 6, (i * 4 + j) % 6],
    "clamped": lambda x, i, j: x[te.minimum(i + j, 3), te.maximum(j, 2)],
    "padded": lambda x, i, j: te.if_then_else(te.all(i >= 1, j < 3), x[i - 1, j], 2.0),
    "padded around": lambda x, i, j: te.if_then_else(te.any(i < 1, j >= 3), 2.0, x[i - 1, j]),
    "concatenated": lambda x, i, j: te.if_then_else(j < 2, x[i, j], x[i - 0, j - 2] * 2),
    "repeated": lambda x, i, j: x[i, 0] + x[0, j],
    "as values": lambda x, i, j: x[i, j] * te.cast(i * 10 + j, "float32"),
    "equal": lambda x, i, j: te.if_then_else(i == j, x[i, j], 0.0),
    "unequal": lambda x, i, j: te.if_then_else(i != j, x[i, j], 0.0),
}


@pytest.mark.parametrize("name", INDICES)
def test_indices_of_many_forms_agree_with_the_scalar_interpreter(name):
    x = te.placeholder((4, 6), "float32", name="X")
    y = te.compute((4, 4), lambda i, j: INDICES[name](x, i, j), name="Y")
    assert agree(te.create_prim_func([x, y])).message == ""


@st.composite
def expressions(draw, x, y, depth=3):
    """A random expression of two values."""
    if depth == 0 or draw(st.integers(0, 4)) == 0:
        return draw(st.sampled_from([x, y, x * 0.5, y + 2.0]))
    a, b = draw(expressions(x, y, depth - 1)), draw(expressions(x, y, depth - 1))
    f = draw(
        st.sampled_from(
            [
                lambda a, b: a + b,
                lambda a, b: a - b,
                lambda a, b: a * b,
                lambda a, b: a / (te.abs(b) + 1.0),
                te.maximum,
                te.minimum,
                lambda a, b: te.exp(te.minimum(a, 5.0)),
                lambda a, b: te.tanh(a),
                lambda a, b: te.erf(b),
                lambda a, b: te.sqrt(te.abs(a)),
                lambda a, b: te.floor(a) * b,
                lambda a, b: te.if_then_else(a < b, a, b * 2.0),
                lambda a, b: te.cast(
                    te.cast(te.minimum(te.maximum(a, -100.0), 100.0), "int32"), str(a.dtype)
                ),
            ]
        )
    )
    return f(a, b)


@settings(max_examples=60, deadline=None, database=None)
@given(st.data(), st.sampled_from(FLOATS))
def test_bounds_hold_for_random_expressions(data, dtype):
    func = elementwise(lambda x, y: data.draw(expressions(x, y)), dtype, dtype, n=32)
    assert agree(func, seed=5).message == ""


@pytest.mark.parametrize(
    ("request_", "seconds"),
    [
        ({"op": "matmul", "m": 1024, "n": 1024, "k": 1024}, 3.0),
        (
            {"op": "conv2d", "ci": 64, "h": 56, "w": 56, "co": 64, "kh": 3, "kw": 3, "pad": 1, "bias": True},
            2.0,
        ),
        ({"op": "softmax", "m": 512, "n": 1024}, 2.0),
    ],
)
def test_the_reference_of_a_real_layer_takes_a_moment(request_, seconds):
    # A scalar interpreter would take minutes; the limit leaves room for a busy machine.
    func = topi.create(request_)
    arrays = interpret.random_inputs(func, 0)
    start = time.process_time()
    interpret.expected(func, arrays)
    assert time.process_time() - start < seconds
