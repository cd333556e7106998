"""The check: right outputs pass, and no planted error does."""

import ml_dtypes
import numpy as np
import pytest

from tilewright.compiler import interpret, te, topi


@pytest.fixture
def right():
    """A matmul's expectation, and arrays that hold its right output."""
    func = topi.create({"op": "matmul", "m": 6, "n": 8, "k": 10})
    arrays = interpret.random_inputs(func, 0)
    expected = interpret.expected(func, arrays)
    arrays[2][...] = expected.outputs[0]
    return expected, arrays


def test_a_right_output_passes(right):
    result = interpret.check(*right)
    assert (result.ok, result.message, 0.0 <= result.worst < 0.1) == (True, "", True)


def test_an_output_that_was_never_written_fails(right):
    expected, (a, b, c) = right
    c.fill(np.nan)
    result = interpret.check(expected, [a, b, c])
    assert (result.ok, result.worst) == (False, float("inf"))
    assert result.message.startswith("output 'C' is wrong at [0, 0]: got nan, want ")
    assert result.message.endswith("; 48 of 48 elements are wrong")


def test_an_unwritten_half_fails(right):
    expected, (a, b, c) = right
    c[3:] = np.nan
    assert interpret.check(expected, [a, b, c]).message.endswith("; 24 of 48 elements are wrong")


def test_one_wrong_tail_row_fails_at_its_index(right):
    expected, (a, b, c) = right
    c[5] = c[4]
    result = interpret.check(expected, [a, b, c])
    assert (result.ok, result.message.startswith("output 'C' is wrong at [5, ")) == (False, True)
    assert result.message.endswith("; 8 of 48 elements are wrong")


def test_one_element_off_by_a_little_more_than_the_tolerance_fails(right):
    expected, (a, b, c) = right
    c[2, 3] = expected.outputs[0][2, 3] + 1.5 * expected.tolerances[0][2, 3]
    result = interpret.check(expected, [a, b, c])
    assert (result.ok, 1.4 < result.worst < 1.6) == (False, True)
    assert result.message == (
        f"output 'C' is wrong at [2, 3]: got {float(c[2, 3]):.9g}, want {expected.outputs[0][2, 3]:.9g} "
        f"within "
        f"{expected.tolerances[0][2, 3]:.3g}; 1 of 48 elements are wrong"
    )


def test_one_element_off_by_less_than_the_tolerance_passes(right):
    expected, (a, b, c) = right
    c[2, 3] = expected.outputs[0][2, 3] + 0.5 * expected.tolerances[0][2, 3]
    result = interpret.check(expected, [a, b, c])
    assert (result.ok, 0.4 < result.worst < 0.6) == (True, True)


def test_a_missing_term_of_each_sum_fails(right):
    expected, (a, b, c) = right
    c[...] = a[:, :-1] @ b[:-1]
    assert not interpret.check(expected, [a, b, c]).ok


def test_an_infinity_fails(right):
    expected, (a, b, c) = right
    c[0, 0] = np.inf
    assert interpret.check(expected, [a, b, c]).message.startswith(
        "output 'C' is wrong at [0, 0]: got inf, want "
    )


def elementwise(element, dtype, values):
    x = te.placeholder((len(values),), dtype, name="X")
    func = te.create_prim_func([x, te.compute((len(values),), lambda i: element(x[i]), name="Y")], name="f")
    arrays = [np.array(values, x.dtype.numpy), interpret.poisoned(func.params[1])]
    return interpret.expected(func, arrays), arrays


def test_not_a_number_passes_where_it_is_expected():
    expected, arrays = elementwise(te.sqrt, "float32", [-1.0, 4.0])
    arrays[1][...] = [np.nan, 2.0]
    assert interpret.check(expected, arrays).ok


def test_a_number_where_not_a_number_is_expected_fails():
    expected, arrays = elementwise(te.sqrt, "float32", [-1.0, 4.0])
    arrays[1][...] = [0.0, 2.0]
    assert interpret.check(expected, arrays).message == (
        "output 'Y' is wrong at [0]: got 0, want nan; 1 of 2 elements are wrong"
    )


def test_an_infinity_passes_where_it_is_expected_with_its_sign():
    expected, arrays = elementwise(lambda x: 1.0 / x, "float32", [0.0, -0.0])
    arrays[1][...] = [np.inf, -np.inf]
    assert interpret.check(expected, arrays).ok
    arrays[1][...] = [np.inf, np.inf]
    assert interpret.check(expected, arrays).message == (
        "output 'Y' is wrong at [1]: got inf, want -inf; 1 of 2 elements are wrong"
    )


