"""The reference: values by NumPy in float64 or exact integers, and bounds that hold for what a kernel may
do."""

import hashlib
import time

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tilewright.compiler import interpret, te, topi
from tilewright.compiler.schedule import Schedule

FLOATS = ("float32", "float64", "float16", "bfloat16")
INTEGERS = ("int8", "uint8", "int16", "uint16", "int32", "uint32", "int64", "uint64")


def elementwise(element, *dtypes, n=64):
    """A program over 1-d inputs of the given dtypes: element(x, y, …) at each index."""
    xs = [te.placeholder((n,), dtype, name=f"X{d}") for d, dtype in enumerate(dtypes)]
    return te.create_prim_func(
        [*xs, te.compute((n,), lambda i: element(*(x[i] for x in xs)), name="Y")], name="f"
    )


def reference(func, *inputs):
    """(outputs, tolerances) of the one output."""
    arrays = interpret.random_inputs(func, 0)
    for a, x in zip(arrays, inputs, strict=False):
        a[...] = x
    e = interpret.expected(func, arrays)
    return e.outputs[0], e.tolerances[0]


def agree(func, seed=0):
    """Runs the scalar interpreter and checks it against the reference."""
    arrays = interpret.random_inputs(func, seed)
    expected = interpret.expected(func, arrays)
    interpret.run(func, arrays)
    return interpret.check(expected, arrays)


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


def test_inputs_are_the_same_on_every_machine():
    func = te.create_prim_func(
        [
            a := te.placeholder((3, 5), "float32", name="A"),
            n := te.placeholder((5,), "int16", name="N"),
            te.compute((3, 5), lambda i, j: a[i, j] + te.cast(n[j], "float32"), name="C"),
        ]
    )
    text = b"".join(x.tobytes() for x in interpret.random_inputs(func, 42))
    assert hashlib.sha256(text).hexdigest() == GOLDEN_INPUTS


GOLDEN_INPUTS = "78df88ac28d10554053f550697bf8ff5c73275cd13e19b2702275633b20c2e42"


def test_inputs_of_another_seed_differ():
    func = topi.create({"op": "add", "shape": [4]})
    one, two = interpret.random_inputs(func, 1), interpret.random_inputs(func, 2)
    assert not np.array_equal(one[0], two[0]) and not np.array_equal(one[0], one[1])


@pytest.mark.parametrize("dtype", FLOATS)
def test_outputs_of_floats_are_poisoned_with_not_a_number(dtype):
    func = elementwise(lambda x: x, dtype)
    assert np.isnan(interpret.random_inputs(func, 0)[1].astype(np.float64)).all()


@pytest.mark.parametrize("dtype", (*INTEGERS, "bool"))
def test_outputs_of_integers_are_poisoned_with_a_pattern(dtype):
    func = elementwise(lambda x: x, dtype)
    assert set(interpret.random_inputs(func, 0)[1].view(np.uint8).tolist()) == {0xA5}


def test_the_inputs_stay_as_they_were():
    func = topi.create({"op": "matmul", "m": 3, "n": 4, "k": 5})
    arrays = interpret.random_inputs(func, 0)
    before = [a.copy() for a in arrays]
    interpret.expected(func, arrays)
    assert all(np.array_equal(a, b, equal_nan=True) for a, b in zip(arrays, before, strict=True))


def test_a_scheduled_program_has_no_reference():
    sch = Schedule(topi.create({"op": "add", "shape": [8]}))
    sch.split(*sch.get_loops(sch.get_block("Y")), factors=[None, 4])
    with pytest.raises(interpret.NotPlain) as e:
        interpret.expected(sch.func, interpret.random_inputs(sch.func, 0))
    assert str(e.value) == (
        "'add' is not an unscheduled program: the block 'Y' is not bound to one loop for each of its "
        "iteration variables"
    )


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda arrays: arrays[:2], "'add' has 3 parameters, got 2 arrays"),
        (lambda arrays: [arrays[0][:4], *arrays[1:]], "the parameter 'A' is float32[8], got float32[4]"),
        (
            lambda arrays: [arrays[0].astype(np.float64), *arrays[1:]],
            "the parameter 'A' is float32[8], got float64[8]",
        ),
    ],
)
@pytest.mark.parametrize("f", [interpret.expected, interpret.run])
def test_arrays_that_do_not_fit_are_refused(f, change, message):
    func = topi.create({"op": "add", "shape": [8]})
    with pytest.raises(ValueError) as e:
        f(func, change(interpret.random_inputs(func, 0)))
    assert str(e.value) == message


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
