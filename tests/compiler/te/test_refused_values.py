"""Values of dtypes that do not go together are refused where the user wrote them."""

import math

import pytest
from te_mistakes import A, B, H, N, T, check_refusal, over

from tilewright.compiler import te
from tilewright.compiler.ir import TypeMismatch

MISTAKES = {
    "a maximum of two dtypes": (
        over(lambda i: te.maximum(A[i, 0], H[i])),
        TypeMismatch,
        "te.maximum: the operands are float32 and float16; te.cast one of them",
    ),
    "tensors of two dtypes": (
        over(lambda i: A[i, 0] + H[i]),
        TypeMismatch,
        "+: the operands are float32 and float16; te.cast one of them",
    ),
    "a comparison of two dtypes": (
        over(lambda i: te.if_then_else(A[i, 0] < N[i], 1.0, A[i, 0])),
        TypeMismatch,
        "<: the operands are float32 and int32; te.cast one of them",
    ),
    "branches of two dtypes": (
        over(lambda i: te.if_then_else(T[i], A[i, 0], N[i])),
        TypeMismatch,
        "te.if_then_else: the operands are float32 and int32; te.cast one of them",
    ),
    "an index as a value": (
        over(lambda i: A[i, 0] * i),
        TypeMismatch,
        "*: the other operand is the index i; te.cast makes it a value",
    ),
    "a tensor as an operand": (
        over(lambda i: A[i, 0] + B),
        TypeMismatch,
        "+: the other operand is the tensor 'B', which must be indexed",
    ),
    "tensors added": (
        lambda: A + B,
        TypeMismatch,
        "the tensor 'A' has no operators; index it inside of te.compute",
    ),
    "bool + bool": (over(lambda i: T[i] + T[i]), TypeMismatch, "'add' takes numbers, got bool; use `|`"),
    "bool * bool": (over(lambda i: T[i] * T[i]), TypeMismatch, "'mul' takes numbers, got bool; use `&`"),
    "minus a bool": (over(lambda i: -T[i]), TypeMismatch, "'neg' takes numbers, got bool; use `~`"),
    "bools ordered": (over(lambda i: T[i] < T[i]), TypeMismatch, "'lt' orders numbers, got bool"),
    "/ of integers": (
        over(lambda i: N[i] / N[i]),
        TypeMismatch,
        "'truediv' takes floats, got int32; use `//` or te.truncdiv, or te.cast to a float first",
    ),
    "// of floats": (
        over(lambda i: A[i, 0] // A[i, 1]),
        TypeMismatch,
        "'floordiv' takes integers, got float32; use te.floor(a / b)",
    ),
    "a power of integers": (
        over(lambda i: N[i] ** N[i]),
        TypeMismatch,
        "'pow' takes floats, got int32; write the product, or te.cast to a float first",
    ),
    "bits of floats": (
        over(lambda i: A[i, 0] & A[i, 1]),
        TypeMismatch,
        "'and' takes integers or booleans, got float32",
    ),
    "exp of integers": (over(lambda i: te.exp(N[i])), TypeMismatch, "'exp' takes floats, got int32"),
    "exp of an index": (
        over(lambda i: te.exp(i)),
        TypeMismatch,
        "the operand of te.exp must be a value, got the index i; te.cast makes it a value",
    ),
    "an unknown dtype of a cast": (
        over(lambda i: te.cast(A[i, 0], "complex64")),
        TypeMismatch,
        "unknown dtype 'complex64'; known: int8, int16, int32, int64, uint8, uint16, uint32, uint64, "
        "float16, "
        "float32, float64, bfloat16, bool",
    ),
    "a function of math": (
        over(lambda i: math.exp(A[i, 0])),
        TypeMismatch,
        "a symbolic expression is no number while the program is written; te.cast changes its dtype, "
        "and te.exp and its like take the place of the functions of math",
    ),
    "a Python number of a value": (
        over(lambda i: int(A[i, 0])),
        TypeMismatch,
        "a symbolic expression is no number while the program is written; te.cast changes its dtype, "
        "and te.exp and its like take the place of the functions of math",
    ),
}


@pytest.mark.parametrize("name", MISTAKES)
def test_the_refusal_of(name):
    mistake, error, _ = MISTAKES[name]
    with pytest.raises(error) as e:
        mistake()
    check_refusal(MISTAKES[name], e, __file__)
