"""What programs that differ in their extents alone share."""

from __future__ import annotations

from typing import Any

import pytest

from tilewright.compiler.ir import PrimFunc, parse_script
from tilewright.compiler.ir.structure import structure
from tilewright.compiler.topi import create


def matmul(m: int, n: int, k: int, **more: Any) -> PrimFunc:
    return create({"op": "matmul", "m": m, "n": n, "k": k, "dtype": "float32", **more})


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (matmul(64, 64, 64), matmul(127, 1, 8)),
        (create({"op": "layer_norm", "m": 8, "n": 768, "dtype": "float32"}),
         create({"op": "layer_norm", "m": 9, "n": 100, "dtype": "float32"})),
    ],
    ids=["matmul", "layer norm, whose reciprocal of n is an immediate"],
)  # fmt: skip
def test_programs_over_other_extents_have_one_structure(one: PrimFunc, other: PrimFunc) -> None:
    assert structure(one)[0] == structure(other)[0]


@pytest.mark.parametrize(
    "other",
    [matmul(64, 64, 64, dtype="float64"), matmul(64, 64, 64, transpose_b=True)],
    ids=["another dtype", "another layout"],
)
def test_programs_that_do_something_else_have_another_structure(other: PrimFunc) -> None:
    assert structure(matmul(64, 64, 64))[0] != structure(other)[0]


def test_names_are_no_part_of_it() -> None:
    text = "def {f}({a}: float32[{n}], B: float32[{n}]):\n    for {i} in range({n}):\n        "
    text += "B[{i}] = {a}[{i}]\n"
    one = parse_script(text.format(f="copy", a="A", i="i", n=8))
    other = parse_script(text.format(f="move", a="X", i="j", n=9))
    assert structure(one)[0] == structure(other)[0]


def test_strides_are_part_of_it() -> None:
    text = "def f(A: float32[{n}], B: float32[8]):\n    for i in range(8):\n        B[i] = A[{s} * i]\n"
    one, other = (parse_script(text.format(s=s, n=8 * s)) for s in (2, 3))
    assert structure(one)[0] != structure(other)[0]


def test_the_extents_of_programs_of_one_structure_correspond() -> None:
    assert structure(matmul(2, 3, 5))[1] == (2, 3, 5, 5, 3, 2)
    assert structure(matmul(7, 11, 13))[1] == (7, 11, 13, 13, 11, 7)
