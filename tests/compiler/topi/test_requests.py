"""Requests that cannot be met, by the whole text and the place; and the schemas that say what can."""

import pytest

from tilewright.compiler import topi

MATMUL = {"op": "matmul", "m": 4, "n": 5, "k": 6}
CONV = {"op": "conv2d", "ci": 4, "h": 6, "w": 6, "co": 8, "kh": 3, "kw": 3}
KNOWN = (
    "matmul, batch_matmul, dense, conv1d, conv2d, conv3d, conv2d_transpose, depthwise_conv2d, pool1d, "
    "pool2d, pool3d, softmax, layer_norm, add, broadcast, reduce, cumulative, elementwise, transpose"
)
DTYPES = "float32, float64, float16, bfloat16, int8, uint8, int16, uint16, int32, uint32, int64, uint64"


@pytest.mark.parametrize(
    ("asked", "message", "pointer"),
    [
        ([], "expected an object with 'op', got list", ""),
        ({}, f"the field 'op' is missing; known: {KNOWN}", ""),
        ({"op": "gemm"}, f"unknown operator 'gemm'; known: {KNOWN}", "/op"),
        ({"op": 3}, f"unknown operator 3; known: {KNOWN}", "/op"),
        ({"op": "matmul", "m": 4, "n": 5}, "'matmul' needs the parameter 'k': terms of each sum", ""),
        (
            {**MATMUL, "a/b": 1},
            "'matmul' has no parameter 'a/b'; it has: m, n, k, dtype, transpose_a, transpose_b, out_dtype",
            "/a~1b",
        ),
        ({**MATMUL, "m": 0}, "'m' must be from 1 to 16777216, got 0", "/m"),
        ({**MATMUL, "m": -3}, "'m' must be from 1 to 16777216, got -3", "/m"),
        ({**MATMUL, "m": 4.0}, "'m' must be an integer, got a number", "/m"),
        ({**MATMUL, "m": True}, "'m' must be an integer, got a boolean", "/m"),
        ({**MATMUL, "m": "4"}, "'m' must be an integer, got a string", "/m"),
        ({**MATMUL, "m": None}, "'m' must be an integer, got null", "/m"),
        ({**MATMUL, "transpose_a": 1}, "'transpose_a' must be true or false, got an integer", "/transpose_a"),
        ({**MATMUL, "dtype": "half"}, f"'dtype' must be one of {DTYPES}, got 'half'", "/dtype"),
        ({**MATMUL, "dtype": ["int8"]}, f"'dtype' must be one of {DTYPES}, got an array", "/dtype"),
        (
            {**MATMUL, "out_dtype": "int8"},
            "'out_dtype' must be a float exactly where 'dtype' is: got int8 for float32",
            "/out_dtype",
        ),
        (
            {**MATMUL, "m": 2**24, "n": 2**24},
            f"te.create_prim_func 'matmul': the buffers hold {4 * (2**48 + 6 * 2**24 + 6 * 2**24)} bytes; "
            f"at most {2**34} are allowed",
            "",
        ),
        ({**CONV, "stride": 0}, "'stride' must be from 1 to 16777216, got 0", "/stride"),
        ({**CONV, "stride": [1, 0]}, "'stride' must be from 1 to 16777216, got 0", "/stride/1"),
        ({**CONV, "stride": [1]}, "'stride' must be an integer or an array of two, got 1 entries", "/stride"),
        ({**CONV, "pad": "same"}, "'pad' must be an integer or an array of two, got a string", "/pad"),
        ({**CONV, "layout": "NCHWc"}, "'layout' must be one of NCHW, NHWC, got 'NCHWc'", "/layout"),
        ({**CONV, "groups": 3}, "'ci' must be a multiple of 'groups' (3), got 4", "/ci"),
        ({**CONV, "ci": 16, "groups": 16}, "'co' must be a multiple of 'groups' (16), got 8", "/co"),
        (
            {**CONV, "kh": 9, "pad": 1},
            "topi.conv2d: a kernel of 9 x 3 does not fit into 6 x 6 with the padding 1, 1",
            "",
        ),
        (
            {**CONV, "activation": "gelu", "dtype": "int8"},
            "'gelu' needs floats; the dtype is int8",
            "/activation",
        ),
        (
            {**CONV, "activation": "swish"},
            "'activation' must be one of none, relu, relu6, gelu, sigmoid, tanh, silu, got 'swish'",
            "/activation",
        ),
        (
            {"op": "layer_norm", "m": 2, "n": 3, "epsilon": 2},
            "'epsilon' must be from 1e-12 to 1.0, got 2",
            "/epsilon",
        ),
        (
            {"op": "layer_norm", "m": 2, "n": 3, "epsilon": "x"},
            "'epsilon' must be a number, got a string",
            "/epsilon",
        ),
        ({"op": "add", "shape": []}, "'shape' must be an array of 1 to 8 integers, got 0 entries", "/shape"),
        ({"op": "add", "shape": 3}, "'shape' must be an array of 1 to 8 integers, got an integer", "/shape"),
        ({"op": "add", "shape": [3, 0]}, "'shape' must be from 1 to 16777216, got 0", "/shape/1"),
        (
            {"op": "transpose", "shape": [3, 4], "axes": [0, 2]},
            "'axes' must hold 0 to 1, each once, got [0, 2]",
            "/axes",
        ),
        (
            {"op": "softmax", "m": 2, "n": 3, "dtype": "int8"},
            "'dtype' must be one of float32, float64, float16, bfloat16, got 'int8'",
            "/dtype",
        ),
    ],
)
def test_a_request_is_refused(asked, message, pointer):
    with pytest.raises(topi.OperatorError) as e:
        topi.create(asked)
    assert (e.value.message, e.value.pointer) == (message, pointer)


