"""In an expression of many lines, a refusal names the line of the mistake: the one marked here."""

import inspect

import pytest

from tilewright.compiler import te
from tilewright.compiler.ir import TypeMismatch

A = te.placeholder((4, 3), "float32", name="A")
B = te.placeholder((3,), "float32", name="B")
H = te.placeholder((4,), "float16", name="H")
N = te.placeholder((4,), "int32", name="N")
k = te.reduce_axis((0, 3), name="k")
m = te.reduce_axis((0, 64), name="m")

# fmt: off


def a_second_operand_of_another_dtype(i):
    return (
        A[i, 0]
        + A[i, 1]
        + H[i]  # here
        + A[i, 2]
    )


def an_argument_of_another_dtype(i):
    return te.maximum(
        A[i, 0],
        H[i],  # here
    )


def a_value_of_an_earlier_line(i):
    h = H[i]
    a = A[i, 0]
    return a + h  # here


def a_literal_that_does_not_fit(i):
    return (
        H[i]
        * 2.0
        + 1e9  # here
    )


def an_index_as_a_value(i):
    return (
        A[i, 0]
        * i  # here
    )


def a_read_out_of_range_in_a_reduction(i):
    return te.sum(
        A[i, k]
        * B[m],  # here
        axis=[k, m],
    )


def a_read_out_of_range_beside_a_guarded_one(i):
    return te.if_then_else(
        i < 3,
        B[i],
        B[i - 1],
    ) + B[
        i  # the read starts a line above
    ]


def a_negative_index(i):
    return (
        A[i, 0]
        + A[i - 1, 0]  # here
    )


def a_guard_that_does_not_cover(i):
    return te.if_then_else(
        te.all(i >= 1),
        A[i + 1, 0],  # here
        0.0,
    )


def a_stray_axis(i):
    return (
        te.sum(A[i, k], axis=k)
        + te.exp(
            B[k]  # here
        )
    )


def an_axis_that_is_not_used(i):
    return (
        A[i, 0]
        + te.sum(  # here
            A[i, 0],
            axis=k,
        )
    )


def an_axis_that_is_reduced_already(i):
    return (
        A[i, 0]
        + te.sum(  # here
            te.max(A[i, k], axis=k),
            axis=k,
        )
    )


def an_index_too_few(i):
    return (
        A[i, 0]
        + A[i]  # here
    )


def a_function_of_another_dtype(i):
    return (
        A[i, 0]
        + te.exp(N[i])  # here
    )


def a_comparison_of_two_dtypes(i):
    return te.if_then_else(
        A[i, 0]
        < N[i],  # here
        A[i, 0],
        0.0,
    )


def a_truth_value(i):
    x = A[i, 0]
    if (
        x  # here
        > 0
    ):
        return x
    return B[0]


def an_if_in_one_line(i):
    return (
        A[i, 0]
        if A[i, 0] > 0  # here
        else B[0]
    )


# fmt: on

MISTAKES = [
    f
    for name, f in list(globals().items())
    if inspect.isfunction(f) and f.__module__ == __name__ and name.startswith(("a_", "an_"))
]


@pytest.mark.parametrize("mistake", MISTAKES, ids=lambda f: f.__name__)
def test_the_line_of(mistake):
    source, start = inspect.getsourcelines(mistake)
    marked = [n for n, line in enumerate(source) if "# here" in line]
    line = start + (marked[0] if marked else next(n for n, s in enumerate(source) if "a line above" in s) - 1)
    with pytest.raises((te.TensorError, TypeMismatch)) as e:
        te.compute((4,), mistake, name="C")
    assert str(e.value).split("\n  at ")[1] == f"test_lines.py:{line}"
