"""A text that a person wrote means what it says; one that is no program is refused at its line and column."""

import pickle

import numpy as np
import pytest

import tilewright as tw
from tilewright.compiler.ir import (
    ScriptError,
    VerifyError,
    parse_script,
    script,
)


def test_a_text_that_a_person_wrote_means_what_it_says():
    read = parse_script(
        """
def saxpy(X: float32[5], Y: float32[5], Z: float32[5]):
    # comments and free spacing are Python's
    for i in vectorized(5):
        Z[i] = 2 * X[i * 3 % 5] + Y[(i + 10) // 2 - 5 + (i - i)] * (1 if 1 <= i <= 3 else 0)
"""
    )
    x, y, z = np.arange(5, dtype="f4"), np.arange(5, dtype="f4") + 7, np.zeros(5, "f4")
    tw.build(read)(x, y, z)
    i = np.arange(5)
    np.testing.assert_array_equal(z, 2 * x[i * 3 % 5] + y[i // 2] * ((i >= 1) & (i <= 3)))


GOOD = """def f(A: float32[4, 2], N: int32[4], B: float32[4, 2]):
    T = alloc(float32[4, 2], 'local')
    for i in range(4):
        for j in range(2):
            T[i, j] = A[i, j]
    for i in range(4):
        for j in range(2):
            B[i, j] = T[i, j] + 1.0
"""
REFUSED = {
    "no Python": ("def f(", "def f((", "line 1, column 7: no Python syntax: "),
    "another statement": (
        "    T = alloc",
        "    import os\n    T = alloc",
        "line 2, column 5: expected a loop, a block or an assignment, got import os",
    ),
    "a call that is evaluated": (
        "A[i, j]\n",
        "__import__('os').system('true')\n",
        "line 5, column 23: expected a value, got __import__('os').system('true')",
    ),
    "an unknown function": (
        "A[i, j]\n",
        "eval(A[i, j])\n",
        "line 5, column 23: no function 'eval' of 1 values; known: a dtype, ",
    ),
    "an attribute": ("A[i, j]\n", "A.shape\n", "line 5, column 23: expected a value, got A.shape"),
    "an unknown buffer": (
        "A[i, j]\n",
        "Q[i, j]\n",
        "line 5, column 23: no buffer 'Q' is declared; known: A, N, B, T",
    ),
    "an unknown variable": (
        "A[i, j]\n",
        "A[i, k]\n",
        "line 5, column 28: no variable 'k' is in scope here; known: i, j",
    ),
    "an index with a call": (
        "A[i, j]\n",
        "A[i, len(j)]\n",
        "line 5, column 28: expected an index of variables, integers, + - * // % and min, max, ceildiv, "
        "got len(j)",
    ),
    "an unknown size": (
        "T = alloc(float32[4, 2]",
        "T = alloc(float32[n, 2]",
        "line 2, column 23: no variable 'n' is in scope here; known: none",
    ),
    "an extent that may be negative": (
        "N: int32[4]",
        "N: int32[n, n - 1]",
        "line 1, column 28: an extent of sizes must be at least 0 for all of them, got n - 1",
    ),
    "a division by 0": (
        "A[i, j]\n",
        "A[i // 0, j]\n",
        "line 5, column 30: a divisor must be positive, or of sizes, got 0",
    ),
    "an index without a dtype": (
        "A[i, j]\n",
        "i + 1\n",
        "line 5, column 23: an index as a value names its dtype, such as int64(i)",
    ),
    "two dtypes": (
        "A[i, j]\n",
        "A[i, j] + N[i]\n",
        "line 5, column 23: the operands differ in dtype: float32 and int32",
    ),
    "an operation that the dtype lacks": (
        "A[i, j]\n",
        "A[i, j] << A[i, j]\n",
        "line 5, column 23: 'shl' takes integers, got float32",
    ),
    "another dtype stored": ("A[i, j]\n", "N[i]\n", "line 5, column 13: T holds float32, got int32"),
    "another dtype added": (
        "T[i, j] = A[i, j]\n",
        "T[i, j] += N[i]\n",
        "line 5, column 13: T holds float32, got int32",
    ),
    "an unknown dtype": (
        "A: float32[4, 2]",
        "A: double[4, 2]",
        "line 1, column 10: unknown dtype 'double'; known: ",
    ),
    "a literal that does not fit": (
        "+ 1.0",
        "+ float32(int8(300))",
        "line 8, column 46: expected an int8 from -128 to 127, got 300",
    ),
    "a float that does not fit": ("+ 1.0", "+ 1e39", "line 8, column 33: 1e+39 does not fit into float32"),
    "a string as a value": ("+ 1.0", "+ 'x'", "line 8, column 33: expected a float32, got 'x'"),
    "an unknown scope": (
        "'local'",
        "'shared'",
        "line 2, column 30: unknown scope 'shared'; known: global, local, register",
    ),
    "a name given twice": ("N: int32", "A: int32", "line 1, column 25: two buffers are named 'A'"),
    "an unknown loop": ("range(4)", "zip(4)", "line 3, column 14: expected one of range(n), parallel(n), "),
    "an extent of 0": ("range(4)", "range(0)", "line 3, column 20: an extent must be at least 1, got 0"),
    "a loop's else": (
        "            T[i, j] = A[i, j]\n",
        "            T[i, j] = A[i, j]\n        else:\n            T[i, j] = A[i, j]\n",
        "line 7, column 13: a loop has no else",
    ),
    "two assignments to one": (
        "T[i, j] = A[i, j]",
        "T[i, j] = T[i, j] = A[i, j]",
        "line 5, column 13: expected an assignment such as C[i] = A[i], got ",
    ),
    "a decorator": (
        "def f",
        "@x\ndef f",
        "line 2, column 1: expected parameters such as A: float32[4, 8] and nothing else",
    ),
    "a default": (
        "B: float32[4, 2]",
        "B: float32[4, 2] = 1",
        "line 1, column 1: expected parameters such as A: float32[4, 8] and nothing else",
    ),
    "a parameter without a shape": (
        "N: int32[4]",
        "N",
        "line 1, column 25: expected the shape of N, such as N: float32[4, 8]",
    ),
    "a block without a name": (
        "            T[i, j] = A[i, j]",
        "            with block():\n                T[i, j] = A[i, j]",
        "line 5, column 18: expected block('C', i=spatial(i_0), ...)",
    ),
    "a long name": (
        "A: float32[4, 2]",
        f"{'A' * 1001}: float32[4, 2]",
        f"line 1, column 7: a name must be an identifier of at most 1000 characters, got '{'A' * 37}...'",
    ),
    "a binding without an extent": (
        "            T[i, j] = A[i, j]",
        "            with block('T', i=spatial(i * 2)):\n                T[i, j] = A[i, j]",
        "line 5, column 31: expected the extent of i behind its index, such as spatial(i_0 * 4 + i_1, 10)",
    ),
    "a huge power": (
        "A[i, j]\n",
        "A[9 ** 9 ** 9, j]\n",
        "line 5, column 25: expected an index of variables, ",
    ),
    "a huge integer": (
        "A[i, j]\n",
        "A[9999999999999999999, j]\n",
        "line 5, column 25: expected an integer below 2**53",
    ),
    "a lambda": (
        "A[i, j]\n",
        "(lambda: A[i, j])()\n",
        "line 5, column 23: expected a value, got (lambda: A[i, j])()",
    ),
    "a comprehension": (
        "A[i, j]\n",
        "[0 for i in A]\n",
        "line 5, column 23: expected a value, got [0 for i in A]",
    ),
    "no program": (GOOD, "", "line 1, column 1: expected one program, found 0; parse_module reads several"),
    "two programs": (
        GOOD,
        GOOD + GOOD,
        "line 1, column 1: expected one program, found 2; parse_module reads several",
    ),
    "a statement beside programs": (
        "def f",
        "print(1)\ndef f",
        "line 1, column 1: expected def name(...):, got print(1)",
    ),
}


def test_the_text_that_the_refusals_start_from_is_accepted():
    assert script(parse_script(GOOD)) == GOOD


@pytest.mark.parametrize("case", REFUSED)
def test_a_text_that_is_no_program_is_refused_where_it_is_wrong(case):
    old, new, message = REFUSED[case]
    assert old in GOOD
    with pytest.raises(ScriptError) as e:
        parse_script(GOOD.replace(old, new, 1))
    assert str(e.value).startswith(message)
    again = pickle.loads(pickle.dumps(e.value))
    assert (str(again), again.line, again.column) == (str(e.value), e.value.line, e.value.column)


def test_an_access_that_may_leave_its_buffer_is_refused():
    with pytest.raises(VerifyError) as e:
        parse_script(GOOD.replace("A[i, j]", "A[i + 1, j]"))
    assert str(e.value) == "block 'T' reads 'A' at i + 1 in dimension 0, which may leave [0, 4)"


@pytest.mark.parametrize(
    "hostile",
    [
        "(" * 100_000,
        "-" * 100_000 + "1",
        "def f(A: float32[4]):\n    for i in range(4):\n        A[i] = " + "-" * 3_000 + "A[i]\n",
        "def f(A: float32[4]):\n    for i in range(4):\n        A[i] = " + "+".join(["A[i]"] * 5_000) + "\n",
        "def f(A: float32[4]):\n    for i in range(4):\n        A[" + "*".join(["(i+1)"] * 50) + "] = 1.0\n",
        "def f(A: float32[4]):\n    for i in range(4):\n        A[i] = " + "9" * 10_000 + "\n",
        "x" * 2_000_000,
        "\0",
        "def f(A: float32[4]):\n"
        + "".join("    " * (n + 1) + f"for i{n} in range(1):\n" for n in range(200)),
        "\ud800",
        "def f(A: float32['\\d']): pass",
        "-" * 700 + "1",
        "def f(A: float32[4]):\n    for i in range(4):\n        A[i] = 0x" + "f" * 10_000 + "\n",
        "def f(A: float32[4]):\n    for i in range(4, x=0x" + "f" * 10_000 + "):\n        A[i] = 1.0\n",
        "def f(A: float32[0x" + "f" * 10_000 + "]):\n    A[0] = 1.0\n",
    ],
    ids=range(15),
)
def test_hostile_texts_are_refused_and_nothing_else_happens(hostile):
    with pytest.raises(ScriptError):
        parse_script(hostile)


def test_booleans_are_not_added_up():
    with pytest.raises(ScriptError) as e:
        parse_script("def f(A: bool[4]):\n    for i in range(4):\n        A[i] += True\n")
    assert str(e.value) == "line 3, column 9: 'add' takes numbers, got bool"
