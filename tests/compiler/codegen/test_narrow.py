"""float16 and bfloat16: the bits of NumPy and ml_dtypes, through every way of reading and writing."""

import operator
from collections.abc import Callable, Iterator
from typing import Any

import ml_dtypes
import numpy as np
import pytest

import tilewright as tw
from tilewright import te, topi
from tilewright.compiler import interpret
from tilewright.compiler.ir import Binary, Cast, DType, PrimFunc, Unary
from tilewright.compiler.schedule import Schedule
from tilewright.compiler.space import space_of
from tilewright.compiler.target import Target
from tilewright.compiler.target.runs import missing_features

Array = np.ndarray[Any, Any]
Run = Callable[..., Array]

NARROW = ("float16", "bfloat16")
PROCESSORS = ("llvm", "llvm -mcpu=x86-64-v3", "llvm -mcpu=x86-64")
TARGETS = tuple(t for t in PROCESSORS if not missing_features(Target.parse(t)))


@pytest.fixture(autouse=True)
def no_warnings() -> Iterator[None]:
    """NumPy warns of signalling NaN."""
    with np.errstate(all="ignore"):
        yield


of_both = pytest.mark.parametrize("dtype", NARROW)
on_every_processor = pytest.mark.parametrize("target", TARGETS)
in_both_loops = pytest.mark.parametrize("vector", [False, True], ids=["scalar", "vector"])


def kind(dtype: str) -> Any:
    return DType.parse(dtype).numpy.type


def every(dtype: str) -> Array:
    """All 65536 numbers."""
    return np.arange(1 << 16, dtype=np.uint16).view(kind(dtype))


def some(dtype: str, n: int, seed: int = 0) -> Array:
    """Random bits."""
    return np.random.default_rng(seed).integers(0, 1 << 16, n, np.uint16).view(kind(dtype))


def same(got: Array, want: Array) -> None:
    """The same numbers, with the sign of zeros; NaN where NaN is wanted."""
    assert got.dtype == want.dtype
    bits = f"u{got.itemsize}"
    nan = np.isnan(got) & np.isnan(want)
    np.testing.assert_array_equal(np.where(nan, 0, got.view(bits)), np.where(nan, 0, want.view(bits)))


# ---- conversions ----
@of_both
@on_every_processor
@in_both_loops
def test_every_number_becomes_a_float32_and_comes_back(
    elementwise: Run, dtype: str, target: str, vector: bool
) -> None:
    a, t = every(dtype), Target.parse(target)
    got = elementwise(lambda x: Cast(DType("float", 32), x), "float32", a, vector=vector, target=t)
    same(got, a.astype(np.float32))
    back = elementwise(lambda x: Cast(DType.parse(dtype), x), dtype, got, vector=vector, target=t)
    same(back, a)


def beside_ties(dtype: str, wide: Any) -> Array:
    """Numbers half-way between two neighbours, those beside them, and numbers of every size."""
    rng = np.random.default_rng(1)
    with np.errstate(all="ignore"):
        low = every(dtype).astype(np.float64)
        high = np.nextafter(every(dtype), kind(dtype)(np.inf)).astype(np.float64)
        ties = ((low + high) / 2)[::7].astype(wide)
        all_of = [ties, np.nextafter(ties, wide(0)), np.nextafter(ties, wide(np.inf))]
        size = np.dtype(wide).itemsize
        all_of.append(rng.integers(0, 2 ** (8 * size) - 1, 20_000, f"u{size}").view(wide))
        all_of.append((rng.standard_normal(20_000) * 10.0 ** rng.uniform(-8, 6, 20_000)).astype(wide))
    return np.concatenate(all_of)


def nearest(a: Array, dtype: str) -> Array:
    """The nearest numbers of a narrow dtype, to even at ties: by searching all of them."""
    numbers = every(dtype)
    positive = numbers[: np.flatnonzero(np.isposinf(numbers.astype(np.float64)))[0] + 1]
    exact = positive.astype(np.longdouble)
    # Where infinity would be if there were no limit: halfway to it rounds up.
    exact[-1] = 2 * exact[-2] - exact[-3]
    with np.errstate(all="ignore"):
        size = np.abs(a.astype(np.longdouble))
        at = np.clip(np.searchsorted(exact, size), 1, len(exact) - 1)
        below, above = size - exact[at - 1], exact[at] - size
        up = (above < below) | ((above == below) & (at % 2 == 0)) | (size >= exact[-1])
    out = positive[np.where(up, at, at - 1)]
    out = np.where(np.isnan(a), np.array(np.nan, out.dtype), out)
    return np.where(np.signbit(a) & ~np.isnan(a), -out, out).astype(out.dtype)


