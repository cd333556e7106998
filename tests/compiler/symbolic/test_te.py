"""What te takes and refuses of sizes."""

import re

import numpy as np
import pytest

import tilewright as tw
from tilewright.compiler import te

N, M = te.var("n"), te.var("m")
A = te.placeholder((N,), "float32", name="A")
K = te.reduce_axis((0, N), name="k")
B = te.placeholder((M,), "float32", name="B")
NINE = te.placeholder((9,), "float32", name="NINE")


OVER_M = te.reduce_axis((0, M), name="k")


@pytest.mark.parametrize(
    "extent, n, expected",
    [
        (lambda n: n + 1, 4, 5),
        (lambda n: 2 * n, 4, 8),
        (lambda n: n * 2, 0, 0),
        (lambda n: n // 2, 5, 2),
        (lambda n: (n + 3) // 4, 5, 2),
        (lambda n: n % 4, 7, 3),
        (lambda n: te.maximum(n - 3, 0), 2, 0),
        (lambda n: te.maximum(n - 3, 0), 5, 2),
        (lambda n: te.minimum(n, 3), 7, 3),
        (lambda n: n * n, 3, 9),
    ],
    ids=lambda x: None if callable(x) else str(x),
)
def test_a_shape_may_be_computed_from_sizes(extent, n, expected):
    size = te.var("n")
    a = te.placeholder((size,), "int32", name="A")
    b = te.compute((extent(size),), lambda i: te.cast(i, "int32") + te.cast(size, "int32"), name="B")
    kernel = tw.build(te.create_prim_func([a, b]))
    out = np.zeros(expected, np.int32)
    kernel(np.zeros(n, np.int32), out)
    np.testing.assert_array_equal(out, np.arange(expected) + n)


def test_the_shape_of_a_tensor_gives_further_shapes():
    c = te.compute((A.shape[0] + NINE.shape[0],), lambda i: te.cast(i, "float32"), name="C")
    assert repr(c) == "C: float32[n + 9]"


def test_the_first_and_the_last_element_exist_where_there_is_any():
    c = te.compute((N,), lambda i: A[i] - A[0] + A[N - 1], name="C")
    kernel = tw.build(te.create_prim_func([A, c]))
    for n in (0, 1, 2, 33):
        a, out = np.arange(n, dtype=np.float32), np.full(n, np.nan, np.float32)
        kernel(a, out)
        np.testing.assert_array_equal(out, a + (n - 1))


@pytest.mark.parametrize("dtype", ["int8", "int32", "int64", "float32", "float64"])
def test_a_size_is_a_value_by_a_cast(dtype):
    c = te.compute((N,), lambda i: te.cast(N, dtype) - te.cast(i, dtype), name="C")
    kernel = tw.build(te.create_prim_func([A, c]))
    out = np.zeros(37, dtype)
    kernel(np.zeros(37, np.float32), out)
    np.testing.assert_array_equal(out, np.arange(37, 0, -1).astype(dtype))


def test_numpy_integers_python_integers_and_sizes_mix_in_a_shape():
    a = te.placeholder((np.int64(3), N, 4, np.int32(5)), "float32", name="A")
    assert repr(a) == "A: float32[3, n, 4, 5]"


def two_sizes_of_one_name():
    other = te.placeholder((te.var("n"),), "float32", name="B")
    c = te.compute((N,), lambda i: A[i], name="C")
    return te.create_prim_func([A, other, c])


def a_size_that_no_parameter_tells():
    c = te.compute((N * 2,), lambda i: te.cast(i, "float32"), name="C")
    return te.create_prim_func([c], name="f")


def a_size_only_in_an_axis():
    k = OVER_M
    c = te.compute((N,), lambda i: te.sum(A[i] + te.cast(k, "float32"), axis=k), name="C")
    return te.create_prim_func([A, c], name="f")


MISTAKES = {
    "an index over another size": (
        lambda: te.compute((M,), lambda i: A[i], name="C"),
        "'A' has the extent n in dimension 0, but the axis 'i' runs over m, which is not provably the "
        "same or less; use one te.var for both, or guard the read with te.if_then_else",
    ),
    "an index over a number": (
        lambda: te.compute((8,), lambda i: A[i], name="C"),
        "'A' has the extent n in dimension 0, but the axis 'i' runs over 8, which is not provably the "
        "same or less; use one te.var for both, or guard the read with te.if_then_else",
    ),
    "an index of a number over a size": (
        lambda: te.compute((N,), lambda i: NINE[i], name="C"),
        "'NINE' has the extent 9 in dimension 0, but the axis 'i' runs over n, which is not provably the "
        "same or less; use one te.var for both, or guard the read with te.if_then_else",
    ),
    "a reduce axis over another size": (
        lambda: te.compute((1,), lambda i: te.sum(A[OVER_M], axis=OVER_M), name="C"),
        "'A' has the extent n in dimension 0, but the axis 'k' runs over m, which is not provably the "
        "same or less; use one te.var for both, or guard the read with te.if_then_else",
    ),
    "a neighbour": (
        lambda: te.compute((N,), lambda i: A[i + 1], name="C"),
        "'A' has the extent n in dimension 0, but the index i + 1 takes values from 1 to n; "
        "guard the read with te.if_then_else",
    ),
    "the first element of what may be empty": (
        lambda: te.compute((3,), lambda i: A[0], name="C"),
        "'A' has the extent n in dimension 0, but the index 0 takes values from 0 to 0; "
        "guard the read with te.if_then_else",
    ),
    "an extent that may be below 0": (
        lambda: te.placeholder((N - 2,), name="C"),
        "te.placeholder 'C': the extent of dimension 0, n - 2, may be below 0; "
        "te.maximum(n - 2, 0) is 0 there",
    ),
    "an axis that may be of negative length": (
        lambda: te.reduce_axis((M, N), name="k"),
        "te.reduce_axis 'k': the extent of the domain, n - m, may be below 0; "
        "te.maximum(n - m, 0) is 0 there",
    ),
    "a division by what may be 0": (
        lambda: te.compute((5,), lambda i: te.cast(i // N, "float32"), name="C"),
        "//: an index is divided by a positive integer or by sizes that the extents of its variables have as "
        "factors only, got n",
    ),
    "two sizes of one name": (
        two_sizes_of_one_name,
        "te.create_prim_func 'main': two sizes are named 'n'; make one te.var and use it in both places, or "
        "give them different names",
    ),
    "a size that no parameter tells": (
        a_size_that_no_parameter_tells,
        "te.create_prim_func 'f': the size 'n', which 'C' uses, is no dimension of a parameter by itself, so "
        "that a call could not tell it; make 'n' a dimension of an input or output",
    ),
    "a size that stands in an axis only": (
        a_size_only_in_an_axis,
        "te.create_prim_func 'f': the size 'm', which 'C' uses, is no dimension of a parameter by itself, so "
        "that a call could not tell it; make 'm' a dimension of an input or output",
    ),
    "a place that may not fit": (
        lambda: te.argmax(A[K], axis=K, dtype="int16"),
        "te.argmax: places run from 0 to n - 1, which may not fit into int16; use int32 or int64",
    ),
    "a name that is none": (
        lambda: te.var("a b"),
        "te.var: a name must be an identifier of at most 100 characters, got 'a b'",
    ),
    "a variable as an extent": (
        lambda: te.compute((4,), lambda i: te.sum(A[0], axis=te.reduce_axis((0, i))), name="C"),
        "te.reduce_axis 'k': the bounds must be integers or made of te.var sizes, got (0, i)",
    ),
}


@pytest.mark.parametrize("name", MISTAKES)
def test_the_refusal_of(name):
    mistake, message = MISTAKES[name]
    with pytest.raises(te.TensorError) as e:
        mistake()
    said, _, where = str(e.value).partition("\n")
    assert said == message
    assert re.fullmatch(r"  at .*test_te\.py:\d+", where)


def test_a_size_of_another_dtype_is_refused():
    with pytest.raises(te.TypeMismatch, match=r"te\.var\('n'\): a size is int32 or int64, got float32"):
        te.var("n", "float32")


def test_comparing_sizes_in_python_is_refused_with_advice():
    with pytest.raises(te.TypeMismatch, match="the truth of a symbolic expression is not known"):
        assert N == M


def test_loops_and_tensors_do_not_take_the_name_of_a_size():
    n = te.placeholder((N,), "float32", name="n")
    c = te.compute((N,), lambda n_: n[n_], name="C", names=["n"])
    assert str(te.create_prim_func([n, c], name="f")) == (
        "def f(n_1: float32[n], C: float32[n]):\n    for n_1 in range(n):\n        C[n_1] = n_1[n_1]\n"
    )
