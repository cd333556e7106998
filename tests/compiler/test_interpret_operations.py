"""The reference of operations and casts, and how far from it a result may be."""

import numpy as np
import pytest

from tilewright.compiler import interpret, te, topi

from .interpreted import FLOATS, INTEGERS, agree, elementwise, reference

UNARY = {
    "exp": te.exp,
    "log": te.log,
    "sqrt": te.sqrt,
    "rsqrt": te.rsqrt,
    "tanh": te.tanh,
    "sigmoid": te.sigmoid,
    "erf": te.erf,
    "gelu": te.gelu,
    "sin": te.sin,
    "cos": te.cos,
    "floor": te.floor,
    "ceil": te.ceil,
    "round": te.round,
    "abs": te.abs,
    "neg": lambda x: -x,
}


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("name", UNARY)
def test_functions_of_floats_agree_with_the_scalar_interpreter(name, dtype):
    assert agree(elementwise(lambda x: UNARY[name](x * 3), dtype)).message == ""


FLOAT_BINARY = {
    "add": lambda x, y: x + y,
    "sub": lambda x, y: x - y,
    "mul": lambda x, y: x * y,
    "div": lambda x, y: x / y,
    "min": te.minimum,
    "max": te.maximum,
    "pow": lambda x, y: te.pow(te.abs(x), y),
    "select": lambda x, y: te.if_then_else(x < y, x * y, x - y),
}


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("name", FLOAT_BINARY)
def test_operations_on_floats_agree_with_the_scalar_interpreter(name, dtype):
    assert agree(elementwise(lambda x, y: FLOAT_BINARY[name](x * 3, y + 1), dtype, dtype)).message == ""


INTEGER_BINARY = {
    "add": lambda x, y: x + y,
    "sub": lambda x, y: x - y,
    "mul": lambda x, y: x * y * x * y,
    "min": te.minimum,
    "max": te.maximum,
    "floordiv": te.floordiv,
    "floormod": te.floormod,
    "truncdiv": te.truncdiv,
    "truncmod": te.truncmod,
    "and": lambda x, y: x & y,
    "or": lambda x, y: x | y,
    "xor": lambda x, y: x ^ ~y,
    "shl": lambda x, y: x << y,
    "shr": lambda x, y: x >> y,
    "neg": lambda x, y: -x + y,
    "abs": lambda x, y: te.abs(x) - y,
    "compare": lambda x, y: te.cast((x <= y) ^ (x != y), str(x.dtype)),
}


@pytest.mark.parametrize("dtype", INTEGERS)
@pytest.mark.parametrize("name", INTEGER_BINARY)
def test_operations_on_integers_agree_with_the_scalar_interpreter_exactly(name, dtype):
    func = elementwise(INTEGER_BINARY[name], dtype, dtype)
    assert (agree(func).message, agree(func).worst) == ("", 0.0)


@pytest.mark.parametrize("dtype", INTEGERS)
def test_integers_wrap_around(dtype):
    info = np.iinfo(dtype)
    out, _ = reference(elementwise(lambda x: (x + 2) * 3, dtype), np.full(64, info.max, dtype))
    assert (int(out[0]) - (info.max + 2) * 3) % 2**info.bits == 0


DIVISION = [
    (7, 2),
    (-7, 2),
    (7, -2),
    (-7, -2),
    (6, 3),
    (-6, 3),
    (0, 5),
    (5, 0),
    (-5, 0),
    (-128, -1),
    (-128, 1),
]


@pytest.mark.parametrize(
    ("f", "want"),
    [
        (te.floordiv, [3, -4, -4, 3, 2, -2, 0, 0, 0, -128, -128]),
        (te.floormod, [1, 1, -1, -1, 0, 0, 0, 0, 0, 0, 0]),
        (te.truncdiv, [3, -3, -3, 3, 2, -2, 0, 0, 0, -128, -128]),
        (te.truncmod, [1, -1, 1, -1, 0, 0, 0, 0, 0, 0, 0]),
    ],
)
def test_division_of_integers_rounds_as_it_says_and_by_zero_gives_zero(f, want):
    func = elementwise(f, "int8", "int8", n=len(DIVISION))
    a, b = (np.array(column, np.int8) for column in zip(*DIVISION, strict=True))
    assert reference(func, a, b)[0].tolist() == want
    arrays = [a, b, np.zeros(len(DIVISION), np.int8)]
    interpret.run(func, arrays)
    assert arrays[2].tolist() == want