@of_both
@on_every_processor
@in_both_loops
@pytest.mark.parametrize("wide", [np.float32, np.float64])
def test_wider_floats_are_rounded_once_to_even(
    elementwise: Run, dtype: str, target: str, vector: bool, wide: Any
) -> None:
    a = beside_ties(dtype, wide)
    got = elementwise(
        lambda x: Cast(DType.parse(dtype), x), dtype, a, vector=vector, target=Target.parse(target)
    )
    same(got, nearest(a, dtype))
    if dtype == "float16" or wide is np.float32:
        with np.errstate(all="ignore"):
            same(got, a.astype(kind(dtype)))


@of_both
@on_every_processor
@in_both_loops
@pytest.mark.parametrize("source", ["int32", "uint32", "int64", "uint64"])
def test_integers_are_rounded_once_to_even(
    elementwise: Run, dtype: str, target: str, vector: bool, source: str
) -> None:
    rng = np.random.default_rng(2)
    i = np.iinfo(source)
    high = rng.integers(i.min, i.max, 4000, source) >> rng.integers(0, i.bits, 4000).astype(source)
    # Half-way between two numbers of 8 digits, and beside.
    ties = np.array([(257 + 2 * k) << s for k in range(9) for s in range(i.bits - 10)], source)
    a = np.concatenate([high, ties, ties + 1, ties - 1]).astype(source)
    exact = a.astype(np.longdouble)
    assert [int(v) for v in exact[:50]] == a[:50].tolist()
    got = elementwise(
        lambda x: Cast(DType.parse(dtype), x), dtype, a, vector=vector, target=Target.parse(target)
    )
    same(got, nearest(exact, dtype))


# ---- operations ----
OPERATIONS = {
    "add": operator.add, "sub": operator.sub, "mul": operator.mul, "truediv": operator.truediv,
    "min": np.minimum, "max": np.maximum,
}  # fmt: skip


@of_both
@on_every_processor
@pytest.mark.parametrize("op", OPERATIONS)
def test_operations_on_random_bits_have_the_bits_of_numpy(
    elementwise: Run, dtype: str, target: str, op: Any
) -> None:
    a, b = some(dtype, 60_001), some(dtype, 60_001, 1)
    got = elementwise(lambda x, y: Binary(op, x, y), dtype, a, b, vector=True, target=Target.parse(target))
    with np.errstate(all="ignore"):
        want = OPERATIONS[op](a, b)
    if op in ("min", "max"):
        got, want = got + kind(dtype)(0), want + kind(dtype)(0)
    same(got, want)


@of_both
@on_every_processor
@pytest.mark.parametrize("op", ["sqrt", "neg", "abs", "floor", "ceil", "round"])
def test_exact_functions_of_every_number_have_the_bits_of_numpy(
    elementwise: Run, dtype: str, target: str, op: Any
) -> None:
    a = every(dtype)
    got = elementwise(lambda x: Unary(op, x), dtype, a, vector=True, target=Target.parse(target))
    with np.errstate(all="ignore"):
        same(got, {"neg": np.negative, "round": np.rint}.get(op, getattr(np, op, None))(a))


@of_both
@pytest.mark.parametrize("op", ["exp", "log", "tanh", "sin", "cos"])
def test_other_functions_of_every_number_are_the_nearest_or_next_to_it(
    elementwise: Run, dtype: str, op: Any
) -> None:
    a = every(dtype)
    got = elementwise(lambda x: Unary(op, x), dtype, a, vector=True)
    with np.errstate(all="ignore"):
        want = nearest(getattr(np, op)(a.astype(np.float64)), dtype)
    number = ~(np.isnan(want) & np.isnan(got))
    apart = np.abs(got.view(np.int16).astype(int) - want.view(np.int16).astype(int))[number]
    assert apart.max() <= 1
    assert (apart != 0).mean() < 0.001


@of_both
def test_a_product_and_a_sum_are_rounded_apart(elementwise: Run, dtype: str) -> None:
    a, b, c = some(dtype, 5000), some(dtype, 5000, 1), some(dtype, 5000, 2)
    got = elementwise(lambda x, y, z: Binary("add", Binary("mul", x, y), z), dtype, a, b, c, vector=True)
    with np.errstate(all="ignore"):
        same(got, a * b + c)


# ---- ways of reading and writing ----
def bits(dtype: str, *shape: int) -> Array:
    return some(dtype, int(np.prod(shape))).reshape(shape)