@pytest.mark.parametrize(
    ("asked", "pointer"),
    [({**CONV, "groups": 3}, "/workload/ci"), ({**MATMUL, "m": 0}, "/workload/m"), ({}, "/workload")],
)
def test_a_pointer_starts_where_the_request_stands_in_a_larger_document(asked, pointer):
    with pytest.raises(topi.OperatorError) as e:
        topi.create(asked, at="/workload")
    assert e.value.pointer == pointer


def test_the_message_and_the_place_print_together():
    with pytest.raises(topi.OperatorError) as e:
        topi.create({**MATMUL, "m": 0})
    assert str(e.value) == "'m' must be from 1 to 16777216, got 0 (at /m)"


def test_the_schema_of_a_matmul():
    extent = {"type": "integer", "minimum": 1, "maximum": 2**24}
    assert topi.schemas()["matmul"] == {
        "type": "object",
        "description": "C[m, n] = A[m, k] · B[k, n]",
        "properties": {
            "op": {"const": "matmul"},
            "m": {**extent, "description": "rows of the output"},
            "n": {**extent, "description": "columns of the output"},
            "k": {**extent, "description": "terms of each sum"},
            "dtype": {
                "type": "string",
                "enum": DTYPES.split(", "),
                "description": "dtype of the inputs",
                "default": "float32",
            },
            "transpose_a": {"type": "boolean", "description": "A is stored [k, m]", "default": False},
            "transpose_b": {"type": "boolean", "description": "B is stored [n, k]", "default": False},
            "out_dtype": {
                "type": "string",
                "enum": DTYPES.split(", "),
                "description": "dtype of the output; by default that of the inputs, "
                "int32 for integers below 32 bits",
            },
        },
        "required": ["op", "m", "n", "k"],
        "additionalProperties": False,
    }


@pytest.mark.parametrize("name", topi.OPERATORS)
def test_every_parameter_says_what_it_is_and_has_a_default_or_is_required(name):
    schema = topi.schemas()[name]
    for parameter in topi.OPERATORS[name].parameters:
        property_ = schema["properties"][parameter.name]
        assert property_["description"]
        optional = parameter.name not in schema["required"]
        assert optional == ("default" in property_) or "by default" in property_["description"]
