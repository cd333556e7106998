"""The rules for dtypes: no promotion, literals that must fit, arithmetic that wraps at every step, sums that
are rounded once."""

import inspect
import math

import ml_dtypes
import numpy as np
import pytest

from tilewright.compiler import interpret, te
from tilewright.compiler.build import build
from tilewright.compiler.ir import TypeMismatch
from tilewright.compiler.schedule import Schedule

INTEGERS = [f"{kind}{bits}" for kind in ("int", "uint") for bits in (8, 16, 32, 64)]
FLOATS = ["float16", "bfloat16", "float32", "float64"]
DTYPES = [*INTEGERS, *FLOATS, "bool"]

OPERATORS = {
    "+": lambda a, b: a + b,
    "*": lambda a, b: a * b,
    "<": lambda a, b: a < b,
    "te.minimum": te.minimum,
}
#: What one dtype gives with itself; every other pair is refused.
TABLE = {
    **{(op, d): d for op in ("+", "*", "te.minimum") for d in (*INTEGERS, *FLOATS)},
    **{("<", d): "bool" for d in (*INTEGERS, *FLOATS)},
    ("+", "bool"): "'add' takes numbers, got bool; use `|`",
    ("*", "bool"): "'mul' takes numbers, got bool; use `&`",
    ("<", "bool"): "'lt' orders numbers, got bool",
    ("te.minimum", "bool"): "'min' takes numbers, got bool; use `&`",
}


@pytest.mark.parametrize("op", OPERATORS)
def test_every_pair_of_dtypes_gives_what_the_table_says(op):
    for left in DTYPES:
        for right in DTYPES:
            a, b = te.placeholder((2,), left, name="A"), te.placeholder((2,), right, name="B")
            want = TABLE[op, left] if left == right else f"{op}: the operands are {left} and {right}"
            if want in DTYPES:
                c = te.compute((2,), lambda i, a=a, b=b: OPERATORS[op](a[i], b[i]), name="C")
                assert str(c.dtype) == want
                assert str(te.create_prim_func([a, b, c]).params[2].dtype) == want
                continue
            with pytest.raises(TypeMismatch) as e:
                OPERATORS[op](a[0], b[0])
            message, place = str(e.value).split("\n")
            assert message == (want if left == right else f"{want}; te.cast one of them")
            assert place.startswith("  at test_dtype_rules.py:")


def numpy_dtype(dtype):
    return np.dtype(ml_dtypes.bfloat16) if dtype == "bfloat16" else np.dtype(dtype)


BEYOND = {
    "float16": [65520.0, 1e6, -1e6, 65535.0],
    "bfloat16": [3.4e38, 1e300],
    "float32": [3.5e38, -1e300],
}


@pytest.mark.parametrize(("dtype", "value"), [(d, v) for d, values in BEYOND.items() for v in values])
def test_a_literal_beyond_the_range_of_a_float_is_refused_wherever_it_stands(dtype, value):
    x = te.placeholder((2,), dtype, name="X")
    for mistake in (
        lambda: te.const(value, dtype),
        lambda: te.cast(value, dtype),
        lambda: x[0] + value,
        lambda: value * x[0],
        lambda: te.maximum(x[0], value),
        lambda: te.if_then_else(x[0] > 0, x[0], value),
        lambda: x[0] < value,
        lambda: te.clamp(x[0], value, 0.0) if value < 0 else te.clamp(x[0], 0.0, value),
    ):
        with pytest.raises(
            TypeMismatch, match=f"^the literal {value!r} is beyond the range of {dtype}\n".replace("+", r"\+")
        ):
            mistake()


@pytest.mark.parametrize(("dtype", "value"), [("float16", 65535), ("float32", 2**24 + 1), ("bfloat16", 257)])
def test_an_integer_literal_that_a_float_cannot_hold_is_refused(dtype, value):
    with pytest.raises(TypeMismatch):
        te.const(value, dtype)


@pytest.mark.parametrize("dtype", FLOATS)
def test_infinity_and_nan_are_literals_of_every_float(dtype):
    assert [repr(te.const(v, dtype)) for v in (math.inf, -math.inf, math.nan)] == ["inf", "-inf", "nan"]


@pytest.mark.parametrize("dtype", INTEGERS)
def test_integer_literals_reach_to_the_ends_of_their_dtype(dtype):
    info = np.iinfo(dtype)
    for value in (info.min, info.max):
        assert te.const(int(value), dtype).expr.value == value
    for value in (int(info.min) - 1, int(info.max) + 1):
        with pytest.raises(
            TypeMismatch, match=f"^the literal {value} does not fit into {dtype}, which holds"
        ):
            te.const(value, dtype)


