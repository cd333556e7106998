"""Reductions by a combine function of the user's: those that are accepted, and why the others are not."""

import inspect

import numpy as np
import pytest

from tilewright.compiler import te
from tilewright.compiler.ir import TypeMismatch, script

RNG = np.random.default_rng(11)
KNOWN = (
    "known are x + y, x * y, x & y, x | y, x ^ y, te.minimum(x, y), te.maximum(x, y), "
    "or a selection of x or y by which is smaller"
)


def reduced(reducer, x):
    """[X, Y] with Y[i] reduced over row i."""
    X = te.placeholder(x.shape, str(x.dtype), name="X")
    k = te.reduce_axis((0, x.shape[1]), name="k")
    return [X, te.compute((x.shape[0],), lambda i: reducer(X[i, k], axis=k), name="Y")]


PLAIN = {
    "sum": (lambda x, y: x + y, lambda t: te.const(0, t), np.sum),
    "sum the other way round": (lambda x, y: y + x, lambda t: 0, np.sum),
    "product": (lambda x, y: x * y, lambda t: 1, np.prod),
    "minimum": (te.minimum, te.max_value, np.min),
    "maximum": (te.maximum, te.min_value, np.max),
    "the smaller one, selected": (lambda x, y: te.if_then_else(x < y, x, y), te.max_value, np.min),
    "the larger one, selected": (lambda x, y: te.if_then_else(y >= x, y, x), te.min_value, np.max),
    "not the larger one": (lambda x, y: te.if_then_else(~(x <= y), y, x), te.max_value, np.min),
}


@pytest.mark.parametrize("dtype", ["int32", "float32", "uint64"])
@pytest.mark.parametrize("name", PLAIN)
def test_a_combination_that_te_knows_gives_its_result(everywhere, name, dtype):
    combine, identity, numpy = PLAIN[name]
    x = RNG.integers(1, 6, (7, 11)).astype(dtype)
    got = everywhere(reduced(te.comm_reducer(combine, identity, name="mine"), x), x)[0]
    assert got.dtype == x.dtype and np.array_equal(got, numpy(x, axis=1))


def every_bit(dtype):
    return te.const(True, dtype) if dtype == "bool" else ~te.const(0, dtype)


@pytest.mark.parametrize("dtype", ["uint8", "int32", "bool"])
@pytest.mark.parametrize(
    ("combine", "start", "numpy"),
    [
        (lambda x, y: x & y, -1, np.bitwise_and),
        (lambda x, y: x | y, 0, np.bitwise_or),
        (lambda x, y: x ^ y, 0, np.bitwise_xor),
    ],
    ids=["and", "or", "xor"],
)
def test_combinations_of_bits(everywhere, combine, start, numpy, dtype):
    x = RNG.integers(0, 100, (7, 11)).astype(dtype)
    bits = te.comm_reducer(combine, lambda t: np.array(start).astype(t)[()], name="bits")
    assert np.array_equal(everywhere(reduced(bits, x), x)[0], numpy.reduce(x, axis=1))


def argument(better, tie):
    """(place, value) of the extreme value."""

    def combine(x, y):
        first = te.any(better(x[1], y[1]), te.all(x[1] == y[1], tie(x[0], y[0])))
        return te.if_then_else(first, x[0], y[0]), te.if_then_else(first, x[1], y[1])

    return combine


def less(a, b):
    return a < b


def greater(a, b):
    return a > b


def ends(place, value):
    return lambda t, u: (place(t), value(u))


def last(numpy, x):
    return x.shape[1] - 1 - numpy(x[:, ::-1], axis=1)


ARGUMENTS = {
    "the first smallest": (argument(less, less), ends(te.max_value, te.max_value), np.argmin),
    "the first largest": (argument(greater, less), ends(te.max_value, te.min_value), np.argmax),
    "the last smallest": (
        argument(less, greater),
        ends(te.min_value, te.max_value),
        lambda x, axis: last(np.argmin, x),
    ),
    "the last largest": (
        argument(greater, greater),
        ends(te.min_value, te.min_value),
        lambda x, axis: last(np.argmax, x),
    ),
}


@pytest.mark.parametrize("dtype", ["int16", "float32"])
@pytest.mark.parametrize("name", ARGUMENTS)
def test_a_combination_of_places_and_values(everywhere, name, dtype):
    combine, identity, numpy = ARGUMENTS[name]
    place = te.comm_reducer(combine, identity, name="place")
    x = RNG.integers(-2, 3, (9, 14)).astype(dtype)
    X = te.placeholder(x.shape, dtype, name="X")
    k = te.reduce_axis((0, 14), name="k")
    outputs = te.compute((9,), lambda i: place((te.cast(k, "int32"), X[i, k]), axis=k), name="P")
    where, value = everywhere([X, *outputs], x)
    assert np.array_equal(where, numpy(x, axis=1))
    assert np.array_equal(value, x[np.arange(9), where])