@pytest.mark.parametrize("dtype", ["int8", "uint8"])
@pytest.mark.parametrize(("f", "want"), [(lambda x, y: x << y, 0), (lambda x, y: x >> y, 0)])
def test_a_shift_by_the_width_leaves_nothing(f, want, dtype):
    assert (
        int(reference(elementwise(f, dtype, dtype), np.full(64, 5, dtype), np.full(64, 8, dtype))[0][0])
        == want
    )


@pytest.mark.parametrize("source", FLOATS + INTEGERS + ("bool",))
@pytest.mark.parametrize("to", FLOATS + INTEGERS + ("bool",))
def test_casts_agree_with_numpy_and_the_scalar_interpreter(source, to):
    unsigned = to.startswith("uint") and source in FLOATS
    func = elementwise(lambda x: te.cast(te.abs(x) if unsigned else x, to), source)
    assert agree(func).message == ""


def test_overflow_of_a_narrow_float_is_infinite():
    out, _ = reference(elementwise(lambda x: x * x, "float16"), np.full(64, 300.0, np.float16))
    assert out[0] == np.inf


def test_not_a_number_goes_through_minimum_and_maximum():
    x = np.full(64, np.nan, np.float32)
    out, _ = reference(
        elementwise(lambda x, y: te.maximum(x, y) + te.minimum(y, x), "float32", "float32"), x, np.ones(64)
    )
    assert np.isnan(out).all()


def test_what_is_only_copied_must_be_equal():
    assert reference(elementwise(lambda x: x, "float32"))[1].max() == 0.0


def test_the_tolerance_of_a_sum_of_products_is_the_one_of_the_design():
    func = topi.create({"op": "matmul", "m": 3, "n": 5, "k": 49})
    a, b, c = interpret.random_inputs(func, 7)
    e = interpret.expected(func, [a, b, c])
    magnitude = np.abs(a.astype(np.float64)) @ np.abs(b.astype(np.float64))
    np.testing.assert_allclose(e.outputs[0], a.astype(np.float64) @ b.astype(np.float64), rtol=1e-12)
    np.testing.assert_allclose(e.tolerances[0], 8 * 7 * np.finfo(np.float32).eps * magnitude, rtol=1e-12)


def test_the_tolerance_of_an_intermediate_is_carried_into_what_reads_it():
    eps = float(np.finfo(np.float32).eps)
    x = np.linspace(0.5, 1.5, 64, dtype=np.float32)
    out, tolerance = reference(elementwise(lambda x: (x * x) * 1024.0, "float32"), x)
    square = x.astype(np.float64) ** 2
    np.testing.assert_allclose(out, square * 1024)
    np.testing.assert_allclose(tolerance, 1024 * square * eps * 2, rtol=1e-6)


def test_a_comparison_too_close_to_call_lets_both_branches_pass():
    # In float32, 0.1 * 3 lies on either side of the literal, depending on the rounding of the product.
    element = lambda x: te.if_then_else(x * 3 > 0.3, x * 0 + 1, x * 0)  # noqa: E731
    out, tolerance = reference(elementwise(element, "float32"), np.full(64, 0.1, np.float32))
    assert tolerance[0] >= 1.0
    clear, none = reference(elementwise(element, "float32"), np.full(64, 0.2, np.float32))
    assert (clear[0], none[0] < 1e-6, out[0] in (0.0, 1.0)) == (1.0, True, True)


def test_a_floor_too_close_to_call_lets_both_integers_pass():
    func = elementwise(lambda x: te.floor(x * 10), "float32")
    assert reference(func, np.full(64, 0.1, np.float32))[1][0] == 1.0
    assert reference(func, np.full(64, 0.15, np.float32))[1][0] == 0.0


def test_integers_made_of_uncertain_floats_carry_their_uncertainty():
    func = elementwise(lambda x: te.cast(x * 10, "int32") * 5, "float32")
    assert reference(func, np.full(64, 0.1, np.float32))[1][0] == 5.0
    assert reference(func, np.full(64, 0.15, np.float32))[1][0] == 0.0
