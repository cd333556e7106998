"""A refusal names the line of the mistake, and comes before what has no end has grown."""

import linecache
from pathlib import Path

import pytest
from te_mistakes import A, B, k

from tilewright.compiler import te
from tilewright.compiler.ir import TypeMismatch

FILE = Path(__file__).name


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
    assert place.startswith(f"{FILE}:")


def line_of(mistake):
    """The source of the line that a refusal names."""
    with pytest.raises((te.TensorError, TypeMismatch)) as e:
        mistake()
    _, _, place = str(e.value).partition(f"\n  at {FILE}:")
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