def test_a_value_may_be_a_minimum_beside_a_place_that_is_selected():
    def combine(x, y):
        mine = te.any(x[0] < y[0], te.all(x[0] == y[0], x[1] < y[1]))
        return te.minimum(x[0], y[0]), te.if_then_else(mine, x[1], y[1])

    te.comm_reducer(combine, lambda t, u: (te.max_value(t), te.max_value(u)))


def test_components_that_have_nothing_to_do_with_each_other(everywhere):
    both = te.comm_reducer(
        lambda x, y: (x[0] + y[0], te.maximum(x[1], y[1])), lambda t, u: (0, te.min_value(u))
    )
    x = RNG.integers(-9, 9, (5, 7)).astype("int32")
    X = te.placeholder(x.shape, "int32", name="X")
    k = te.reduce_axis((0, 7), name="k")
    outputs = te.compute((5,), lambda i: both((X[i, k], X[i, k]), axis=k), name="B")
    total, top = everywhere([X, *outputs], x)
    assert np.array_equal(total, x.sum(1)) and np.array_equal(top, x.max(1))


def test_a_user_made_sum_of_halves_accumulates_as_te_sum_does():
    x = te.placeholder((4,), "float16", name="X")
    k = te.reduce_axis((0, 4), name="k")
    mine = te.comm_reducer(lambda a, b: a + b, lambda t: 0.0, name="mine")
    own = te.compute((), lambda: mine(x[k], axis=k), name="Y")
    known = te.compute((), lambda: te.sum(x[k], axis=k), name="Y")
    text = script(te.create_prim_func([x, own]))
    assert text.replace("Y_mine", "Y_sum") == script(te.create_prim_func([x, known]))


def zero(t):
    return te.const(0, t)


def zeros(t, u):
    return te.const(0, t), te.const(0, u)


