"""Every function and operator of te gives NumPy's result on values at the edges of its dtype, and refuses the
dtypes that it does not have."""

import math

import ml_dtypes
import numpy as np
import pytest

from tilewright.compiler import interpret, te
from tilewright.compiler.interpret import functions as interpret_functions
from tilewright.compiler.ir import TypeMismatch

INTEGERS = [f"{kind}{bits}" for kind in ("int", "uint") for bits in (8, 16, 32, 64)]
FLOATS = ["float32", "float64", "float16", "bfloat16"]
DTYPES = [*INTEGERS, *FLOATS, "bool"]
ERF = np.vectorize(math.erf, otypes=[np.float64])
RNG = np.random.default_rng(2)


def numpy_dtype(dtype):
    return np.dtype(ml_dtypes.bfloat16) if dtype == "bfloat16" else np.dtype(dtype)


def scalar(f, *arrays, out=None):
    """f over arrays of one dimension, by the scalar interpreter: exactly in the dtypes of the program."""
    names = "XYZ"
    tensors = [te.placeholder(a.shape, str(a.dtype), name=n) for a, n in zip(arrays, names, strict=False)]
    y = te.compute(arrays[0].shape, lambda i: f(*(t[i] for t in tensors)), name="R")
    func = te.create_prim_func([*tensors, y])
    result = interpret.poisoned(func.params[-1])
    interpret.run(func, [*arrays, result])
    return result


