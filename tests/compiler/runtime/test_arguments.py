"""The refusals of arrays that a kernel cannot take, by their whole text."""

import pickle
from typing import Any

import numpy as np
import pytest

from tilewright.compiler.runtime import ArgumentError, ArgumentTypeError, ArgumentValueError, ParamInfo
from tilewright.compiler.runtime.arguments import ArgumentCheck

ADD = ArgumentCheck(
    "add",
    (
        ParamInfo("A", "float32", (2, 3), is_output=False),
        ParamInfo("B", "float32", (2, 3), is_output=False),
        ParamInfo("C", "float32", (2, 3), is_output=True),
    ),
)


def arrays() -> tuple[np.ndarray[Any, Any], ...]:
    a = np.arange(6, dtype=np.float32).reshape(2, 3)
    return a, a * 10, np.zeros((2, 3), np.float32)


def refusal(check: ArgumentCheck, *given: Any) -> tuple[type[ArgumentError], str]:
    with pytest.raises(ArgumentError) as caught:
        check(given)
    return type(caught.value), str(caught.value)


def test_arrays_that_fit_give_their_addresses() -> None:
    given = arrays()
    assert ADD(given) == [array.ctypes.data for array in given]


def test_too_few_arrays_are_refused() -> None:
    assert refusal(ADD, *arrays()[:2]) == (
        ArgumentTypeError,
        "add: takes 3 arrays (A, B, C), got 2",
    )


def test_a_list_is_refused() -> None:
    _, b, c = arrays()
    assert refusal(ADD, [[0.0] * 3] * 2, b, c) == (
        ArgumentTypeError,
        "add: argument 1, 'A': expected a numpy.ndarray, got builtins.list",
    )


def test_a_masked_array_is_refused_since_its_mask_would_be_lost() -> None:
    a, b, c = arrays()
    assert refusal(ADD, np.ma.masked_array(a, a > 2), b, c) == (
        ArgumentTypeError,
        "add: argument 1, 'A': expected a numpy.ndarray, got numpy.ma.MaskedArray",
    )


def test_another_dtype_is_refused() -> None:
    a, b, c = arrays()
    assert refusal(ADD, a, b.astype(np.float64), c) == (
        ArgumentTypeError,
        "add: argument 2, 'B': expected dtype float32, got float64",
    )


def test_foreign_byte_order_is_refused() -> None:
    a, b, c = arrays()
    assert refusal(ADD, a, b.astype(b.dtype.newbyteorder()), c) == (
        ArgumentTypeError,
        "add: argument 2, 'B': expected dtype float32, got float32 in foreign byte order",
    )


def test_bfloat16_is_not_its_bits() -> None:
    check = ArgumentCheck("copy", (ParamInfo("A", "bfloat16", (4,), is_output=False),))
    bits = np.zeros(4, np.uint16)
    assert refusal(check, bits) == (
        ArgumentTypeError,
        "copy: argument 1, 'A': expected dtype bfloat16, got uint16",
    )


def test_another_number_of_dimensions_is_refused() -> None:
    a, b, c = arrays()
    assert refusal(ADD, a.reshape(6), b, c) == (
        ArgumentValueError,
        "add: argument 1, 'A': expected 2 dimensions, shape (2, 3), got 1, shape (6,)",
    )


def test_another_shape_is_refused() -> None:
    a, b, c = arrays()
    assert refusal(ADD, a, b, c.reshape(3, 2)) == (
        ArgumentValueError,
        "add: argument 3, 'C': expected shape (2, 3), got (3, 2)",
    )


def test_an_input_with_gaps_is_refused_with_the_remedy() -> None:
    _, b, c = arrays()
    assert refusal(ADD, np.zeros((2, 6), np.float32)[:, ::2], b, c) == (
        ArgumentValueError,
        "add: argument 1, 'A': expected an array in C order without gaps, got strides (24, 8) "
        "for shape (2, 3); pass numpy.ascontiguousarray(A)",
    )


def test_a_transposed_output_is_refused_with_the_remedy() -> None:
    a, b, _ = arrays()
    assert refusal(ADD, a, b, np.zeros((3, 2), np.float32).T) == (
        ArgumentValueError,
        "add: argument 3, 'C': expected an array in C order without gaps, got strides (4, 8) "
        "for shape (2, 3); write to a contiguous array and copy it back",
    )


def test_a_broadcast_input_is_refused() -> None:
    _, b, c = arrays()
    assert refusal(ADD, np.broadcast_to(np.float32(1), (2, 3)), b, c) == (
        ArgumentValueError,
        "add: argument 1, 'A': expected an array in C order without gaps, got strides (0, 0) "
        "for shape (2, 3); pass numpy.ascontiguousarray(A)",
    )


def test_a_read_only_output_is_refused() -> None:
    a, b, c = arrays()
    c.flags.writeable = False
    assert refusal(ADD, a, b, c) == (
        ArgumentValueError,
        "add: argument 3, 'C': is an output and the array is read-only",
    )


def test_an_address_that_does_not_suit_the_dtype_is_refused() -> None:
    a, _, c = arrays()
    crooked = np.zeros(25, np.uint8)[1:].view(np.float32).reshape(2, 3)
    assert refusal(ADD, a, crooked, c) == (
        ArgumentValueError,
        "add: argument 2, 'B': expected an address that is a multiple of 4, the alignment of float32, "
        "got one that is not; pass B.copy()",
    )


def test_an_output_that_is_also_an_input_is_refused() -> None:
    a, b, _ = arrays()
    assert refusal(ADD, a, b, a) == (
        ArgumentValueError,
        "add: argument 3, 'C': is an output and shares memory with argument 1, 'A'",
    )


def test_an_output_that_touches_the_last_element_of_an_input_is_refused() -> None:
    block = np.zeros(11, np.float32)
    assert refusal(ADD, np.zeros((2, 3), np.float32), block[:6].reshape(2, 3), block[5:].reshape(2, 3)) == (
        ArgumentValueError,
        "add: argument 3, 'C': is an output and shares memory with argument 2, 'B'",
    )


@pytest.mark.parametrize(("kind", "base"), [(ArgumentTypeError, TypeError), (ArgumentValueError, ValueError)])
def test_an_argument_error_is_the_usual_error_of_python_and_survives_pickling(
    kind: type[ArgumentError], base: type[Exception]
) -> None:
    error = pickle.loads(pickle.dumps(kind("refused")))
    assert (issubclass(kind, base), type(error), str(error)) == (True, kind, "refused")
