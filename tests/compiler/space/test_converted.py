"""Sums of products of converted elements: what the operands are made of."""

import numpy as np
import pytest

import tilewright as tw
from tilewright import te, topi
from tilewright.compiler import interpret
from tilewright.compiler.ir import PrimFunc
from tilewright.compiler.space import space_of
from tilewright.compiler.target import Target

TARGET = Target.parse("llvm -mcpu=x86-64-v3")


def scaled(dtype: str, *, first: bool, constant: bool) -> PrimFunc:
    """A product whose first or second factor is made in each step."""
    x, w = te.placeholder((6, 24), dtype, name="X"), te.placeholder((24, 20), dtype, "W", constant=constant)
    g = te.placeholder((24,), dtype, name="G")
    if first:
        s = te.compute((6, 24), lambda i, k: x[i, k] * g[k], name="S")
        return te.create_prim_func([x, w, g, topi.dense(s, w)], name="scaled")
    s = te.compute((24, 20), lambda k, j: w[k, j] * g[k], name="S")
    return te.create_prim_func([x, w, g, topi.dense(x, s)], name="scaled")


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
@pytest.mark.parametrize("first", [True, False], ids=["first", "second"])
@pytest.mark.parametrize("constant", [True, False], ids=["constant", "argument"])
def test_what_makes_either_factor_is_converted_with_it(dtype: str, first: bool, constant: bool) -> None:
    func = scaled(dtype, first=first, constant=constant)
    arrays = interpret.random_inputs(func, 0)
    want = interpret.expected(func, arrays)
    sketches = space_of(func, TARGET).sketches
    assert any("in float32" in s.name for s in sketches)
    for sketch in sketches:
        for row in sketch.columns.random(2, np.random.default_rng(0)):
            tw.build(sketch.resolve(row).apply(func), TARGET)(*arrays)
            assert (sketch.name, interpret.check(want, arrays).message) == (sketch.name, "")
