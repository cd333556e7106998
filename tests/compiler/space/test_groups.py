"""Which blocks are inlined before a program is scheduled."""

from __future__ import annotations

import pytest

from tilewright.compiler import te
from tilewright.compiler.ir import PrimFunc
from tilewright.compiler.schedule import Schedule
from tilewright.compiler.space.groups import groups_of, inline_elementwise


def matmul_gelu_residual() -> PrimFunc:
    a, b = te.placeholder((64, 32), name="A"), te.placeholder((32, 48), name="B")
    bias, r = te.placeholder((48,), name="bias"), te.placeholder((64, 48), name="R")
    k = te.reduce_axis((0, 32), name="k")
    c = te.compute((64, 48), lambda i, j: te.sum(a[i, k] * b[k, j], axis=k), name="C")
    h = te.compute((64, 48), lambda i, j: c[i, j] + bias[j], name="H")
    g = te.compute((64, 48), lambda i, j: te.gelu(h[i, j]), name="G")
    y = te.compute((64, 48), lambda i, j: g[i, j] + r[i, j], name="Y")
    return te.create_prim_func([a, b, bias, r, y], name="residual")


def two_readers(cheap: bool) -> PrimFunc:
    x = te.placeholder((64, 64), name="X")
    p = te.compute((64, 64), lambda i, j: x[i, j] * 2.0 if cheap else te.exp(x[i, j]), name="P")
    u = te.compute((64, 64), lambda i, j: p[i, j] + 1.0, name="U")
    v = te.compute((64, 64), lambda i, j: p[i, j] * u[i, j], name="V")
    return te.create_prim_func([x, u, v], name="two_readers")


def left(func: PrimFunc) -> list[str]:
    sch = Schedule(func)
    inline_elementwise(sch)
    return [b.name for _, b in sch.func.blocks()]


def test_bias_gelu_and_residual_are_one_epilogue() -> None:
    sch = Schedule(matmul_gelu_residual())
    inline_elementwise(sch)
    assert [(g.main, g.epilogue) for g in groups_of(sch.func)] == [("C", "Y")]


@pytest.mark.parametrize(("cheap", "blocks"), [(True, ["U", "V"]), (False, ["P", "U", "V"])])
def test_only_a_cheap_block_is_computed_by_each_of_its_readers(cheap: bool, blocks: list[str]) -> None:
    assert left(two_readers(cheap)) == blocks