@of_both
@on_every_processor
@pytest.mark.parametrize("n", [1, 7, 64, 100])
def test_a_copy_keeps_every_bit_even_of_signalling_nan(dtype: str, target: str, n: int) -> None:
    a = te.placeholder((64, n), dtype, name="A")
    x = np.resize(np.arange(0x7C00, 1 << 16, 131, dtype=np.uint16), (64, n)).view(kind(dtype))
    b = te.compute(a.shape, lambda i, j: a[i, j], name="B")
    out = np.empty_like(x)
    tw.build(te.create_prim_func([a, b]), target)(x, out)
    np.testing.assert_array_equal(out.view(np.uint16), x.view(np.uint16))


@of_both
@on_every_processor
def test_transposed_strided_broadcast_and_padded_reads_keep_every_bit(dtype: str, target: str) -> None:
    x, zero = bits(dtype, 37, 29), np.zeros((), kind(dtype))
    a = te.placeholder(x.shape, dtype, name="A")
    cases = {
        "transposed": ((29, 37), lambda i, j: a[j, i], x.T),
        "strided": ((37, 9), lambda i, j: a[i, 3 * j + 1], x[:, 1:28:3]),
        "reversed": ((37, 29), lambda i, j: a[i, 28 - j], x[:, ::-1]),
        "broadcast": ((37, 20), lambda i, j: a[i, 3], np.repeat(x[:, 3:4], 20, 1)),
        "padded": (
            (39, 33),
            lambda i, j: te.if_then_else(
                te.all(i >= 1, i < 38, j >= 2, j < 31), a[i - 1, j - 2], te.const(0, dtype)
            ),
            np.pad(x, ((1, 1), (2, 2)), constant_values=zero),
        ),
        "chosen": (
            (37, 28),
            lambda i, j: te.if_then_else(te.cast(a[i, 0], "int32") > 0, a[i, j], a[i, j + 1]),
            np.where(x[:, :1].astype(np.float32) >= 1, x[:, :-1], x[:, 1:]),
        ),
    }
    for name, (shape, value, want) in cases.items():
        if name == "chosen":
            x_ = np.where(np.abs(x[:, :1].astype(np.float32)) < 1e9, x[:, :1], 5).astype(x.dtype)
            x = np.concatenate([x_, x[:, 1:]], 1)
            want = np.where(x[:, :1].astype(np.float32) >= 1, x[:, :-1], x[:, 1:])
        func = te.create_prim_func([a, te.compute(shape, value, name="B")])
        for vector in (False, True):
            sch = Schedule(func)
            if vector:
                sch.vectorize(sch.get_loops(sch.get_block("B"))[-1])
            out = np.empty(shape, x.dtype)
            tw.build(sch, target)(x, out)
            np.testing.assert_array_equal(
                out.view(np.uint16), np.ascontiguousarray(want).view(np.uint16), name
            )


@of_both
@pytest.mark.parametrize("scope", ["register", "local", "global"])
def test_stages_in_registers_and_in_memory_are_rounded_alike(dtype: str, scope: str) -> None:
    x, y = bits(dtype, 6, 40), bits(dtype, 6, 40)[::-1].copy()
    a, b = te.placeholder(x.shape, dtype, name="A"), te.placeholder(x.shape, dtype, name="B")
    p = te.compute(x.shape, lambda i, j: a[i, j] * b[i, j], name="P")
    func = te.create_prim_func([a, b, te.compute(x.shape, lambda i, j: p[i, j] + a[i, j], name="C")])
    sch = Schedule(func)
    block = sch.get_block("P")
    i, j = sch.get_loops(sch.get_block("C"))
    _, lanes = sch.split(j, [None, 16])
    sch.vectorize(lanes)
    sch.compute_at(block, i)
    sch.vectorize(sch.split(sch.get_loops(block)[-1], [None, 16])[1])
    for loop in (sch.get_loops(block)[-2], sch.get_loops(sch.get_block("C"))[-2]):
        sch.unroll(loop)
    sch.set_scope(block, 0, scope)
    out = np.empty_like(x)
    tw.build(sch)(x, y, out)
    with np.errstate(all="ignore"):
        same(out, x * y + x)


@of_both
def test_parameters_keep_the_dtype_of_the_user(dtype: str) -> None:
    a = te.placeholder((8,), dtype, name="A")
    b = te.compute((8,), lambda i: te.cast(a[i], "float32") + 1.0, name="B")
    module = tw.build(te.create_prim_func([a, b]))
    assert [p.dtype for p in module.params] == [dtype, "float32"]
    with pytest.raises(TypeError, match=f"expected dtype {dtype}, got uint16"):
        module(np.zeros(8, np.uint16), np.zeros(8, np.float32))


