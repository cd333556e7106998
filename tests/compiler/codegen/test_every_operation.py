"""Every operation on every dtype: refused by te, or right in every kind of loop and for every processor."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from tilewright.compiler import te
from tilewright.compiler.interpret import check, expected, run
from tilewright.compiler.ir import DType, TypeMismatch
from tilewright.compiler.ir.expr import BINARY_OPS, COMPARE_OPS, UNARY_OPS
from tilewright.compiler.ir.rounding import converted
from tilewright.compiler.ir.rules import refused
from tilewright.compiler.target import Target
from tilewright.compiler.target.runs import missing_features
from tilewright.compiler.te.value import arithmetic, unary

from .every_operation import (
    DTYPES,
    assert_result,
    assert_same,
    conversions,
    defined,
    operations,
    pairs,
    program,
    results,
    values,
)

Build = Callable[..., Any]

PROCESSORS = ("llvm", "llvm -mcpu=x86-64-v3", "llvm -mcpu=x86-64-v2", "llvm -mcpu=x86-64")
TARGETS = tuple(t for t in PROCESSORS if not missing_features(Target.parse(t)))

#: Vectors on every processor, scalars on the newest and the oldest.
LOOPS = [
    (kind, target)
    for target in TARGETS
    for kind in ("vectorized", "serial", "unrolled")
    if kind == "vectorized" or target == TARGETS[0] or (kind, target) == ("serial", TARGETS[-1])
]
in_every_kind_of_loop = pytest.mark.parametrize(("kind", "target"), LOOPS)
of_every_dtype = pytest.mark.parametrize("dtype", DTYPES)


@of_every_dtype
@in_every_kind_of_loop
def test_a_kernel_with_every_operation_agrees_with_numpy(
    built: Build, dtype: str, target: str, kind: str
) -> None:
    a, b = pairs(dtype)
    parts = operations(dtype)
    func = program(parts, (a, b), kind)
    arrays = results(func, (a, b))
    built(func, Target.parse(target), max_instructions=20_000)(*arrays)
    for op, got in zip(parts, arrays[2:], strict=True):
        assert_result(op, got, a, b)


@of_every_dtype
@in_every_kind_of_loop
def test_a_kernel_with_every_conversion_agrees_with_astype_rounded_once(
    built: Build, dtype: str, target: str, kind: str
) -> None:
    a = values(dtype)
    parts = conversions()
    func = program(parts, (a,), kind)
    arrays = results(func, (a,))
    built(func, Target.parse(target), max_instructions=20_000)(*arrays)
    for to, got in zip(parts, arrays[1:], strict=True):
        known = defined(a, to)
        with np.errstate(all="ignore"):
            assert_same(to, got[known], converted(a[known], DType.parse(to)), a[known])


@of_every_dtype
def test_both_interpreters_agree_with_numpy_on_every_operation(dtype: str) -> None:
    a, b = pairs(dtype)
    parts = operations(dtype)
    func = program(parts, (a, b), "serial")
    arrays = results(func, (a, b))
    run(func, arrays)
    # The reference is computed in float64, where it may be wrong by some units itself.
    slack = 4.0 if dtype == "float64" else 0.0
    for op, got in zip(parts, arrays[2:], strict=True):
        assert_result(op, got, a, b, slack)
    found = check(expected(func, arrays), arrays)
    assert found.ok, found.message


@of_every_dtype
def test_both_interpreters_convert_by_astype_rounded_once(dtype: str) -> None:
    a = values(dtype)
    parts = conversions()
    func = program(parts, (a,), "serial")
    arrays = results(func, (a,))
    run(func, arrays)
    for to, got in zip(parts, arrays[1:], strict=True):
        known = defined(a, to)
        with np.errstate(all="ignore"):
            assert_same(to, got[known], converted(a[known], DType.parse(to)), a[known])
    found = check(expected(func, arrays), arrays)
    assert found.ok, found.message


@of_every_dtype
def test_te_takes_what_has_code_and_refuses_the_rest_by_name(dtype: str) -> None:
    a, b = te.placeholder((4,), dtype, name="A"), te.placeholder((4,), dtype, name="B")
    for op in (*BINARY_OPS, *COMPARE_OPS, *UNARY_OPS):
        reason = refused(op, DType.parse(dtype))

        def make(op: str = op) -> te.Tensor:
            return te.compute(
                (4,), lambda i: unary(op, a[i]) if op in UNARY_OPS else arithmetic(op, a[i], b[i]), name="C"
            )

        if reason is None:
            make()
        else:
            with pytest.raises(TypeMismatch) as caught:
                make()
            assert reason in str(caught.value)
