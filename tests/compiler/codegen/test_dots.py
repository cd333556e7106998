"""Dot products: which instruction a target has, and that it gives what one step after the other gives."""

from typing import Any

import ml_dtypes
import numpy as np
import pytest

import tilewright as tw
from tilewright.compiler import interpret, te, topi
from tilewright.compiler.codegen.llvm.dots import instructions_of
from tilewright.compiler.codegen.llvm.jit import emit_assembly
from tilewright.compiler.codegen.lower import lower
from tilewright.compiler.ir import PrimFunc
from tilewright.compiler.schedule import Schedule
from tilewright.compiler.space import default_schedule, space_of
from tilewright.compiler.target import Target

Array = np.ndarray[Any, Any]
SIGNS = [("int8", "int8"), ("uint8", "int8"), ("int8", "uint8"), ("uint8", "uint8")]
#: The processor's own instructions, those of int16 pairs, and none.
FEATURES = ("llvm", "llvm -mattr=-avx512vnni,-avxvnni", "llvm -math=strict")


def matmul(
    m: int, n: int, k: int, left: str, right: str, *, transposed: bool = False, wide: str = "int32"
) -> PrimFunc:
    """C[m, n] = the sum over k of A[m, k] * B[k, n], or B[n, k]."""
    a = te.placeholder((m, k), left, name="A")
    b = te.placeholder((n, k) if transposed else (k, n), right, name="B")
    r = te.reduce_axis((0, k), name="k")

    def element(i: te.Index, j: te.Index) -> te.Value:
        return te.sum(te.cast(a[i, r], wide) * te.cast(b[(j, r) if transposed else (r, j)], wide), axis=r)

    return te.create_prim_func([a, b, te.compute((m, n), element, name="C")], name="matmul")


def target_of(text: str) -> Target:
    """The target; as it is without features that this processor lacks anyway."""
    host = Target.parse("llvm")
    return Target.parse(text) if host.architecture == "x86_64" or "mattr" not in text else host


def results(func: PrimFunc, target: Target, a: Array, b: Array, configs: int = 1) -> list[Array]:
    """What the default schedule and some configs of each sketch compute."""
    schedules = [default_schedule(func, target)]
    for sketch in space_of(func, target).sketches:
        for row in sketch.columns.random(configs, np.random.default_rng(0))[:configs]:
            schedules.append(sketch.resolve(row).apply(func))
    out = []
    for schedule in schedules:
        c = np.full((a.shape[0], func.params[2].shape[1].const or 0), 77, func.params[2].dtype.numpy)
        tw.build(schedule, target=target)(a, b, c)
        out.append(c)
    return out


def every_value(dtype: str) -> Array:
    return np.arange(256, dtype=np.uint8).view(dtype)


@pytest.mark.parametrize("target", FEATURES[:2])
@pytest.mark.parametrize(("left", "right"), SIGNS)
def test_every_pair_of_values_of_8_bits_is_multiplied_exactly_in_every_step(
    left: str, right: str, target: str
) -> None:
    x, y = every_value(left), every_value(right)
    want = x.astype(np.int32)[:, None] * y.astype(np.int32)[None, :]
    func = matmul(256, 256, 4, left, right)
    (sketch,) = (s for s in space_of(func, target_of(target)).sketches[:1])
    schedule = sketch.resolve(sketch.columns.random(1, np.random.default_rng(0))[0]).apply(func)
    kernel = tw.build(schedule, target=target_of(target))
    for step in range(4):
        a, b, c = np.zeros((256, 4), left), np.zeros((4, 256), right), np.empty((256, 256), np.int32)
        a[:, step], b[step] = x, y
        kernel(a, b, c)
        np.testing.assert_array_equal(c, want)


@pytest.mark.parametrize("target", FEATURES[:2])
@pytest.mark.parametrize("transposed", [False, True])
@pytest.mark.parametrize("k", [1, 2, 3, 4, 5, 9, 68])
@pytest.mark.parametrize(("left", "right"), SIGNS[:2])
def test_odd_shapes_and_extreme_values(left: str, right: str, k: int, transposed: bool, target: str) -> None:
    rng = np.random.default_rng(k)
    low, high = np.iinfo(left).min, np.iinfo(left).max
    a = rng.choice(np.array([low, low + 1, 0, 1, high], left), (7, k))
    b = rng.choice(np.array([-128, -127, -1, 0, 127], np.int8), (k, 37))
    a[0], b[:, 0] = low, -128
    want = a.astype(np.int32) @ b.astype(np.int32)
    func = matmul(7, 37, k, left, right, transposed=transposed)
    for c in results(func, target_of(target), a, b.T.copy() if transposed else b):
        np.testing.assert_array_equal(c, want)