def edges(dtype):
    """The ends of an integer dtype, what lies beside them, and zero."""
    info = np.iinfo(dtype)
    values = {info.min, info.min + 1, info.max, info.max - 1, 0, 1, 2, 3, 7, info.max // 2}
    if info.min < 0:
        values |= {-1, -2, -3, -7}
    return np.array(sorted(values), dtype)


def pairs(dtype):
    """Every pair of edges."""
    e = edges(dtype)
    return np.repeat(e, len(e)), np.tile(e, len(e))


def run(everywhere, f, *arrays):
    tensors = [te.placeholder(a.shape, str(a.dtype), name=n) for a, n in zip(arrays, "XYZ", strict=False)]
    y = te.compute(arrays[0].shape, lambda i: f(*(t[i] for t in tensors)), name="R")
    return everywhere([*tensors, y], *arrays)[0]


WRAPPING = {
    "+": (lambda a, b: a + b, np.add),
    "-": (lambda a, b: a - b, np.subtract),
    "*": (lambda a, b: a * b, np.multiply),
    "&": (lambda a, b: a & b, np.bitwise_and),
    "|": (lambda a, b: a | b, np.bitwise_or),
    "^": (lambda a, b: a ^ b, np.bitwise_xor),
    "minimum": (te.minimum, np.minimum),
    "maximum": (te.maximum, np.maximum),
}


@pytest.mark.parametrize("dtype", INTEGERS)
@pytest.mark.parametrize("op", WRAPPING)
def test_integers_at_the_edges(everywhere, op, dtype):
    ours, numpy = WRAPPING[op]
    a, b = pairs(dtype)
    got = run(everywhere, ours, a, b)
    assert got.dtype == a.dtype and np.array_equal(got, numpy(a, b))


@pytest.mark.parametrize("dtype", INTEGERS)
def test_negation_absolute_value_and_inversion_at_the_edges(everywhere, dtype):
    x = edges(dtype)
    assert np.array_equal(run(everywhere, lambda v: -v, x), np.negative(x))
    assert np.array_equal(run(everywhere, te.abs, x), np.abs(x))
    assert np.array_equal(run(everywhere, lambda v: ~v, x), np.invert(x))


def exact(rounding):
    """A quotient in Python's unlimited integers, wrapped into the dtype of the operands; 0 for a divisor of
    0."""

    def f(a, b):
        out = []
        for x, y in zip(a.tolist(), b.tolist(), strict=True):
            q = 0 if y == 0 else x // y
            if y and rounding == "trunc" and q < 0 and q * y != x:
                q += 1
            out.append(q)
        info = np.iinfo(a.dtype)
        span = info.max - info.min + 1
        return np.array([(q - info.min) % span + info.min for q in out], a.dtype)

    return f


def remainder(rounding):
    quotient = exact(rounding)

    def f(a, b):
        q = quotient(a, b)
        with np.errstate(over="ignore"):
            return np.where(b == 0, 0, a - q * b).astype(a.dtype)

    return f


DIVISIONS = {
    "//": (lambda a, b: a // b, exact("floor")),
    "%": (lambda a, b: a % b, remainder("floor")),
    "floordiv": (te.floordiv, exact("floor")),
    "floormod": (te.floormod, remainder("floor")),
    "truncdiv": (te.truncdiv, exact("trunc")),
    "truncmod": (te.truncmod, remainder("trunc")),
}


@pytest.mark.parametrize("dtype", INTEGERS)
@pytest.mark.parametrize("op", DIVISIONS)
def test_division_by_values_of_every_sign(everywhere, op, dtype):
    ours, want = DIVISIONS[op]
    a, b = pairs(dtype)
    assert np.array_equal(run(everywhere, ours, a, b), want(a, b))


@pytest.mark.parametrize("divisor", [3, -3, 1, -1, 7])
@pytest.mark.parametrize("op", DIVISIONS)
def test_division_by_a_literal(everywhere, op, divisor):
    ours, want = DIVISIONS[op]
    a = edges("int16")
    got = run(everywhere, lambda x: ours(x, divisor), a)
    assert np.array_equal(got, want(a, np.full_like(a, divisor)))


@pytest.mark.parametrize("dtype", INTEGERS)
def test_shifts_by_every_distance(everywhere, dtype):
    e = edges(dtype)
    bits = np.iinfo(dtype).bits
    by = np.array([0, 1, 3, bits - 1, bits, bits + 1], dtype)
    a, b = np.repeat(e, len(by)), np.tile(by, len(e))
    left = run(everywhere, lambda x, y: x << y, a, b)
    right = run(everywhere, lambda x, y: x >> y, a, b)
    assert np.array_equal(left, np.left_shift(a, b)) and np.array_equal(right, np.right_shift(a, b))


SPECIAL = [0.0, -0.0, 0.5, -0.5, 1.5, 2.5, -2.5, 1.0, -1.0, 3.25, -7.75, math.inf, -math.inf, math.nan]
FUNCTIONS = {
    "exp": (te.exp, np.exp),
    "log": (te.log, np.log),
    "sqrt": (te.sqrt, np.sqrt),
    "rsqrt": (te.rsqrt, lambda x: 1 / np.sqrt(x)),
    "tanh": (te.tanh, np.tanh),
    "sigmoid": (te.sigmoid, lambda x: np.exp(-np.logaddexp(0, -x))),
    "erf": (te.erf, ERF),
    "gelu": (te.gelu, interpret_functions.FUNCTIONS["gelu"]),
    "sin": (te.sin, np.sin),
    "cos": (te.cos, np.cos),
    "floor": (te.floor, np.floor),
    "ceil": (te.ceil, np.ceil),
    "round": (te.round, np.rint),
    "abs": (te.abs, np.abs),
    "neg": (lambda x: -x, np.negative),
}


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("name", FUNCTIONS)
def test_a_function_of_floats_is_that_of_float64_rounded_once(name, dtype):
    ours, numpy = FUNCTIONS[name]
    x = np.array([*SPECIAL, *RNG.uniform(-4, 4, 50)]).astype(numpy_dtype(dtype))
    with np.errstate(all="ignore"):
        want = np.asarray(numpy(x.astype("float64"))).astype(numpy_dtype(dtype))
    got = scalar(ours, x)
    assert got.dtype == want.dtype
    np.testing.assert_array_equal(got.astype("float64"), want.astype("float64"))


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("name", FUNCTIONS)
def test_a_built_function_is_within_its_error_of_the_reference(everywhere, name, dtype):
    x = np.array([*SPECIAL, *RNG.uniform(-4, 4, 50)]).astype(numpy_dtype(dtype))
    run(everywhere, FUNCTIONS[name][0], x)


@pytest.mark.parametrize("dtype", FLOATS)
def test_a_power_of_values(dtype):
    base = np.array([2.0, 0.5, -2.0, 0.0, 0.0, math.inf, -1.0, 3.0, math.nan, -8.0]).astype(
        numpy_dtype(dtype)
    )
    exponent = np.array([10.0, -2.0, 3.0, 0.0, 2.0, -1.0, 0.5, 1.5, 0.0, 1 / 3]).astype(numpy_dtype(dtype))
    with np.errstate(all="ignore"):
        want = np.power(base.astype("float64"), exponent.astype("float64")).astype(numpy_dtype(dtype))
    for f in (te.pow, lambda a, b: a**b):
        np.testing.assert_allclose(
            scalar(f, base, exponent).astype("float64"),
            want.astype("float64"),
            rtol=1e-6 if dtype == "float32" else 0,
        )


@pytest.mark.parametrize("dtype", FLOATS)
def test_a_built_power_is_within_its_error_of_the_reference(everywhere, dtype):
    base = np.array([2.0, 0.5, 0.0, 3.0, *RNG.uniform(0.1, 4, 40)]).astype(numpy_dtype(dtype))
    exponent = np.array([10.0, -2.0, 2.0, 1.5, *RNG.uniform(-3, 3, 40)]).astype(numpy_dtype(dtype))
    run(everywhere, te.pow, base, exponent)


def test_a_literal_to_the_power_of_a_value():
    x = np.array([0.0, 1.0, -2.5, 10.0])
    np.testing.assert_array_equal(scalar(lambda v: 2.0**v, x), 2.0**x)


def test_the_reference_of_a_power_of_values_is_float64_with_a_tolerance():
    x, y = (RNG.uniform(0.1, 3, 40).astype("float32") for _ in range(2))
    X, Y = (te.placeholder((40,), "float32", name=n) for n in "XY")
    func = te.create_prim_func([X, Y, te.compute((40,), lambda i: te.pow(X[i], Y[i]), name="Z")])
    z = np.empty(40, "float32")
    expected = interpret.expected(func, [x, y, z])
    np.testing.assert_allclose(expected.outputs[0], x.astype("float64") ** y.astype("float64"))
    assert (expected.tolerances[0] > 0).all() and (expected.tolerances[0] < 1e-3).all()


@pytest.mark.parametrize("dtype", ["float32", "float64", *INTEGERS])
def test_clamping_is_numpys_clip(everywhere, dtype):
    x = np.array(SPECIAL, dtype) if dtype.startswith("float") else edges(dtype)
    low, high = (-1.5, 2.25) if dtype.startswith("float") else (1, 5)
    np.testing.assert_array_equal(run(everywhere, lambda v: te.clamp(v, low, high), x), np.clip(x, low, high))
    assert te.clip is te.clamp


def test_clamping_takes_values_as_bounds(everywhere):
    x, low, high = np.array([1, 5, 9], "int32"), np.array([2, 2, 2], "int32"), np.array([7, 7, 7], "int32")
    assert run(everywhere, te.clamp, x, low, high).tolist() == [2, 5, 7]


def test_a_clamped_index_stays_in_bounds(everywhere):
    x = np.arange(5, dtype="int32")
    X = te.placeholder((5,), "int32", name="X")
    y = te.compute((9,), lambda i: X[te.clamp(i, 1, 3)], name="Y")
    assert everywhere([X, y], x)[0].tolist() == [1, 1, 2, 3, 3, 3, 3, 3, 3]


COMPARISONS = {
    "==": (lambda a, b: a == b, np.equal),
    "!=": (lambda a, b: a != b, np.not_equal),
    "<": (lambda a, b: a < b, np.less),
    "<=": (lambda a, b: a <= b, np.less_equal),
    ">": (lambda a, b: a > b, np.greater),
    ">=": (lambda a, b: a >= b, np.greater_equal),
}


@pytest.mark.parametrize("dtype", ["float32", "float64", "int8", "uint8", "int64", "uint64"])
@pytest.mark.parametrize("op", COMPARISONS)
def test_comparisons(everywhere, op, dtype):
    ours, numpy = COMPARISONS[op]
    e = np.array(SPECIAL, dtype) if dtype.startswith("float") else edges(dtype)
    a, b = np.repeat(e, len(e)), np.tile(e, len(e))
    assert np.array_equal(run(everywhere, ours, a, b), numpy(a, b))


def test_boolean_logic(everywhere):
    a, b = np.array([0, 0, 1, 1], bool), np.array([0, 1, 0, 1], bool)
    for ours, numpy in (
        (lambda x, y: x & y, np.logical_and),
        (lambda x, y: x | y, np.logical_or),
        (lambda x, y: x ^ y, np.logical_xor),
        (lambda x, y: te.all(x, ~y), lambda x, y: x & ~y),
        (lambda x, y: te.any(~x, y), lambda x, y: ~x | y),
        (lambda x, y: x == y, np.equal),
        (lambda x, y: te.if_then_else(x, y, ~y), lambda x, y: np.where(x, y, ~y)),
    ):
        assert np.array_equal(run(everywhere, ours, a, b), numpy(a, b))


@pytest.mark.parametrize("to", [*INTEGERS, "float32", "float64", "bool"])
@pytest.mark.parametrize("dtype", [*INTEGERS, "float32", "float64", "bool"])
def test_casts_are_numpys(everywhere, dtype, to):
    if dtype == "bool":
        x = np.array([True, False])
    elif dtype.startswith("float"):
        # What does not fit has no defined result in NumPy either.
        x = np.array([0.0, 1.9, 100.5] if to.startswith("uint") else [0.0, -0.0, 1.9, -1.9, 100.5], dtype)
    else:
        x = edges(dtype)
    assert np.array_equal(run(everywhere, lambda v: te.cast(v, to), x), x.astype(to))


UNARY = {
    **{
        name: "float"
        for name in ("exp", "log", "sqrt", "rsqrt", "tanh", "sigmoid", "erf", "gelu", "sin", "cos")
    },
    **{name: "float" for name in ("floor", "ceil", "round")},
    "abs": "number",
}


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("name", UNARY)
def test_a_function_takes_exactly_its_dtypes(name, dtype):
    f, x = getattr(te, name), te.placeholder((3,), dtype, name="X")
    fits = numpy_dtype(dtype).kind in {"float": "fV", "number": "fViu"}[UNARY[name]] or dtype == "bfloat16"
    if fits:
        assert str(f(x[0]).dtype) == dtype
        return
    takes = "numbers, got bool" if UNARY[name] == "number" else f"floats, got {dtype}"
    with pytest.raises(TypeMismatch, match=f"^{name!r} takes {takes}\n  at test_functions.py:"):
        f(x[0])


@pytest.mark.parametrize("name", [n for n in te.__all__ if n[0].islower()])
def test_everything_that_te_offers_is_documented(name):
    assert getattr(te, name).__doc__


def test_gelu_has_its_digits_where_it_is_small():
    # x·erfc(-x/√2)/2 in 60 digits.
    x = np.array([-38.5, -37.6, -30.1, -29.9, -10.1, -3.3, -0.7, -1e-300, 0.3, 5.7])
    digits = """
        -0x0.000000000000bp-1022 -0x1.d0f5c1d3ff2afp-1022 -0x1.17178d2143cf8p-655 -0x1.b7d016bd33617p-647
        -0x1.0dce6222a8503p-75 -0x1.a232bfa338b90p-10 -0x1.5ae10c2977229p-3 -0x1.56e1fc2f8f359p-998
        0x1.7ba510284da91p-3 0x1.6ccccca8230fdp+2
    """
    want = np.array([float.fromhex(word) for word in digits.split()])
    np.testing.assert_array_max_ulp(scalar(te.gelu, x), want, 3)