UNKNOWN = (
    "te.comm_reducer 'r': the result is {}, which is not known to be associative and commutative; " + KNOWN
)
REFUSED = {
    "a difference": (lambda x, y: x - y, zero, UNKNOWN.format("x - y")),
    "a multiple": (lambda x, y: x + y * 2, zero, UNKNOWN.format("x + y * 2")),
    "a sum and more": (lambda x, y: x * y + 1, zero, UNKNOWN.format("x * y + 1")),
    "the first operand": (lambda x, y: x, zero, UNKNOWN.format("x")),
    "one operand twice": (lambda x, y: x + x, zero, UNKNOWN.format("x + x")),
    "a mean": (lambda x, y: (x + y) / 2.0, lambda t: 0.0, UNKNOWN.format("(x + y) / 2.0")),
    "a quotient": (lambda x, y: x // y, zero, UNKNOWN.format("x // y")),
    "an absolute value": (lambda x, y: te.abs(x) + te.abs(y), zero, UNKNOWN.format("abs(x) + abs(y)")),
    "a selection by a constant": (
        lambda x, y: te.if_then_else(x > 0, x, y),
        zero,
        "te.comm_reducer 'r': the result is (x if (x > 0) else y), which is not known to be associative and "
        "commutative; its condition is more than comparisons of x with y, component by component; " + KNOWN,
    ),
    "a selection that orders nothing": (
        lambda x, y: te.if_then_else(x == y, x, y),
        zero,
        "te.comm_reducer 'r': the result is (x if (x == y) else y), which is not known to be associative and "
        "commutative; its condition does not order the operands; " + KNOWN,
    ),
    "another dtype": (
        lambda x, y: te.cast(x + y, "float64"),
        zero,
        "te.comm_reducer 'r': the result is float64(x + y), which is not known to be associative and "
        "commutative; it is float64, and the operands are int32; " + KNOWN,
    ),
    "a place without a rule for equal values": (
        lambda x, y: (te.if_then_else(x[1] >= y[1], x[0], y[0]), te.if_then_else(x[1] >= y[1], x[1], y[1])),
        zeros,
        "te.comm_reducer 'r': component 0 is (x[0] if (x[1] >= y[1]) else y[0]), which is not known to be "
        "associative and commutative; where the components 1 are equal it depends on which operand comes "
        "first; let the smaller component 0 decide; " + KNOWN,
    ),
    "a place of another extreme": (
        lambda x, y: (
            te.if_then_else(te.any(x[1] > y[1], te.all(x[1] == y[1], x[0] < y[0])), x[0], y[0]),
            te.minimum(x[1], y[1]),
        ),
        zeros,
        "te.comm_reducer 'r': component 0 is (x[0] if (x[1] > y[1]) | (x[1] == y[1]) & (x[0] < y[0]) else "
        "y[0]), which is not known to be associative and commutative; it is chosen by the maximum of "
        "component 1, which is not what becomes of that component; " + KNOWN,
    ),
    "components that are swapped": (
        lambda x, y: (x[1] + y[1], x[0] + y[0]),
        zeros,
        "te.comm_reducer 'r': component 0 is x[1] + y[1], which is not known to be associative and "
        "commutative; " + KNOWN,
    ),
    "one component too few": (
        lambda x, y: x[0] + y[0],
        zeros,
        "te.comm_reducer 'r': the combine function must return a tuple of 2, got a value of dtype int32",
    ),
    "the identity of a product for a sum": (
        lambda x, y: x + y,
        lambda t: te.const(1, t),
        "te.comm_reducer 'r': the identity is 1; a sum of int32 is left as it is by 0 only",
    ),
    "zero for a maximum": (
        te.maximum,
        zero,
        "te.comm_reducer 'r': the identity is 0; a maximum of int32 is left as it is by -2147483648 only",
    ),
    "minus one for a place": (
        argument(less, less),
        lambda t, u: (te.const(-1, t), te.max_value(u)),
        "te.comm_reducer 'r': the identity of component 0 is -1; the smallest place of int32 is left as it "
        "is by 2147483647 only",
    ),
    "one operand": (
        lambda x: x,
        zero,
        "te.comm_reducer 'r': the combine function must take 2 arguments, the operands",
    ),
    "no function": (3, zero, "te.comm_reducer 'r': the combine function is int"),
    "an identity without a dtype": (
        lambda x, y: x + y,
        lambda: 0,
        "te.comm_reducer 'r': the identity function must take a dtype for each component, takes none",
    ),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_is_refused_at_its_definition(name):
    combine, identity, message = REFUSED[name]
    with pytest.raises(te.TensorError) as e:
        te.comm_reducer(combine, identity, name="r")
    first, place = str(e.value).split("\n")
    assert first == message and place.startswith("  at test_comm_reducer.py:")


def test_a_refusal_names_the_line_of_the_component():
    def combine(x, y):
        total = x[0] + y[0]
        return total, x[1] - y[1]

    line = inspect.getsourcelines(combine)[1] + 2
    with pytest.raises(te.TensorError, match=f"at test_comm_reducer.py:{line}$"):
        te.comm_reducer(combine, zeros)


def test_an_if_in_the_combine_function_is_refused_at_its_line():
    def combine(x, y):
        if x < y:
            return x
        return y

    line = inspect.getsourcelines(combine)[1] + 1
    with pytest.raises(TypeMismatch, match=f"use te.if_then_else instead of `if`(.|\n)*:{line}$"):
        te.comm_reducer(combine, zero)


def test_a_dtype_that_the_operation_does_not_have_is_refused_at_the_call():
    bits = te.comm_reducer(lambda x, y: x & y, lambda t: np.array(-1).astype(t)[()], name="bits")
    x = te.placeholder((4,), "float32", name="X")
    k = te.reduce_axis((0, 4), name="k")
    with pytest.raises(TypeMismatch, match="'and' takes integers or booleans, got float32"):
        te.compute((), lambda: bits(x[k], axis=k))


def test_an_identity_that_is_wrong_for_the_dtype_of_the_call_is_refused_there():
    low = te.comm_reducer(te.maximum, lambda t: te.const(0, t) if t == "uint8" else te.min_value(t))
    lower = te.comm_reducer(
        te.maximum, lambda t: te.const(1, t) if t == "uint8" else te.min_value(t), name="m"
    )
    x = te.placeholder((4,), "uint8", name="X")
    k = te.reduce_axis((0, 4), name="k")
    te.compute((), lambda: low(x[k], axis=k))
    with pytest.raises(
        te.TensorError, match="'m': the identity is 1; a maximum of uint8 is left as it is by 0"
    ):
        te.compute((), lambda: lower(x[k], axis=k))


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (
            lambda r, x, k: r(x[k], axis=k),
            "te.comm_reducer 'r' takes a tuple of 2 values, got a value of dtype float32",
        ),
        (
            lambda r, x, k: r((x[k],), axis=k),
            "te.comm_reducer 'r' takes a tuple of 2 values, got a tuple of 1",
        ),
        (
            lambda r, x, k: r((k, x[k]), axis=k),
            "te.comm_reducer 'r': expected a value, got the index k; te.cast makes it a value",
        ),
        (lambda r, x, k: r((x[k], x[k]), axis=3), "te.r: `axis` takes what te.reduce_axis made, got 3"),
        (lambda r, x, k: r((x[0], x[1]), axis=k), "te.r: the expression does not use the reduce axis 'k'"),
    ],
)
def test_calls_that_are_refused(call, message):
    r = te.comm_reducer(argument(less, less), ends(te.max_value, te.max_value), name="r")
    x = te.placeholder((4,), "float32", name="X")
    k = te.reduce_axis((0, 4), name="k")
    with pytest.raises((te.TensorError, TypeMismatch)) as e:
        te.compute((), lambda: call(r, x, k), name="C")
    assert str(e.value).split("\n")[0] == message