def run(func, *inputs, schedule=None):
    s = Schedule(func)
    if schedule is not None:
        schedule(s)
    out = interpret.poisoned(func.params[-1])
    build(s)(*inputs, out)
    scalar = interpret.poisoned(func.params[-1])
    interpret.run(s.func, [*inputs, scalar])
    assert np.array_equal(out, scalar, equal_nan=out.dtype.kind == "f")
    return out


def inlined(s):
    s.compute_inline(s.get_block("B"))


def vectors(s):
    for name in [b.name for _, b in s.func.blocks()]:
        (i,) = s.get_loops(s.get_block(name))
        s.vectorize(s.split(i, [None, 8])[1])


def both(s):
    inlined(s)
    vectors(s)


@pytest.mark.parametrize("schedule", [None, inlined, vectors, both])
def test_a_constant_at_the_edge_is_the_same_before_and_after_inlining(schedule):
    x = np.linspace(-3, 3, 11).astype("float32")
    X = te.placeholder((11,), "float32", name="X")
    b = te.compute((11,), lambda i: X[i] * 0.0 + te.const(3.0e38, "float32"), name="B")
    c = te.compute((11,), lambda i: b[i] * 10.0 - b[i], name="C")
    with np.errstate(over="ignore"):
        want = (x * np.float32(0) + np.float32(3.0e38)) * np.float32(10) - np.float32(3.0e38)
    assert np.array_equal(run(te.create_prim_func([X, c]), x, schedule=schedule), want)


STEPS = {
    "sub": lambda a, b: a - b,
    "add": lambda a, b: a + b,
    "mul": lambda a, b: a * b,
}


