"""Numbers that an operation cannot take are refused where the user wrote them."""

import numpy as np
import pytest
from te_mistakes import A, H, N, T, check_refusal, over

from tilewright.compiler import te
from tilewright.compiler.ir import TypeMismatch

MISTAKES = {
    "division by zero": (over(lambda i: N[i] // 0), TypeMismatch, "//: division by zero"),
    "remainder by zero": (
        over(lambda i: te.truncmod(N[i], 0)),
        TypeMismatch,
        "te.truncmod: division by zero",
    ),
    "a shift by the width": (
        over(lambda i: N[i] << 32),
        TypeMismatch,
        "<<: the shift 32 is not in [0, 32), the bits of int32",
    ),
    "a negative shift": (
        over(lambda i: N[i] >> np.int64(-1)),
        TypeMismatch,
        ">>: the shift -1 is not in [0, 32), the bits of int32",
    ),
    "a shift by a constant beyond the width": (
        over(lambda i: N[i] << te.const(32, "int32")),
        TypeMismatch,
        "<<: the shift 32 is not in [0, 32), the bits of int32",
    ),
    "an integer that Python does not write": (
        over(lambda i: N[i] + 10**5000),
        TypeMismatch,
        "the literal of 16610 bits does not fit into int32",
    ),
    "a comparison with such an integer": (
        over(lambda i: te.if_then_else(i < 2**60, A[i, 0], 0.0)),
        te.TensorError,
        "<: the integers of an index must be below 2**53, got -1152921504606846976",
    ),
    "a float literal for integers": (
        over(lambda i: N[i] * 2.0),
        TypeMismatch,
        "the literal 2.0 is a float and cannot be an int32",
    ),
    "an integer literal out of range": (
        over(lambda i: N[i] + 2**31),
        TypeMismatch,
        "the literal 2147483648 does not fit into int32, which holds -2147483648 to 2147483647",
    ),
    "an integer literal that a float cannot hold": (
        over(lambda i: A[i, 0] + (2**24 + 1)),
        TypeMismatch,
        "the literal 16777217 cannot be represented in float32",
    ),
    "a literal beyond float16": (
        over(lambda i: H[i] * 65535.0),
        TypeMismatch,
        "the literal 65535.0 is beyond the range of float16",
    ),
    "a literal below float16": (
        over(lambda i: H[i] + 1e-9),
        TypeMismatch,
        "the literal 1e-09 is too small for float16, which would round it to 0",
    ),
    "a bool literal among floats": (
        over(lambda i: A[i, 0] + True),
        TypeMismatch,
        "the literal True cannot be a float32; a bool takes True or False, and only a bool does",
    ),
    "a number among bools": (
        over(lambda i: T[i] & 1),
        TypeMismatch,
        "the literal 1 cannot be a bool; a bool takes True or False, and only a bool does",
    ),
    "a constant out of range": (
        lambda: te.const(300, "uint8"),
        TypeMismatch,
        "the literal 300 does not fit into uint8, which holds 0 to 255",
    ),
    "a number as a condition": (
        over(lambda i: te.if_then_else(N[i], 1.0, A[i, 0])),
        TypeMismatch,
        "te.if_then_else: a condition must be a bool, got int32",
    ),
    "two literals as branches": (
        over(lambda i: te.if_then_else(i < 2, 1.0, 0.0)),
        TypeMismatch,
        "te.if_then_else: the operands are the literal 1.0, which has no dtype; te.const gives it one, "
        "and the literal 0.0, which has no dtype; te.const gives it one",
    ),
}


@pytest.mark.parametrize("name", MISTAKES)
def test_the_refusal_of(name):
    mistake, error, _ = MISTAKES[name]
    with pytest.raises(error) as e:
        mistake()
    check_refusal(MISTAKES[name], e, __file__)
