"""Every operator computes what NumPy computes, in both modes of the interpreter."""

import numpy as np
import pytest

from tilewright.compiler import interpret, topi
from tilewright.compiler.ir import canonical_json, from_json, to_json

from .numpy_operators import run as numpy_run
from .requests import REQUESTS

NAMES = [" ".join(str(v) for v in r.values()) for r in REQUESTS]


@pytest.fixture(params=REQUESTS, ids=NAMES)
def request_(request):
    return request.param


def inputs_of(func, arrays):
    return [a for p, a in zip(func.params, arrays, strict=True) if p not in func.outputs]


def test_the_reference_is_numpy_in_float64(request_):
    func = topi.create(request_)
    arrays = interpret.random_inputs(func, seed=1)
    got = interpret.expected(func, arrays)
    # A constant such as 1/n is rounded to the dtype of the program; nothing else is.
    np.testing.assert_allclose(
        got.outputs[0], numpy_run(request_, inputs_of(func, arrays)), rtol=1e-6, atol=1e-6
    )


def test_the_scalar_interpreter_is_within_the_tolerance_of_the_reference(request_):
    func = topi.create(request_)
    arrays = interpret.random_inputs(func, seed=2)
    expected = interpret.expected(func, arrays)
    interpret.run(func, arrays)
    assert interpret.check(expected, arrays).message == ""


INTEGERS = [r for r in REQUESTS if "int" in r.get("dtype", "float32")]


@pytest.mark.parametrize("integers", INTEGERS, ids=lambda r: f"{r['op']} {r['dtype']}")
def test_integers_are_exact(integers):
    func = topi.create(integers)
    arrays = interpret.random_inputs(func, seed=3)
    want = numpy_run(integers, inputs_of(func, arrays)).astype(func.outputs[0].dtype.numpy)
    expected = interpret.expected(func, arrays)
    assert np.array_equal(expected.outputs[0], want) and not expected.tolerances[0].any()


def test_a_program_survives_json(request_):
    func = topi.create(request_)
    assert canonical_json(from_json(to_json(func))) == canonical_json(func)


@pytest.mark.parametrize("name", topi.OPERATORS)
def test_every_operator_is_among_the_requests(name):
    assert name in {r["op"] for r in REQUESTS}


def test_no_padding_makes_no_padding_stage():
    func = topi.create({"op": "conv2d", "ci": 3, "h": 6, "w": 6, "co": 4, "kh": 3, "kw": 3})
    assert [b.name for _, b in func.blocks()] == ["Y"]


def test_bias_and_activation_are_one_stage():
    func = topi.create(
        {
            "op": "conv2d",
            "ci": 3,
            "h": 6,
            "w": 6,
            "co": 4,
            "kh": 3,
            "kw": 3,
            "pad": 1,
            "bias": True,
            "activation": "gelu",
        }
    )
    assert [b.name for _, b in func.blocks()] == ["pad", "conv", "Y"]


@pytest.mark.parametrize(
    ("layout", "x", "w", "y"),
    [
        ("NCHW", [1, 6, 8, 9], [4, 3, 3, 2], [1, 4, 6, 8]),
        ("NHWC", [1, 8, 9, 6], [3, 2, 3, 4], [1, 6, 8, 4]),
    ],
)
def test_the_layouts_of_a_convolution(layout, x, w, y):
    func = topi.create(
        {"op": "conv2d", "ci": 6, "h": 8, "w": 9, "co": 4, "kh": 3, "kw": 2, "groups": 2, "layout": layout}
    )
    assert [[p.const for p in b.shape] for b in func.params] == [x, w, y]


@pytest.mark.parametrize(("weights", "shape"), [("kn", [5, 6]), ("nk", [6, 5])])
def test_the_layouts_of_dense_weights(weights, shape):
    func = topi.create({"op": "dense", "m": 4, "n": 6, "k": 5, "weights": weights})
    assert [p.const for p in func.params[1].shape] == shape


@pytest.mark.parametrize(
    ("dtype", "out"),
    [
        ("float32", "float32"),
        ("float16", "float16"),
        ("int8", "int32"),
        ("uint16", "int32"),
        ("int64", "int64"),
    ],
)
def test_the_output_of_a_matmul_is_as_wide_as_its_sum_when_of_integers(dtype, out):
    assert str(topi.create({"op": "matmul", "m": 2, "n": 2, "k": 2, "dtype": dtype}).params[2].dtype) == out
