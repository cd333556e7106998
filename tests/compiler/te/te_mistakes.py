"""Tensors and axes to make mistakes with, and what is asked of the refusal of one."""

import functools
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tilewright.compiler import te

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
N2 = te.placeholder((4,), "float32", name="N2")

Mistake = tuple[Callable[[], Any], type[Exception], str]
"""What makes it, the error, and its text without the place."""


def over(f: Callable[..., Any], shape: tuple[int, ...] = (4,)) -> Callable[[], Any]:
    """A compute of the function; the line that computes is the caller's."""
    return functools.partial(te.compute, shape, f, name="C")


def check_refusal(made: Mistake, refused: pytest.ExceptionInfo[Exception], file: str) -> None:
    """The whole text, and that the place is in the file of the mistake."""
    text, _, place = str(refused.value).partition("\n  at ")
    assert text == made[2]
    assert place.startswith(f"{Path(file).name}:")