@pytest.mark.parametrize("target", FEATURES[:2])
def test_sums_in_int32_wrap_around(target: str) -> None:
    """2^31 / 128^2 terms and some more, of int8 and of int16."""
    k = 131_080
    a, b = np.full((1, k), -128, np.int8), np.full((k, 16), -128, np.int8)
    func = matmul(1, 16, k, "int8", "int8")
    for c in results(func, target_of(target), a, b):
        np.testing.assert_array_equal(c, np.full((1, 16), k * 128 * 128 - (1 << 32), np.int32))
    x, y = np.full((1, 8), -(1 << 15), np.int16), np.full((8, 16), -(1 << 15), np.int16)
    for c in results(matmul(1, 16, 8, "int16", "int16"), target_of(target), x, y):
        np.testing.assert_array_equal(c, np.zeros((1, 16), np.int32))
    x[0, 2:] = 0
    for c in results(matmul(1, 16, 8, "int16", "int16"), target_of(target), x, y):
        np.testing.assert_array_equal(c, np.full((1, 16), -(1 << 31), np.int32))


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
@pytest.mark.parametrize("target", FEATURES)
def test_narrow_floats_stay_within_the_bound_of_a_float32_sum(dtype: str, target: str) -> None:
    rng, (m, n, k) = np.random.default_rng(1), (7, 37, 51)
    kind = np.dtype(ml_dtypes.bfloat16) if dtype == "bfloat16" else np.dtype(dtype)
    a, b = rng.standard_normal((m, k)).astype(kind), rng.standard_normal((k, n)).astype(kind)
    x, y = a.astype(np.float64), b.astype(np.float64)
    bound = 8 * k**0.5 * np.finfo(np.float32).eps * (abs(x) @ abs(y))
    for c in results(matmul(m, n, k, dtype, dtype, wide="float32"), target_of(target), a, b, configs=2):
        assert np.all(abs(c - x @ y) <= bound)


def test_bfloat16_keeps_infinity_and_nan() -> None:
    a, b = np.ones((4, 4), ml_dtypes.bfloat16), np.ones((4, 16), ml_dtypes.bfloat16)
    a[0, 1], a[1, 2], a[2, 0], a[2, 3] = np.inf, np.nan, np.inf, -np.inf
    for c in results(matmul(4, 16, 4, "bfloat16", "bfloat16", wide="float32"), Target.parse("llvm"), a, b):
        np.testing.assert_array_equal(c[:, 0], np.array([np.inf, np.nan, np.nan, 4], np.float32))


def test_strict_math_never_adds_bfloat16_up_by_an_instruction() -> None:
    target = Target.parse("llvm -mcpu=sapphirerapids -math=strict")
    assert not any(i.left.is_float for i in instructions_of(target))
    assert any(i.left.is_float for i in instructions_of(Target.parse("llvm -mcpu=sapphirerapids")))


@pytest.mark.parametrize(
    ("target", "left", "right", "instruction"),
    [
        ("-mcpu=sapphirerapids", "uint8", "int8", "vpdpbusd"),
        ("-mcpu=sapphirerapids", "int8", "int8", "vpdpbusd"),
        ("-mcpu=sapphirerapids", "int16", "int16", "vpdpwssd"),
        ("-mcpu=sapphirerapids", "bfloat16", "bfloat16", "vdpbf16ps"),
        ("-mcpu=x86-64-v3 -mattr=+avxvnni", "uint8", "int8", "{vex}\tvpdpbusd"),
        ("-mcpu=x86-64-v3 -mattr=+avxvnni,+avxvnniint8", "int8", "int8", "vpdpbssd"),
        ("-mcpu=x86-64-v3", "int8", "int8", "vpmaddwd"),
        ("-mcpu=neoverse-n1", "int8", "int8", "sdot"),
        ("-mcpu=neoverse-n1", "uint8", "uint8", "udot"),
        ("-mcpu=neoverse-n1", "uint8", "int8", "sdot"),
        ("-mcpu=neoverse-n1 -mattr=+i8mm", "uint8", "int8", "usdot"),
        ("-mcpu=neoverse-n1 -mattr=+bf16", "bfloat16", "bfloat16", "bfdot"),
    ],
)
def test_the_inner_loop_is_the_instruction(target: str, left: str, right: str, instruction: str) -> None:
    parsed = Target.parse(f"llvm {target}")
    func = matmul(64, 64, 64, left, right, wide="int32" if "int" in left else "float32")
    schedule = default_schedule(func, parsed)
    assembly = emit_assembly(lower(schedule.func, parsed).text, parsed)
    assert f"\t{instruction}\t" in assembly.replace(" \t", "\t")
    assert "vpdpbusds" not in assembly


