"""Mistakes about reductions and their axes are refused where the user made them."""

import pytest
from te_mistakes import C300, A, B, N, check_refusal, k, k2, m, n300, over

from tilewright.compiler import te
from tilewright.compiler.ir import TypeMismatch

MISTAKES = {
    "a reduce axis outside of a reduction": (
        over(lambda i: A[i, k]),
        te.TensorError,
        "te.compute 'C' uses 'k', which is neither a variable of the function nor the axis of a reduction "
        "around it",
    ),
    "a reduce axis beside its reduction": (
        over(lambda i: te.sum(A[i, k], axis=k) + B[k]),
        te.TensorError,
        "te.compute 'C' uses 'k', which is neither a variable of the function nor the axis of a reduction "
        "around it",
    ),
    "a reduce axis that is not used": (
        over(lambda i: te.sum(A[i, 0], axis=k)),
        te.TensorError,
        "te.sum: the expression does not use the reduce axis 'k'",
    ),
    "a reduce axis given twice": (
        over(lambda i: te.max(A[i, k], axis=[k, k])),
        te.TensorError,
        "te.max: the reduce axis 'k' is given twice",
    ),
    "a reduce axis reduced twice": (
        over(lambda i: te.sum(te.max(A[i, k], axis=k) * B[k], axis=k)),
        te.TensorError,
        "te.sum: the reduce axis 'k' is reduced already by te.max inside of the expression; nested "
        "reductions take an axis each",
    ),
    "a reduce axis reduced twice, deep inside": (
        over(lambda i: te.max(te.exp(te.sum(B[k2] * te.min(A[0, k], axis=k), axis=k2)) * B[k], axis=k)),
        te.TensorError,
        "te.max: the reduce axis 'k' is reduced already by te.min inside of the expression; nested "
        "reductions take an axis each",
    ),
    "a reduce axis of a place reduced twice": (
        over(lambda i: te.sum(te.argmin(B[k], axis=k) * N[k], axis=k)),
        te.TensorError,
        "te.sum: the reduce axis 'k' is reduced already by te.argmin inside of the expression; nested "
        "reductions take an axis each",
    ),
    "several conditions over an axis": (
        over(lambda i: te.all(A[i, k] > 0, A[i, k] < 1, axis=k)),
        te.TensorError,
        "te.all: one condition over `axis`, got 2",
    ),
    "numbers as conditions over an axis": (
        over(lambda i: te.any(A[i, k], axis=k)),
        TypeMismatch,
        "te.any: a condition must be a bool, got float32",
    ),
    "bits of floats reduced": (
        over(lambda i: te.reduce_xor(A[i, k], axis=k)),
        TypeMismatch,
        "te.reduce_xor takes integers or booleans, got float32",
    ),
    "a place of bools": (
        over(lambda i: te.argmax(A[i, k] > 0, axis=k)),
        TypeMismatch,
        "te.argmax takes numbers, got bool; te.cast it first",
    ),
    "a place as a float": (
        over(lambda i: te.argmax(A[i, k], axis=k, dtype="float32")),
        TypeMismatch,
        "te.argmax: the dtype of a place is an integer, got float32",
    ),
    "a place that does not fit": (
        over(lambda i: te.argmin(C300[n300], axis=n300, dtype="int8")),
        te.TensorError,
        "te.argmin: places run from 0 to 299 and do not fit into int8, which holds -128 to 127",
    ),
    "a guard of another variable": (
        over(lambda i: te.sum(te.if_then_else(i < 3, B[m], 0.0), axis=m)),
        te.TensorError,
        "'B' has the extent 3 in dimension 0, but the index m takes values from 0 to 63; "
        "guard the read with te.if_then_else",
    ),
    "a guard on a value": (
        over(lambda i: te.if_then_else(A[i, 0] > 0, B[i], 0.0)),
        te.TensorError,
        "'B' has the extent 3 in dimension 0, but the index i takes values from 0 to 3; "
        "guard the read with te.if_then_else",
    ),
    "an index as a reduce axis": (
        over(lambda i: te.sum(A[i, 0], axis=[i])),
        te.TensorError,
        "te.sum: `axis` takes what te.reduce_axis made, got i",
    ),
    "a second operand as a reduce axis": (
        over(lambda i: te.max(A[i, 0], B[0])),
        te.TensorError,
        "te.max: `axis` takes what te.reduce_axis made, got B[0]; te.maximum takes two operands",
    ),
    "a reduce axis longer than the tensor": (
        over(lambda i: te.sum(B[m], axis=m)),
        te.TensorError,
        "'B' has the extent 3 in dimension 0, but the index m takes values from 0 to 63; "
        "guard the read with te.if_then_else",
    ),
    "a guard that lets one element too many through": (
        over(lambda i: te.if_then_else(i < 4, B[i], 0.0), (5,)),
        te.TensorError,
        "'B' has the extent 3 in dimension 0, but the index i takes values from 0 to 4; "
        "guard the read with te.if_then_else",
    ),
    "a sum of bools": (
        over(lambda i: te.sum(A[i, k] > 0, axis=k)),
        TypeMismatch,
        "te.sum takes numbers, got bool; te.cast it first",
    ),
    "an empty reduce axis": (
        lambda: te.reduce_axis((4, 4), name="k"),
        te.TensorError,
        "te.reduce_axis 'k': the domain (4, 4) is empty",
    ),
    "a reduce axis without a pair": (
        lambda: te.reduce_axis(4, name="k"),
        te.TensorError,
        "te.reduce_axis 'k': the domain must be a pair (low, high), got 4",
    ),
}


@pytest.mark.parametrize("name", MISTAKES)
def test_the_refusal_of(name):
    mistake, error, _ = MISTAKES[name]
    with pytest.raises(error) as e:
        mistake()
    check_refusal(MISTAKES[name], e, __file__)
