"""No config of a rule's sketches is more code than is taken."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from tilewright.compiler import te
from tilewright.compiler.codegen.lower import lower
from tilewright.compiler.ir import PrimFunc
from tilewright.compiler.space import space_of
from tilewright.compiler.target import Target

FUNCTIONS = (te.exp, te.tanh, te.gelu, te.erf, te.log, te.sigmoid)


def chained(value: te.Value, count: int) -> te.Value:
    """Functions of functions: as much work for one element as anybody asks for."""
    for n in range(count):
        value = FUNCTIONS[n % len(FUNCTIONS)](value)
    return value


def elementwise(count: int, dtype: str) -> PrimFunc:
    x = te.placeholder((64, 1000), dtype, name="X")
    y = te.compute((64, 1000), lambda i, j: chained(x[i, j], count), name="Y")
    return te.create_prim_func([x, y], name="elementwise")


def product(count: int, dtype: str) -> PrimFunc:
    a, b = te.placeholder((64, 128), dtype, name="A"), te.placeholder((128, 256), dtype, name="B")
    k = te.reduce_axis((0, 128), name="k")
    c = te.compute((64, 256), lambda i, j: te.sum(a[i, k] * b[k, j], axis=k), name="C")
    y = te.compute((64, 256), lambda i, j: chained(c[i, j], count), name="Y")
    return te.create_prim_func([a, b, y], name="product")


def rows(count: int, dtype: str) -> PrimFunc:
    a = te.placeholder((64, 256), dtype, name="A")
    k = te.reduce_axis((0, 256), name="k")
    s = te.compute((64,), lambda i: te.sum(chained(a[i, k], count), axis=k), name="S")
    y = te.compute((64, 256), lambda i, j: chained(a[i, j] - s[i], count), name="Y")
    return te.create_prim_func([a, y], name="rows")


def window(count: int, dtype: str) -> PrimFunc:
    x = te.placeholder((16, 20, 20), dtype, name="X")
    p, q = te.reduce_axis((0, 3), name="p"), te.reduce_axis((0, 3), name="q")
    c = te.compute((16, 18, 18), lambda a, i, j: te.sum(x[a, i + p, j + q], axis=[p, q]), name="C")
    y = te.compute((16, 18, 18), lambda a, i, j: chained(c[a, i, j], count), name="Y")
    return te.create_prim_func([x, y], name="window")


@pytest.mark.parametrize("count", [4, 12])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("program", [elementwise, product, rows, window], ids=lambda f: f.__name__)
def test_whatever_an_element_costs_every_config_has_code(
    program: Callable[[int, str], PrimFunc], dtype: str, count: int
) -> None:
    target, func = Target.parse("llvm -mcpu=x86-64-v4"), program(count, dtype)
    for sketch in space_of(func, target).sketches:
        drawn = sketch.columns.random(3, np.random.default_rng(count))
        assert len(drawn)
        for row in drawn:
            assert lower(sketch.resolve(row).apply(func).func, target).text.count("\n") < 4000