@pytest.mark.parametrize("schedule", [None, inlined, vectors, both])
@pytest.mark.parametrize("dtype", ["uint8", "uint16", "uint32", "uint64"])
@pytest.mark.parametrize("op", STEPS)
def test_unsigned_arithmetic_wraps_under_every_schedule(op, dtype, schedule):
    top = np.iinfo(dtype).max
    e = np.array([0, 1, 2, 3, top // 2, top - 1, top], dtype)
    a, b = np.repeat(e, 7), np.tile(e, 7)
    A, B = te.placeholder((49,), dtype, name="A"), te.placeholder((49,), dtype, name="B_in")
    first = te.compute((49,), lambda i: STEPS[op](A[i], B[i]), name="B")
    # Division and comparison see whether the step before them wrapped.
    second = te.compute((49,), lambda i: te.if_then_else(first[i] > 5, first[i] // 3, first[i] - 7), name="C")
    with np.errstate(over="ignore"):
        step = STEPS[op](a, b)
        want = np.where(step > 5, step // np.dtype(dtype).type(3), step - np.dtype(dtype).type(7))
    got = run(te.create_prim_func([A, B, second]), a, b, schedule=schedule)
    assert got.dtype == want.dtype and np.array_equal(got, want)


@pytest.mark.parametrize("schedule", [None, inlined, vectors, both])
def test_a_chain_of_uint8_wraps_at_every_step(schedule):
    x = np.array([200, 100, 0, 255, 1, 156, 157], "uint8")
    X = te.placeholder((7,), "uint8", name="X")
    b = te.compute((7,), lambda i: X[i] + 100, name="B")
    c = te.compute((7,), lambda i: te.cast(-b[i], "int32"), name="C")
    want = np.negative(x + np.uint8(100)).astype("int32")
    assert np.array_equal(run(te.create_prim_func([X, c]), x, schedule=schedule), want)


@pytest.mark.parametrize("dtype", ["int8", "uint8", "int16", "uint16"])
def test_a_sum_of_narrow_integers_wraps_once_at_its_end(everywhere, dtype):
    info = np.iinfo(dtype)
    x = np.array([[info.max] * 5, [info.max, info.max, info.max, info.min, info.min], [1] * 5], dtype)
    X = te.placeholder(x.shape, dtype, name="X")
    k = te.reduce_axis((0, 5), name="k")
    # Halved before it is narrow again, so that a step that wrapped would show.
    y = te.compute((3,), lambda i: te.sum(X[i, k], axis=k), name="Y")
    wide = te.compute((3,), lambda i: te.sum(X[i, k], axis=k, dtype="int32") // 2, name="Y")
    assert np.array_equal(everywhere([X, y], x)[0], x.sum(1, dtype="int64").astype(dtype))
    assert np.array_equal(everywhere([X, wide], x)[0], x.sum(1, dtype="int32") // 2)


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_a_sum_of_narrow_floats_is_rounded_once(dtype):
    # 2048 + 1 is 2048 in float16, and 256 + 1 is 256 in bfloat16: a narrow accumulator would stand still.
    ones = 64
    big = 2048.0 if dtype == "float16" else 256.0
    x = np.array([big, *[1.0] * ones]).astype(numpy_dtype(dtype))
    X = te.placeholder(x.shape, dtype, name="X")
    k = te.reduce_axis((0, len(x)), name="k")
    y = te.compute((1,), lambda i: te.sum(X[k], axis=k), name="Y")
    out = np.zeros(1, numpy_dtype(dtype))
    interpret.run(te.create_prim_func([X, y]), [x, out])
    assert out[0] == numpy_dtype(dtype).type(big + ones)


@pytest.mark.parametrize("dtype", DTYPES[:-1])
@pytest.mark.parametrize("op", ["sum", "prod", "min", "max"])
def test_the_dtype_of_a_reduction_is_that_of_its_tensor_and_buffer(op, dtype):
    X = te.placeholder((4,), dtype, name="X")
    k = te.reduce_axis((0, 4), name="k")
    y = te.compute((), lambda: getattr(te, op)(X[k], axis=k), name="Y")
    assert str(y.dtype) == str(te.create_prim_func([X, y]).params[1].dtype) == dtype


@pytest.mark.parametrize("dtype", ["int8", "uint32", "int64", "float32", "float64"])
@pytest.mark.parametrize("wide", ["int64", "float64", "uint16"])
def test_a_given_dtype_is_that_of_the_tensor_the_buffer_and_the_array(dtype, wide):
    X = te.placeholder((3, 4), dtype, name="X")
    k = te.reduce_axis((0, 4), name="k")
    y = te.compute((3,), lambda i: te.sum(X[i, k], axis=k, dtype=wide), name="Y")
    func = te.create_prim_func([X, y])
    x = np.arange(12).reshape(3, 4).astype(dtype)
    got = build(func)
    out = np.zeros(3, wide)
    got(x, out)
    assert str(y.dtype) == str(func.params[1].dtype) == got.params[1].dtype == wide
    assert np.array_equal(out, x.sum(1, dtype=wide))


ARITIES = {
    "none": (lambda: 0, 0),
    "one": (lambda i: i, 1),
    "three": (lambda i, j, m: i, 3),
    "one and a default": (lambda i, j=1: i, 1),
}


@pytest.mark.parametrize("name", ARITIES)
def test_a_function_of_another_arity_is_refused_with_both_numbers_and_the_line(name):
    f, count = ARITIES[name]
    line = inspect.currentframe().f_lineno + 2
    with pytest.raises(te.TensorError) as e:
        te.compute((4, 8), f, name="C")
    takes = f"{count} argument" + ("" if count == 1 else "s")
    assert str(e.value) == (
        f"te.compute 'C': the function takes {takes}, but the shape has 2 dimensions; "
        f"expected 2, got {count}\n"
        f"  at test_dtype_rules.py:{line}"
    )


A = te.placeholder((4, 8), "float32", name="A")


@pytest.mark.parametrize(
    "f",
    [
        lambda i, j: A[i, j],
        lambda *i: A[i],
        lambda i, *rest: A[(i, *rest)],
        lambda i, j, *rest: A[(i, j, *rest)],
        lambda i, j, scale=2.0: A[i, j] * scale,
        lambda i, j, *, scale=2.0: A[i, j] * scale,
        lambda i, j, **options: A[i, j],
    ],
)
def test_a_function_of_exactly_as_many_indices_is_taken(f):
    assert te.compute((4, 8), f, name="C").shape == (4, 8)


def test_a_function_whose_least_arity_is_too_large_is_refused():
    with pytest.raises(te.TensorError, match=r"takes at least 3 arguments, .* expected 2, got 3\n"):
        te.compute((4, 8), lambda i, j, k, *rest: A[i, j], name="C")


def test_a_keyword_without_a_default_is_refused():
    with pytest.raises(
        te.TensorError, match=r"^te.compute 'C': the function needs the keyword argument 'scale'"
    ):
        te.compute((4, 8), lambda i, j, *, scale: A[i, j], name="C")


def test_a_function_whose_parameters_are_not_known_is_refused():
    with pytest.raises(
        te.TensorError, match=r"^te.compute 'C': the parameters of <class 'type'> are not known"
    ):
        te.compute((4, 8), type, name="C")