# ---- whole operators ----
@of_both
@on_every_processor
@pytest.mark.parametrize("k", [7, 8, 16, 80])
def test_products_of_matrices_are_within_a_hundredth(dtype: str, target: str, k: int) -> None:
    rng = np.random.default_rng(k)
    x, w = rng.standard_normal((19, k)).astype(kind(dtype)), rng.standard_normal((k, 33)).astype(kind(dtype))
    x[0], w[:, 0] = 1 / 1024, 1.0
    out = np.empty((19, 33), kind(dtype))
    tw.build(topi.create({"op": "matmul", "m": 19, "n": 33, "k": k, "dtype": dtype}), target)(x, w, out)
    want = x.astype(np.float64) @ w.astype(np.float64)
    np.testing.assert_allclose(out.astype(np.float64), want, rtol=1e-2, atol=1e-2)
    assert float(out[0, 0]) == float(kind(dtype)(k / 1024))


@of_both
def test_a_hundred_thousand_are_summed_in_float32(dtype: str) -> None:
    x = np.random.default_rng(0).uniform(0, 1, 100_000).astype(kind(dtype))
    a = te.placeholder(x.shape, dtype, name="A")
    k = te.reduce_axis((0, x.shape[0]), name="k")
    out = np.empty(1, kind(dtype))
    tw.build(te.create_prim_func([a, te.compute((1,), lambda i: te.sum(a[k] + te.cast(i, dtype), axis=k))]))(
        x, out
    )
    np.testing.assert_allclose(float(out[0]), x.astype(np.float64).sum(), rtol=2.0**-7)
    ones = np.ones_like(x) * kind(dtype)(0.5)
    tw.build(te.create_prim_func([a, te.compute((1,), lambda i: te.sum(a[k] + te.cast(i, dtype), axis=k))]))(
        ones, out
    )
    assert out[0] == kind(dtype)(50_000)


REQUESTS = (
    {"op": "matmul", "m": 13, "n": 37, "k": 24},
    {"op": "matmul", "m": 13, "n": 37, "k": 24, "transpose_b": True, "out_dtype": "float32"},
    {"op": "conv2d", "ci": 4, "h": 9, "w": 9, "co": 8, "kh": 3, "kw": 3, "pad": 1, "activation": "relu"},
    {"op": "conv2d", "ci": 4, "h": 7, "w": 7, "co": 8, "kh": 3, "kw": 3, "pad": 1, "layout": "NHWC"},
    {"op": "softmax", "m": 7, "n": 37},
    {"op": "layer_norm", "m": 7, "n": 37},
    {"op": "add", "shape": [7, 37]},
    {"op": "transpose", "shape": [7, 37]},
)


def assert_computes(func: PrimFunc, schedule: Schedule | None, target: str) -> None:
    """The kernel's outputs are what the reference says."""
    arrays = interpret.random_inputs(func, seed=4)
    expected = interpret.expected(func, arrays)
    tw.build(func if schedule is None else schedule, target)(*arrays)
    found = interpret.check(expected, arrays)
    assert found.ok, (found.message, str(schedule))


@of_both
@on_every_processor
@pytest.mark.parametrize("request_", REQUESTS, ids=lambda r: " ".join(map(str, r.values())))
def test_the_default_schedule_of_every_operator_computes_the_reference(
    request_: dict[str, Any], dtype: str, target: str
) -> None:
    assert_computes(topi.create({**request_, "dtype": dtype}), None, target)


@of_both
@pytest.mark.parametrize("request_", REQUESTS, ids=lambda r: " ".join(map(str, r.values())))
def test_every_sketch_of_every_operator_computes_the_reference(request_: dict[str, Any], dtype: str) -> None:
    func = topi.create({**request_, "dtype": dtype})
    for sketch in space_of(func, Target.parse("llvm")).sketches:
        for row in sketch.columns.random(2, np.random.default_rng(6)):
            assert_computes(func, sketch.resolve(row).apply(func), "llvm")


def test_a_pure_move_has_as_many_lanes_as_fit_and_arithmetic_those_of_float32() -> None:
    target, lanes = Target.parse("llvm -mcpu=x86-64-v4"), {}
    for name, request in {"move": {"op": "transpose", "axes": [0, 1]}, "sum": {"op": "add"}}.items():
        func = topi.create({**request, "shape": [16, 256], "dtype": "bfloat16"})
        (sketch,) = space_of(func, target).sketches
        lanes[name] = next(k.domain[-1] for k in sketch.knobs if "vl" in k.name)
    assert lanes == {"move": 32, "sum": 16}


def test_bfloat16_is_that_of_ml_dtypes() -> None:
    assert kind("bfloat16") is ml_dtypes.bfloat16