def test_a_unit_of_the_intrinsic_is_one_instruction_for_each_vector() -> None:
    """As tensorize makes it: flipped, and put right, by the code generator alone."""
    target = Target.parse("llvm -mcpu=sapphirerapids")
    a, b = te.placeholder((16, 4), "int8", name="A"), te.placeholder((16, 4), "int8", name="B")
    k = te.reduce_axis((0, 4), name="k")
    c = te.compute(
        (16,), lambda i: te.sum(te.cast(a[i, k], "int32") * te.cast(b[i, k], "int32"), axis=k), name="C"
    )
    sch = Schedule(te.create_prim_func([a, b, c], name="unit"))
    block = sch.get_block("C")
    sch.decompose_reduction(block, sch.get_loops(block)[0])
    sch.tensorize(sch.get_loops(block)[0], "dot_16x4_i8i8i32")
    assert emit_assembly(lower(sch.func, target).text, target).count("vpdpbusd") == 2
    x = np.random.default_rng(0).integers(-128, 128, (2, 16, 4)).astype(np.int8)
    out = np.empty(16, np.int32)
    tw.build(sch, target="llvm")(x[0], x[1], out)
    np.testing.assert_array_equal(out, (x[0].astype(np.int32) * x[1]).sum(1))


def test_steps_around_a_loop_that_carries_the_reduction_too() -> None:
    """All of its iterations add to one element, one after the other."""
    func = matmul(2, 32, 16, "uint8", "int8", transposed=True)
    sch = Schedule(func)
    block = sch.get_block("C")
    i, j, k = sch.get_loops(block)
    outer, middle, steps = sch.split(k, [None, 2, 4])
    j, lanes = sch.split(j, [2, 16])
    sch.reorder(i, outer, steps, j, middle, lanes)
    for loop in (steps, j, middle):
        sch.unroll(loop)
    sch.vectorize(lanes)
    rng = np.random.default_rng(6)
    a, b = rng.integers(0, 256, (2, 16)).astype(np.uint8), rng.integers(-128, 128, (32, 16)).astype(np.int8)
    out = np.empty((2, 32), np.int32)
    tw.build(sch, target="llvm")(a, b, out)
    np.testing.assert_array_equal(out, a.astype(np.int32) @ b.T.astype(np.int32))


@pytest.mark.parametrize(("left", "right"), SIGNS)
def test_the_c_generator_and_the_interpreter_give_the_same(left: str, right: str) -> None:
    rng, func = np.random.default_rng(2), matmul(6, 21, 10, left, right)
    a = rng.integers(np.iinfo(left).min, np.iinfo(left).max + 1, (6, 10)).astype(left)
    b = rng.integers(np.iinfo(right).min, np.iinfo(right).max + 1, (10, 21)).astype(right)
    want = a.astype(np.int32) @ b.astype(np.int32)
    sketch = space_of(func, Target.parse("llvm")).sketches[0]
    schedule = sketch.resolve(sketch.columns.random(1, np.random.default_rng(0))[0]).apply(func)
    for target in ("llvm", "c"):
        c = np.empty((6, 21), np.int32)
        tw.build(schedule, target=target)(a, b, c)
        np.testing.assert_array_equal(c, want)
    arrays = [a, b, np.empty((6, 21), np.int32)]
    interpret.run(schedule.func, arrays)
    np.testing.assert_array_equal(arrays[2], want)


@pytest.mark.parametrize(("left", "right"), SIGNS[:2])
@pytest.mark.parametrize("k", [8, 10])
def test_constant_weights_are_packed_before_the_calls(left: str, right: str, k: int) -> None:
    rng = np.random.default_rng(4)
    x, w = te.placeholder((9, k), left, name="X"), te.placeholder((k, 40), right, name="W", constant=True)
    func = te.create_prim_func([x, w, topi.matmul(x, w, name="Y")], name="constant")
    a = rng.integers(np.iinfo(left).min, np.iinfo(left).max + 1, (9, k)).astype(left)
    b = rng.integers(-128, 128, (k, 40)).astype(right)
    out = np.empty((9, 40), np.int32)
    tw.build(func, target="llvm", constants={"W": b})(a, out)
    np.testing.assert_array_equal(out, a.astype(np.int32) @ b.astype(np.int32))


@pytest.mark.parametrize("at_start", [False, True], ids=["before a page", "behind a page"])
@pytest.mark.parametrize("target", FEATURES)
@pytest.mark.parametrize(("left", "right"), SIGNS)
@pytest.mark.parametrize(("m", "k"), [(1, 100), (4, 332)])
def test_rows_that_fill_no_vector_are_read_to_their_end_and_no_further(
    guarded: Any, m: int, k: int, left: str, right: str, target: str, at_start: bool
) -> None:
    func, rng = matmul(m, 5, k, left, right, transposed=True), np.random.default_rng(k)
    a = guarded.array(rng.choice(every_value(left), (m, k)), at_start=at_start)
    b = guarded.array(rng.choice(every_value(right), (5, k)), at_start=at_start)
    exact = a.astype(np.int64) @ b.astype(np.int64).T
    for found in results(func, target_of(target), a, b):
        np.testing.assert_array_equal(found, exact)