def test_an_integer_off_by_one_fails():
    expected, arrays = elementwise(lambda x: x * 2, "int32", [1, 2, 3])
    arrays[1][...] = [2, 4, 7]
    assert (
        interpret.check(expected, arrays).message
        == "output 'Y' is wrong at [2]: got 7, want 6; 1 of 3 elements are wrong"
    )


def test_a_large_integer_off_by_one_fails():
    expected, arrays = elementwise(lambda x: x + 1, "int64", [2**62])
    arrays[1][...] = [2**62]
    assert interpret.check(expected, arrays).message == (
        f"output 'Y' is wrong at [0]: got {2**62}, want {2**62 + 1}; 1 of 1 elements are wrong"
    )


def test_a_boolean_that_was_never_written_fails():
    expected, arrays = elementwise(lambda x: x > 0, "float32", [1.0, -1.0])
    assert interpret.check(expected, arrays).message.endswith("; 2 of 2 elements are wrong")
    arrays[1][...] = [True, False]
    assert interpret.check(expected, arrays).ok


def test_a_bfloat16_is_compared_by_its_own_rounding():
    expected, arrays = elementwise(lambda x: x * 3.0, "bfloat16", [1.1])
    arrays[1][...] = [ml_dtypes.bfloat16(3.3)]
    assert interpret.check(expected, arrays).ok
    arrays[1][...] = [ml_dtypes.bfloat16(3.4)]
    assert interpret.check(expected, arrays).message == (
        "output 'Y' is wrong at [0]: got 3.40625, want 3.3046875 within 0.0258; 1 of 1 elements are wrong"
    )


def test_the_second_output_is_checked_too():
    x = te.placeholder((3,), "int8", name="X")
    y = te.compute((3,), lambda i: x[i] + 1, name="Y")
    z = te.compute((3,), lambda i: x[i] * 2, name="Z")
    func = te.create_prim_func([y, x, z], name="f")
    arrays = [np.zeros(3, np.int8), np.array([1, 2, 3], np.int8), np.zeros(3, np.int8)]
    expected = interpret.expected(func, arrays)
    arrays[0][...] = [2, 3, 4]
    arrays[2][...] = [2, 4, 5]
    assert (
        interpret.check(expected, arrays).message
        == "output 'Z' is wrong at [2]: got 5, want 6; 1 of 3 elements are wrong"
    )


def test_an_array_of_another_shape_is_refused(right):
    expected, (a, b, c) = right
    with pytest.raises(ValueError) as e:
        interpret.check(expected, [a, b, c[:2]])
    assert str(e.value) == "the output 'C' has the shape (6, 8), got an array of (2, 8)"


LARGE = 3 * (1 << 14) + 5
"""Elements that are looked at in four pieces."""


@pytest.mark.parametrize("at", [0, (1 << 14) - 1, 1 << 14, LARGE - 1])
@pytest.mark.parametrize("got", [1.5, np.nan, np.inf])
def test_one_wrong_element_is_found_wherever_it_is(at: int, got: float) -> None:
    want = interpret.Expected((np.ones(LARGE),), (np.full(LARGE, 0.25),), ("y",), (0,))
    array = np.full(LARGE, 1.125, dtype=np.float32)
    found = interpret.check(want, [array])
    assert (found.ok, found.worst, found.message) == (True, 0.5, "")
    array[at] = got
    result = interpret.check(want, [array])
    assert (result.ok, result.message.partition(",")[0]) == (
        False,
        f"output 'y' is wrong at [{at}]: got {got:.9g}",
    )


def test_elements_without_tolerance_or_with_any_are_judged_among_many_others() -> None:
    tolerances = np.full(LARGE, 0.25)
    tolerances[[7, 40_000]] = 0.0, np.inf
    want = interpret.Expected((np.ones(LARGE),), (tolerances,), ("y",), (0,))
    array = np.full(LARGE, 1.0, dtype=np.float32)
    array[[9, 40_000]] = 1.125, np.nan
    found = interpret.check(want, [array])
    assert (found.ok, found.worst, found.message) == (True, 0.5, "")
    array[7] = np.nextafter(np.float32(1), np.float32(2))
    assert not interpret.check(want, [array]).ok
