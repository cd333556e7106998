"""What a call says of arrays that do not fit together, and the memory it gives a kernel."""

from __future__ import annotations

import json
import threading

import numpy as np
import pytest

import tilewright as tw
from tilewright.compiler import te
from tilewright.compiler.runtime import ArgumentError, ParamInfo
from tilewright.compiler.runtime.arguments import ArgumentCheck
from tilewright.compiler.runtime.dims import evaluate, freeze, name_of, names_in, text
from tilewright.compiler.schedule import Schedule

F32 = np.float32


def add_rows():
    """C[m, n * 2] from A[m, n], B[n, 3] and one row; the sizes stand alone in A."""
    m, n = te.var("m"), te.var("n")
    a, b = te.placeholder((m, n), "float32", "A"), te.placeholder((n, 3), "float32", "B")
    c = te.compute((m, n * 2), lambda i, j: a[i, j // 2] + b[j // 2, 0], name="C")
    return tw.build(te.create_prim_func([a, b, c], name="add_rows"))


def arrays(a=(4, 5), b=(5, 3), c=(4, 10)):
    return [np.zeros(s, F32) for s in (a, b, c)]


WRONG = {
    "a size that differs": (
        arrays(b=(6, 3)),
        "add_rows: argument 2, 'B': dimension 0 is 6, but 'n' is 5 from argument 1, 'A' dimension 1",
    ),
    "a number that differs": (
        arrays(b=(5, 4)),
        "add_rows: argument 2, 'B': dimension 1 is 4, expected 3",
    ),
    "a dimension made of a size": (
        arrays(c=(4, 5)),
        "add_rows: argument 3, 'C': dimension 1 is 5, but n * 2 is 10, since 'n' is 5 from argument 1, 'A' "
        "dimension 1",
    ),
    "another number of dimensions": (
        arrays(b=(5,)),
        "add_rows: argument 2, 'B': expected 2 dimensions, shape (n, 3), got 1, shape (5,)",
    ),
    "another dtype": (
        [*arrays()[:2], np.zeros((4, 10))],
        "add_rows: argument 3, 'C': expected dtype float32, got float64",
    ),
    "an array too few": (arrays()[:2], "add_rows: takes 3 arrays (A, B, C), got 2"),
}


@pytest.mark.parametrize("name", WRONG)
def test_the_refusal_of(name):
    given, message = WRONG[name]
    kernel = add_rows()
    for call in (kernel, kernel.bind):
        with pytest.raises(ArgumentError) as e:
            call(*given)
        assert str(e.value) == message


def test_an_output_may_not_overlap_an_input_but_empty_arrays_may():
    n = te.var("n")
    a = te.placeholder((n,), "float32", "A")
    kernel = tw.build(te.create_prim_func([a, te.compute((n,), lambda i: a[i] + 1, name="C")], name="f"))
    memory = np.zeros(9, F32)
    with pytest.raises(ArgumentError) as e:
        kernel(memory[:5], memory[4:])
    assert str(e.value) == "f: argument 2, 'C': is an output and shares memory with argument 1, 'A'"
    kernel(memory[:4], memory[4:8])
    kernel(memory[:0], memory[:0])


def test_a_module_says_its_sizes():
    kernel = add_rows()
    assert [str(p) for p in kernel.params] == [
        "A: float32[m, n]",
        "B: float32[n, 3]",
        "C: float32[m, n * 2] out",
    ]
    assert "i64 %s0_m, i64 %s1_n" in kernel.source()


def test_a_size_that_no_dimension_tells_is_refused_by_the_check():
    with pytest.raises(ValueError, match="the size 'n' is no dimension of a parameter by itself"):
        ArgumentCheck("f", [ParamInfo("A", "float32", (((2, "n"),),), False)], ["n"])


def stages():
    """A workspace of n * 2 elements lies between two loop nests."""
    n = te.var("n")
    a = te.placeholder((n,), "float32", "A")
    b = te.compute((n * 2,), lambda i: a[i // 2] * 3, name="B")
    c = te.compute((n,), lambda i: b[i] + b[n * 2 - 1 - i], name="C")
    return tw.build(Schedule(te.create_prim_func([a, c])))


def test_workspaces_grow_with_the_sizes_and_shrink_never():
    kernel = stages()
    for n in (3, 1000, 0, 10, 5000, 1):
        a, out = np.arange(n, dtype=F32), np.full(n, np.nan, F32)
        kernel(a, out)
        kernel.bind(a, out)()
        np.testing.assert_array_equal(
            out, 3 * (np.repeat(a, 2)[:n] + np.repeat(a, 2)[::-1][:n]), err_msg=str(n)
        )


def test_threads_have_workspaces_of_their_own():
    kernel, wrong = stages(), []

    def work(n: int) -> None:
        a = np.full(n, n, F32)
        for _ in range(50):
            out = np.zeros(n, F32)
            kernel(a, out)
            if not (out == 6 * n).all():
                wrong.append(n)

    threads = [threading.Thread(target=work, args=(n,)) for n in (10, 3000, 777, 20000)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert not wrong


@pytest.mark.parametrize(
    "dim, sizes, value, words",
    [
        (7, {}, 7, "7"),
        (((1, "n"),), {"n": 4}, 4, "n"),
        (((2, "n"), (1,)), {"n": 4}, 9, "n * 2 + 1"),
        (((1, "m", "n"), (-1, "n")), {"m": 3, "n": 4}, 8, "m * n - n"),
        (((4, ("ceildiv", ((1, "n"),), 4)),), {"n": 5}, 8, "ceildiv(n, 4) * 4"),
        (((1, ("floordiv", ((1, "n"), (3,)), 4)),), {"n": 5}, 2, "(n + 3) // 4"),
        (((1, ("max", ((1, "n"), (-2,)), 0)),), {"n": 1}, 0, "max(n - 2, 0)"),
        (((1, ("min", ((1, "n"),), 9)), (1,)), {"n": 20}, 10, "min(n, 9) + 1"),
        (((1, ("floordiv", ((1, "m"),), ((1, "n"),))),), {"m": 5, "n": 0}, 5, "m // n"),
    ],
    ids=lambda x: x if isinstance(x, str) else "",
)
def test_a_dimension_is_plain_data(dim, sizes, value, words):
    assert evaluate(dim, sizes) == value
    assert text(dim) == words
    assert freeze(json.loads(json.dumps(dim))) == dim
    assert names_in(dim) == set(sizes)
    assert name_of(dim) == (words if words == "n" else None)
