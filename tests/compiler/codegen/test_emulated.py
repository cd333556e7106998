"""Kernels for NEON and for RISC-V's vectors compute what the same programs compute here."""

from pathlib import Path

import numpy as np
import pytest

from tilewright.compiler import interpret, te, topi
from tilewright.compiler.codegen.errors import BuildError
from tilewright.compiler.ir import DType, PrimFunc
from tilewright.compiler.ir.rounding import converted
from tilewright.compiler.schedule import Schedule, ScheduleError
from tilewright.compiler.space import default_schedule, space_of
from tilewright.compiler.target import Target

from . import emulated
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

PROCESSORS = [
    pytest.param(
        f"llvm -mcpu={cpu}",
        marks=[
            *marks,
            pytest.mark.skipif(
                bool(emulated.missing(architecture)), reason=f"needs {emulated.missing(architecture)}"
            ),
        ],
    )
    for cpu, architecture, *marks in (
        ("cortex-a53", "aarch64", pytest.mark.slow),
        ("neoverse-n2", "aarch64"),
        ("sifive-x280", "riscv64", pytest.mark.slow),
        ("generic-rv64 -mattr=+v", "riscv64"),
    )
]
on_every_processor = pytest.mark.parametrize("target", PROCESSORS)

KERNELS: dict[str, dict[str, object]] = {
    "matmul": {"op": "matmul", "m": 13, "n": 70, "k": 37},
    "matmul of int8": {"op": "matmul", "m": 9, "n": 33, "k": 21, "dtype": "int8"},
    "matmul of float16": {"op": "matmul", "m": 9, "n": 33, "k": 21, "dtype": "float16"},
    "matmul of bfloat16": {"op": "matmul", "m": 9, "n": 33, "k": 21, "dtype": "bfloat16"},
    "dense": {"op": "dense", "m": 7, "n": 40, "k": 31, "bias": True, "activation": "relu"},
    "batch matmul": {"op": "batch_matmul", "b": 3, "m": 6, "n": 20, "k": 9},
    "conv2d": {
        "op": "conv2d", "ci": 3, "h": 9, "w": 11, "co": 20, "kh": 3, "kw": 3, "pad": 1, "layout": "NHWC"
    },
    "conv2d, NCHW": {
        "op": "conv2d", "ci": 5, "h": 7, "w": 7, "co": 9, "kh": 3, "kw": 3, "pad": 1, "stride": 2,
        "layout": "NCHW",
    },
    "depthwise": {
        "op": "depthwise_conv2d", "c": 19, "h": 7, "w": 9, "kh": 3, "kw": 3, "pad": 1, "layout": "NHWC"
    },
    "softmax": {"op": "softmax", "m": 5, "n": 67},
    "layer norm": {"op": "layer_norm", "m": 5, "n": 67},
}  # fmt: skip


@on_every_processor
@pytest.mark.parametrize("name", KERNELS)
def test_default_schedules_are_right(target: str, name: str, tmp_path: Path) -> None:
    func, parsed = topi.create(dict(KERNELS[name])), Target.parse(target)
    _assert_right(func, default_schedule(func, parsed).func, parsed, tmp_path)


@on_every_processor
@pytest.mark.parametrize("name", KERNELS)
@pytest.mark.slow
def test_schedules_drawn_from_every_sketch_are_right(target: str, name: str, tmp_path: Path) -> None:
    func, parsed = topi.create(dict(KERNELS[name])), Target.parse(target)
    ran = 0
    for sketch in space_of(func, parsed).sketches:
        for row in sketch.columns.random(64, np.random.default_rng(5))[:3]:
            try:
                scheduled = sketch.resolve(row).apply(func).func
                _assert_right(func, scheduled, parsed, tmp_path)
            except (ScheduleError, BuildError):
                continue
            ran += 1
    assert ran


def _assert_right(func: PrimFunc, scheduled: PrimFunc, target: Target, folder: Path) -> None:
    arrays = interpret.random_inputs(func, 3)
    want = interpret.expected(func, interpret.random_inputs(func, 3))
    checked = interpret.check(want, emulated.run(scheduled, arrays, target, folder))
    assert checked.ok, checked.message


on_every_kind_of_loop = pytest.mark.parametrize("kind", ["vectorized", "serial"])
of_every_dtype = pytest.mark.parametrize("dtype", DTYPES)


@on_every_processor
@on_every_kind_of_loop
@of_every_dtype
def test_every_operation_is_right(target: str, dtype: str, kind: str, tmp_path: Path) -> None:
    parts, (a, b) = operations(dtype), pairs(dtype)
    func = program(parts, (a, b), kind)
    arrays = results(func, (a, b))
    got = emulated.run(func, arrays, Target.parse(target), tmp_path, max_instructions=20_000)
    for op, x in zip(parts, got[2:], strict=True):
        assert_result(op, x, a, b)


@on_every_processor
@on_every_kind_of_loop
@of_every_dtype
def test_every_conversion_is_right(target: str, dtype: str, kind: str, tmp_path: Path) -> None:
    a, ran = values(dtype), 0
    to_ints = {k: v for k, v in conversions().items() if "int" in k}
    others = {k: v for k, v in conversions().items() if "int" not in k}
    for parts in (to_ints, others):
        func = program(parts, (a,), kind)
        try:
            got = emulated.run(func, results(func, (a,)), Target.parse(target), tmp_path)
        except emulated.EmulatorFault:
            continue
        for to, x in zip(parts, got[1:], strict=True):
            known = defined(a, to)
            with np.errstate(all="ignore"):
                assert_same(to, x[known], converted(a[known], DType.parse(to)), a[known])
        ran += 1
    assert ran


@on_every_processor
def test_a_parallel_loop_runs_on_two_threads(target: str, tmp_path: Path) -> None:
    a = te.placeholder((61, 40), "float32", name="A")
    func = te.create_prim_func([a, te.compute((61, 40), lambda i, j: a[i, j] * 2.0 + 1.0, name="B")])
    sch = Schedule(func)
    i, j = sch.get_loops(sch.get_block("B"))
    sch.vectorize(sch.split(j, [None, 4])[1])
    sch.parallel(i)
    arrays = interpret.random_inputs(func, 0)
    two = Target.parse(f"{target} -num-threads=2")
    _, b = emulated.run(sch.func, arrays, two, tmp_path)
    np.testing.assert_array_equal(b, arrays[0] * 2 + 1)
