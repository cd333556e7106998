"""Mistakes about indices are refused where the user made them."""

import pytest
from te_mistakes import A, B, N, check_refusal, over

from tilewright.compiler import te
from tilewright.compiler.ir import TypeMismatch


def leaked():
    """An index of one compute used in another."""
    seen = []
    te.compute((3,), lambda p: (seen.append(p), B[p])[1], name="P")
    te.compute((4,), lambda i: A[i, seen[0]], name="C")


MISTAKES = {
    "too few indices": (over(lambda i: A[i]), te.TensorError, "'A' has 2 dimensions, got 1 index"),
    "too many indices": (over(lambda i: B[i, 0]), te.TensorError, "'B' has 1 dimension, got 2 indices"),
    "clamping to nothing": (
        over(lambda i: te.clamp(A[i, 0], 1.0, 0.0)),
        te.TensorError,
        "te.clamp: the lower bound 1.0 is above the upper bound 0.0",
    ),
    "an index far below zero": (
        over(lambda i: B[i - 5]),
        te.TensorError,
        "'B' has the extent 3 in dimension 0, but the index i - 5 takes values from -5 to -2; "
        "guard the read with te.if_then_else",
    ),
    "an index out of range by arithmetic": (
        over(lambda i: B[i * 2 // 3 + 1]),
        te.TensorError,
        "'B' has the extent 3 in dimension 0, but the index (i * 2) // 3 + 1 takes values from 1 to 3; "
        "guard the read with te.if_then_else",
    ),
    "a constant index out of range": (
        over(lambda i: A[i, 3]),
        te.TensorError,
        "'A' has the extent 3 in dimension 1, but the index 3 takes values from 3 to 3; "
        "guard the read with te.if_then_else",
    ),
    "a variable of another compute": (
        leaked,
        te.TensorError,
        "te.compute 'C' uses 'p', which is neither a variable of the function nor the axis of a reduction "
        "around it",
    ),
    "an index out of range": (
        over(lambda i: A[i + 1, 0]),
        te.TensorError,
        "'A' has the extent 4 in dimension 0, but the index i + 1 takes values from 1 to 4; "
        "guard the read with te.if_then_else",
    ),
    "a value after an index": (
        over(lambda i: i * A[i, 0]),
        TypeMismatch,
        "*: the operands are an index and a value; te.cast(index, 'float32') makes it a value",
    ),
    "a value as an index": (
        over(lambda i: B[N[i]]),
        TypeMismatch,
        "an index of 'B' must be an integer expression of the variables, got a value of dtype int32",
    ),
    "a float as an index": (
        over(lambda i: B[0.5]),
        TypeMismatch,
        "an index of 'B' must be an integer expression of the variables, got the literal 0.5, which has no "
        "dtype; "
        "te.const gives it one",
    ),
    "an integer in an index that JSON does not hold": (
        over(lambda i: te.cast(i * 2**53, "int64")),
        te.TensorError,
        "*: the integers of an index must be below 2**53, got 9007199254740992",
    ),
    "an index beyond 64 bits": (
        over(lambda i, j: te.cast(i * j * (2**52 - 1) // 2**52, "int32"), (2048, 2048)),
        te.TensorError,
        "*: i * j * 4503599627370495 may need more than the 64 bits that indices are computed with",
    ),
    "an index of many factors": (
        over(lambda i: te.cast(i * i * i * i * i * i * i * i * i, "int64")),
        te.TensorError,
        f"*: a term of an index has at most 8 factors, got 9 in {' * '.join(['i'] * 9)}",
    ),
    "an index as a branch": (
        over(lambda i: te.if_then_else(i < 2, i, 0)),
        TypeMismatch,
        "te.if_then_else: a branch is the index i; te.cast makes it a value",
    ),
    "an index divided by a variable": (
        over(lambda i, j: A[i // (j + 1), 0], (4, 4)),
        te.TensorError,
        "//: an index is divided by a positive integer only, got j + 1",
    ),
    "a true division of an index": (over(lambda i: B[i / 2]), TypeMismatch, "an index has no '/'; use //"),
    "a truncated division of an index that may be negative": (
        over(lambda i: B[te.truncdiv(i - 1, 2)]),
        te.TensorError,
        "te.truncdiv: i - 1 may be negative, where truncated and floor division differ; use // and %",
    ),
    "a minimum of indices that may be negative": (
        over(lambda i: B[te.minimum(i - 1, 1)]),
        te.TensorError,
        "te.minimum: cannot prove that min(i - 1, 1) is not negative",
    ),
}


@pytest.mark.parametrize("name", MISTAKES)
def test_the_refusal_of(name):
    mistake, error, _ = MISTAKES[name]
    with pytest.raises(error) as e:
        mistake()
    check_refusal(MISTAKES[name], e, __file__)
