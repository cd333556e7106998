"""Mistakes are refused where the user made them: by their whole text, with the file and the line of the
mistake."""

import linecache
import math

import numpy as np
import pytest

from tilewright.compiler import te
from tilewright.compiler.ir import TypeMismatch

A = te.placeholder((4, 3), "float32", name="A")
B = te.placeholder((3,), "float32", name="B")
N = te.placeholder((4,), "int32", name="N")
H = te.placeholder((4,), "float16", name="H")
T = te.placeholder((4,), "bool", name="T")
k = te.reduce_axis((0, 3), name="k")
m = te.reduce_axis((0, 64), name="m")
k2 = te.reduce_axis((0, 3), name="k2")
C300 = te.placeholder((300,), "float32", name="C300")
n300 = te.reduce_axis((0, 300), name="n300")


def over(f, shape=(4,)):
    """A compute of the function, over 4 elements."""
    return lambda: te.compute(shape, f, name="C")


def leaked():
    """An index of one compute used in another."""
    seen = []
    te.compute((3,), lambda p: (seen.append(p), B[p])[1], name="P")
    te.compute((4,), lambda i: A[i, seen[0]], name="C")


MISTAKES = {
    "too few arguments": (
        over(lambda i, j: A[i, j]),
        te.TensorError,
        "te.compute 'C': the function takes 2 arguments, but the shape has 1 dimension; expected 1, got 2",
    ),
    "too many arguments": (
        over(lambda i: A[i, 0], (4, 3)),
        te.TensorError,
        "te.compute 'C': the function takes 1 argument, but the shape has 2 dimensions; expected 2, got 1",
    ),
    "no function": (
        lambda: te.compute((4,), A, name="C"),
        te.TensorError,
        "te.compute 'C': expected a function of 1 index, got Tensor",
    ),
    "too few indices": (over(lambda i: A[i]), te.TensorError, "'A' has 2 dimensions, got 1 index"),
    "too many indices": (over(lambda i: B[i, 0]), te.TensorError, "'B' has 1 dimension, got 2 indices"),
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
    "clamping to nothing": (
        over(lambda i: te.clamp(A[i, 0], 1.0, 0.0)),
        te.TensorError,
        "te.clamp: the lower bound 1.0 is above the upper bound 0.0",
    ),
    "a maximum of two dtypes": (
        over(lambda i: te.maximum(A[i, 0], H[i])),
        TypeMismatch,
        "te.maximum: the operands are float32 and float16; te.cast one of them",
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
    "a value after an index": (
        over(lambda i: i * A[i, 0]),
        TypeMismatch,
        "*: the operands are an index and a value; te.cast(index, 'float32') makes it a value",
    ),
    "an index as the result": (
        over(lambda i: i),
        TypeMismatch,
        "te.compute 'C': the function must return a value, got the index i; te.cast makes it a value",
    ),
    "a number as the result": (
        over(lambda i: 1.0),
        TypeMismatch,
        "te.compute 'C': the function must return a value, got the literal 1.0, which has no dtype; "
        "te.const gives it one",
    ),
    "a tensor as the result": (
        over(lambda i: B),
        TypeMismatch,
        "te.compute 'C': the function must return a value, got the tensor 'B', which must be indexed",
    ),
    "nothing as the result": (
        over(lambda i: None),
        TypeMismatch,
        "te.compute 'C': the function must return a value, got NoneType",
    ),
    "no results": (
        over(lambda i: ()),
        te.TensorError,
        "te.compute 'C': the function must return a value, got an empty tuple",
    ),
    "a literal among the results": (
        over(lambda i: (A[i, 0], 1)),
        TypeMismatch,
        "te.compute 'C': entry 1 of the tuple must be a value, got the literal 1, which has no dtype; "
        "te.const gives it one",
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
    "bool + bool": (over(lambda i: T[i] + T[i]), TypeMismatch, "'add' takes numbers, got bool; use `|`"),
    "bool * bool": (over(lambda i: T[i] * T[i]), TypeMismatch, "'mul' takes numbers, got bool; use `&`"),
    "minus a bool": (over(lambda i: -T[i]), TypeMismatch, "'neg' takes numbers, got bool; use `~`"),
    "bools ordered": (over(lambda i: T[i] < T[i]), TypeMismatch, "'lt' orders numbers, got bool"),
    "a sum of bools": (
        over(lambda i: te.sum(A[i, k] > 0, axis=k)),
        TypeMismatch,
        "te.sum takes numbers, got bool; te.cast it first",
    ),
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
    "an integer in an index that JSON does not hold": (
        over(lambda i: te.cast(i * 2**53, "int64")),
        te.TensorError,
        "*: the integers of an index must be below 2**53, got 9007199254740992",
    ),
    "a comparison with such an integer": (
        over(lambda i: te.if_then_else(i < 2**60, A[i, 0], 0.0)),
        te.TensorError,
        "<: the integers of an index must be below 2**53, got -1152921504606846976",
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
    "an extent that JSON does not hold": (
        lambda: te.reduce_axis((0, 2**53), name="k"),
        te.TensorError,
        "te.reduce_axis 'k': the extent of the domain must be below 2**53, got 9007199254740992",
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
    "an unknown dtype of a cast": (
        over(lambda i: te.cast(A[i, 0], "complex64")),
        TypeMismatch,
        "unknown dtype 'complex64'; known: int8, int16, int32, int64, uint8, uint16, uint32, uint64, "
        "float16, "
        "float32, float64, bfloat16, bool",
    ),
    "a number as a condition": (
        over(lambda i: te.if_then_else(N[i], 1.0, A[i, 0])),
        TypeMismatch,
        "te.if_then_else: a condition must be a bool, got int32",
    ),
    "an index as a branch": (
        over(lambda i: te.if_then_else(i < 2, i, 0)),
        TypeMismatch,
        "te.if_then_else: a branch is the index i; te.cast makes it a value",
    ),
    "two literals as branches": (
        over(lambda i: te.if_then_else(i < 2, 1.0, 0.0)),
        TypeMismatch,
        "te.if_then_else: the operands are the literal 1.0, which has no dtype; te.const gives it one, "
        "and the literal 0.0, which has no dtype; te.const gives it one",
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
    "a shape of floats": (
        lambda: te.placeholder((4, 2.5), name="A"),
        TypeMismatch,
        "te.placeholder 'A': the extent of dimension 1 must be an integer expression of the variables, "
        "got the literal 2.5, which has no dtype; te.const gives it one",
    ),
    "an empty dimension": (
        lambda: te.placeholder((4, 0), name="A"),
        te.TensorError,
        "te.placeholder 'A': the extent of dimension 1 must be at least 1, got 0",
    ),
    "an unknown dtype of a placeholder": (
        lambda: te.placeholder((4,), "half", name="A"),
        TypeMismatch,
        "unknown dtype 'half'; known: int8, int16, int32, int64, uint8, uint16, uint32, uint64, float16, "
        "float32, float64, bfloat16, bool",
    ),
    "a name that is no identifier": (
        lambda: te.placeholder((4,), name="my tensor"),
        te.TensorError,
        "te.placeholder: a name must be an identifier of at most 100 characters, got 'my tensor'",
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
    "a placeholder that is not among the parameters": (
        lambda: te.create_prim_func([te.compute((4,), lambda i: A[i, 0] + N2[i], name="C"), A], name="f"),
        te.TensorError,
        "te.create_prim_func 'f': the placeholder 'N2' is used but is not among the parameters",
    ),
    "a program without an output": (
        lambda: te.create_prim_func([A, B]),
        te.TensorError,
        "te.create_prim_func 'main': no parameter is the result of te.compute, so that there is no output",
    ),
    "a parameter given twice": (
        lambda: te.create_prim_func([A, A]),
        te.TensorError,
        "te.create_prim_func 'main': the parameter 'A' is given twice",
    ),
    "several outputs as one parameter": (
        lambda: te.create_prim_func([A, te.compute((4,), lambda i: (A[i, 0], A[i, 1]), name="C")]),
        te.TensorError,
        "te.create_prim_func 'main': the parameters must be tensors, got tuple; a function with several "
        "results gives several: [A, *outputs]",
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
    "a parameter that is no tensor": (
        lambda: te.create_prim_func([A, 3]),
        te.TensorError,
        "te.create_prim_func 'main': the parameters must be tensors, got int",
    ),
    "buffers beyond every memory": (
        lambda: te.create_prim_func([B, te.compute((2**20, 2**20), lambda i, j: B[0], name="C")]),
        te.TensorError,
        f"te.create_prim_func 'main': the buffers hold {2**42 + 12} bytes; at most {2**34} are allowed",
    ),
}
N2 = te.placeholder((4,), "float32", name="N2")


@pytest.mark.parametrize("name", MISTAKES)
def test_the_refusal_of(name):
    mistake, error, message = MISTAKES[name]
    with pytest.raises(error) as e:
        mistake()
    text, _, place = str(e.value).partition("\n  at ")
    assert text == message
    assert place.startswith("test_refusals.py:")


def chain(step, count):
    def element(i):
        v = A[i, 0]
        for _ in range(count):
            v = step(v)
        return v

    return lambda: te.compute((4,), element, name="C")


@pytest.mark.parametrize(
    ("mistake", "size"),
    [
        (chain(lambda v: v + A[0, 0], 2000), "nested 81 deep; at most 80"),
        (chain(lambda v: v * v, 40), "of 32767 nodes; at most 20000"),
    ],
)
def test_an_expression_without_end_is_refused_before_it_grows(mistake, size):
    with pytest.raises(te.TensorError) as e:
        mistake()
    text, _, place = str(e.value).partition("\n  at ")
    assert text == (
        f"the expression is {size} are allowed: use te.sum and its like over an axis, "
        "or make a part of it a tensor of its own with te.compute"
    )
    assert place.startswith("test_refusals.py:")


def line_of(mistake):
    """The source of the line that a refusal names."""
    with pytest.raises((te.TensorError, TypeMismatch)) as e:
        mistake()
    _, _, place = str(e.value).partition("\n  at test_refusals.py:")
    return linecache.getline(__file__, int(place)).strip()


def test_the_line_of_an_index_out_of_range_is_that_of_the_read():
    def element(i):
        inside = A[i, 0]
        outside = A[i + 4, 0]
        return inside + outside

    assert line_of(lambda: te.compute((4,), element, name="C")) == "outside = A[i + 4, 0]"


def test_the_line_of_a_stray_reduce_axis_is_that_of_its_use():
    def element(i):
        total = te.sum(A[i, k], axis=k)
        stray = B[k] * 2
        return total + stray

    assert line_of(lambda: te.compute((4,), element, name="C")) == "stray = B[k] * 2"


def test_the_line_of_a_wrong_number_of_arguments_is_that_of_the_compute():
    def element(i, j):
        return A[i, j]

    def mistake():
        te.compute((4,), element, name="C")

    assert line_of(mistake) == 'te.compute((4,), element, name="C")'


def test_the_line_of_a_truth_value_is_that_of_its_if():
    def element(i):
        if A[i, 0] > 0:
            return A[i, 0]
        return B[0]

    assert line_of(lambda: te.compute((4,), element, name="C")) == "if A[i, 0] > 0:"


TRUTH = (
    "the truth of a symbolic expression is not known while the program is written; use te.if_then_else "
    "instead of "
    "`if`, te.all or & instead of `and` and of a < b < c, te.any or | instead of `or`, ~ instead of `not`"
)


@pytest.mark.parametrize(
    "f",
    [
        lambda i: A[i, 0] if i < 2 else B[0],
        lambda i: te.if_then_else(0 < i < 3, A[i, 0], 0.0),
        lambda i: te.if_then_else(i > 0 and i < 3, A[i, 0], 0.0),
        lambda i: te.if_then_else(not i, A[i, 0], 0.0),
        lambda i: A[i, 0] if A[i, 0] == B[0] else B[0],
    ],
)
def test_truth_values_are_refused_with_what_to_write_instead(f):
    with pytest.raises(TypeMismatch) as e:
        te.compute((4,), f, name="C")
    assert str(e.value).partition("\n  at ")[0] == TRUTH
