"""Kernels that the tests of saved modules save, and how they are checked."""

import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tilewright
from tilewright import te
from tilewright.compiler.codegen.errors import BuildError
from tilewright.compiler.ir import PrimFunc
from tilewright.compiler.runtime import LoadError, Module
from tilewright.compiler.schedule import Schedule

SUFFIXES = (".o", ".a", ".so") if shutil.which("ld") or shutil.which("cc") else (".o", ".a")


def product(m: int = 5, n: int = 7, k: int = 3, dtype: str = "float32", name: str = "product") -> PrimFunc:
    a, b = te.placeholder((m, k), dtype, name="A"), te.placeholder((k, n), dtype, name="B")
    r = te.reduce_axis((0, k), name="k")
    c = te.compute((m, n), lambda i, j: te.sum(a[i, r] * b[r, j], axis=r, dtype=dtype), name="C")
    return te.create_prim_func([a, b, c], name=name)


def with_workspace() -> Schedule:
    """A product whose left side is doubled first, into a workspace."""
    a, b = te.placeholder((40, 30), "float32", name="A"), te.placeholder((30, 20), "float32", name="B")
    d = te.compute((40, 30), lambda i, j: a[i, j] * 2.0, name="D")
    r = te.reduce_axis((0, 30), name="k")
    c = te.compute((40, 20), lambda i, j: te.sum(d[i, r] * b[r, j], axis=r), name="C")
    return Schedule(te.create_prim_func([a, b, c], name="doubled"))


def any_length() -> Schedule:
    """A sum over rows of as many as there are, through a workspace as long."""
    n = te.var("n")
    a = te.placeholder((n, 6), "float32", name="A")
    d = te.compute((n, 6), lambda i, j: a[i, j] * 2.0, name="D")
    r = te.reduce_axis((0, 6), name="k")
    return Schedule(
        te.create_prim_func(
            [a, te.compute((n,), lambda i: te.sum(d[i, r], axis=r), name="S")], name="any_length"
        )
    )


def copied(dtype: str) -> PrimFunc:
    a = te.placeholder((3, 5), dtype, name="A")
    return te.create_prim_func([a, te.compute((3, 5), lambda i, j: a[i, j], name="B")], name="copied")


def scaled(factor: float) -> PrimFunc:
    a = te.placeholder((40,), "float32", name="A")
    return te.create_prim_func([a, te.compute((40,), lambda i: a[i] * factor, name="B")], name="scaled")


def builds(dtype: str) -> bool:
    try:
        tilewright.build(copied(dtype))
    except BuildError:
        return False
    return True


DTYPES = [
    dtype
    for dtype in ("bool", "int8", "uint16", "int64", "float16", "bfloat16", "float32", "float64")
    if builds(dtype)
]


def pair() -> Module:
    return tilewright.build({"small": product(), "fé": product(8, 16, 4), "doubled": with_workspace()})


def check_product(function: Any) -> None:
    (m, k), (_, n) = (p.shape for p in function.params[:2])
    rng = np.random.default_rng(1)
    a, b = (rng.integers(-4, 5, shape).astype(np.float32) for shape in ((m, k), (k, n)))
    c = np.full((m, n), np.nan, np.float32)
    function(a, b, c)
    np.testing.assert_array_equal(c, (2 if function.name == "doubled" else 1) * (a @ b))


def refusal(path: Path) -> str:
    with pytest.raises(LoadError) as caught:
        tilewright.load_module(path)
    problem = str(caught.value)
    assert problem.startswith(f"{path}: ")
    return problem.removeprefix(f"{path}: ")
