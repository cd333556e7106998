"""Every operation on every dtype against NumPy, in scalar and in vector code."""

import operator
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from tilewright.compiler.arith import Poly, Var, poly
from tilewright.compiler.codegen.errors import BuildError
from tilewright.compiler.codegen.llvm.dtypes import memory_type
from tilewright.compiler.ir import (
    BOOL,
    Binary,
    Block,
    Buffer,
    Cast,
    Compare,
    Const,
    DType,
    For,
    IterKind,
    Load,
    LoopKind,
    PrimFunc,
    Select,
    Unary,
)
from tilewright.compiler.ir.expr import IndexValue
from tilewright.compiler.target import Target

Array = np.ndarray[Any, Any]
Run = Callable[..., Array]

SIGNED = ("int8", "int16", "int32", "int64")
UNSIGNED = ("uint8", "uint16", "uint32", "uint64")
INTEGERS = SIGNED + UNSIGNED
FLOATS = ("float32", "float64")
ALL = (*INTEGERS, *FLOATS, "bool")

in_both_loops = pytest.mark.parametrize("vector", [False, True], ids=["scalar", "vector"])


def edges(dtype: str) -> Array:
    """Values at the edges of the dtype, and some in between."""
    if dtype == "bool":
        return np.array([False, True])
    if dtype in FLOATS:
        f = np.finfo(dtype)
        values = [0.0, -0.0, 1.0, -1.0, 0.5, 2.5, -2.5, 3.49, 1e6, -1e-6, f.max, f.min, f.tiny, f.tiny / 8]
        return np.array([*values, np.inf, -np.inf, np.nan], dtype)
    i = np.iinfo(dtype)
    return np.unique(
        np.array([i.min, i.min + 1, i.max, i.max - 1, 0, 1, 2, 3, 7, 31, 100], dtype).astype(dtype)
        if i.min == 0
        else np.array([i.min, i.min + 1, i.max, -1, 0, 1, 2, 3, -3, 7, -7, 31, 100, -100], dtype)
    )


def pairs(dtype: str) -> tuple[Array, Array]:
    """Every edge with every edge."""
    a, b = np.meshgrid(edges(dtype), edges(dtype))
    return a.ravel().copy(), b.ravel().copy()


def same(got: Array, expected: Array) -> None:
    """Equal, and of one dtype; NaN equals NaN."""
    assert got.dtype == expected.dtype
    np.testing.assert_array_equal(got, expected)


def truncated(a: Array, b: Array, quotient: bool) -> Array:
    """C's division: towards zero; by zero it gives 0."""
    out = []
    for x, y in zip(a.tolist(), b.tolist(), strict=True):
        q = 0 if y == 0 else abs(x) // abs(y) * (1 if (x < 0) == (y < 0) else -1)
        out.append(q if quotient else 0 if y == 0 else x - q * y)
    bits = a.dtype.itemsize * 8
    return np.array([v % 2**bits for v in out], f"uint{bits}").astype(a.dtype)


NUMPY: dict[str, Callable[[Array, Array], Array]] = {
    "add": operator.add,
    "sub": operator.sub,
    "mul": operator.mul,
    "truediv": operator.truediv,
    "floordiv": np.floor_divide,
    "floormod": np.remainder,
    "truncdiv": lambda a, b: truncated(a, b, quotient=True),
    "truncmod": lambda a, b: truncated(a, b, quotient=False),
    "min": np.minimum,
    "max": np.maximum,
    "and": operator.and_,
    "or": operator.or_,
    "xor": operator.xor,
    "shl": np.left_shift,
    "shr": np.right_shift,
}
COMPARE = {op: getattr(operator, op) for op in ("eq", "ne", "lt", "le", "gt", "ge")}
BINARY = [
    *((op, d) for d in INTEGERS for op in NUMPY if op != "truediv"),
    *((op, d) for d in FLOATS for op in ("add", "sub", "mul", "truediv", "min", "max")),
    *((op, "bool") for op in ("and", "or", "xor", "min", "max")),
]


@in_both_loops
@pytest.mark.parametrize(("op", "dtype"), BINARY)
def test_binary_operations_agree_with_numpy_on_every_pair_of_edges(
    elementwise: Run, op: Any, dtype: str, vector: bool
) -> None:
    a, b = pairs(dtype)
    with np.errstate(all="ignore"):
        expected = NUMPY[op](a, b)
    same(elementwise(lambda x, y: Binary(op, x, y), dtype, a, b, vector=vector), expected)


@in_both_loops
@pytest.mark.parametrize("dtype", INTEGERS)
@pytest.mark.parametrize("op", ["floordiv", "floormod", "truncdiv", "truncmod", "shl", "shr"])
def test_division_and_shifts_by_a_constant_agree_with_numpy(
    elementwise: Run, op: Any, dtype: str, vector: bool
) -> None:
    a, c = edges(dtype), DType.parse(dtype)
    for n in (1, 3, 7) if dtype in UNSIGNED or op in ("shl", "shr") else (1, 3, -1, -7):
        with np.errstate(all="ignore"):
            expected = NUMPY[op](a, np.full_like(a, n))
        same(elementwise(lambda x, n=n: Binary(op, x, Const(n, c)), dtype, a, vector=vector), expected)


@in_both_loops
@pytest.mark.parametrize("dtype", ALL)
@pytest.mark.parametrize("op", COMPARE)
def test_comparisons_agree_with_numpy_on_every_pair_of_edges(
    elementwise: Run, op: Any, dtype: str, vector: bool
) -> None:
    a, b = pairs(dtype)
    same(elementwise(lambda x, y: Compare(op, x, y), "bool", a, b, vector=vector), COMPARE[op](a, b))


UNARY: list[tuple[str, str, Callable[[Array], Array]]] = [
    *(("neg", d, operator.neg) for d in (*INTEGERS, *FLOATS)),
    *(("abs", d, np.abs) for d in (*INTEGERS, *FLOATS)),
    *(("not", d, np.invert) for d in (*INTEGERS, "bool")),
    *(
        (op, d, f)
        for d in FLOATS
        for op, f in (("floor", np.floor), ("ceil", np.ceil), ("round", np.round), ("sqrt", np.sqrt))
    ),
]


@in_both_loops
@pytest.mark.parametrize(("op", "dtype", "f"), UNARY)
def test_unary_operations_agree_with_numpy_on_the_edges(
    elementwise: Run, op: Any, dtype: str, f: Callable[[Array], Array], vector: bool
) -> None:
    a = edges(dtype)
    with np.errstate(all="ignore"):
        expected = f(a)
    same(elementwise(lambda x: Unary(op, x), dtype, a, vector=vector), expected)


@in_both_loops
@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("op", ["exp", "log", "rsqrt", "tanh", "sigmoid"])
def test_elementary_functions_are_within_two_ulp(elementwise: Run, op: Any, dtype: str, vector: bool) -> None:
    a = edges(dtype)
    wide = a.astype(np.longdouble)
    with np.errstate(all="ignore"):
        exact = {
            "exp": lambda: np.exp(wide),
            "log": lambda: np.log(wide),
            "rsqrt": lambda: 1 / np.sqrt(wide),
            "tanh": lambda: np.tanh(wide),
            "sigmoid": lambda: 1 / (1 + np.exp(-wide)),
        }[op]().astype(dtype)
        got = elementwise(lambda x: Unary(op, x), dtype, a, vector=vector)
        error = np.abs(got - exact) / np.spacing(np.abs(exact))
    assert bool(np.all((error <= 2) | (got == exact) | (np.isnan(got) & np.isnan(exact))))


@in_both_loops
@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("op", ["floor", "ceil", "round"])
def test_rounding_without_an_instruction_for_it_agrees_with_numpy(
    elementwise: Run, op: Any, dtype: str, vector: bool
) -> None:
    old = Target.parse("llvm -mcpu=x86-64")
    a = np.concatenate([edges(dtype), np.array([-0.4, 0.6, -1.5, 1.5, 2.0**22 + 0.5, 2.0**51 + 0.5], dtype)])
    with np.errstate(all="ignore"):
        expected = {"floor": np.floor, "ceil": np.ceil, "round": np.round}[op](a)
    same(elementwise(lambda x: Unary(op, x), dtype, a, vector=vector, target=old), expected)


@in_both_loops
@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("exponent", [0.5, 0.0, 1.0, 2.0, 3.0, 7.0, -1.0, -2.0])
def test_powers_with_a_constant_exponent_agree_with_numpy(
    elementwise: Run, exponent: float, dtype: str, vector: bool
) -> None:
    a, c = edges(dtype), DType.parse(dtype)
    with np.errstate(all="ignore"):
        expected = np.power(a, np.full_like(a, exponent))
    got = elementwise(lambda x: Binary("pow", x, Const(exponent, c)), dtype, a, vector=vector)
    np.testing.assert_allclose(got, expected, rtol=8 * np.finfo(dtype).eps, atol=np.finfo(dtype).tiny)


def convertible(source: str, target: str) -> Array:
    """The edges of the source that NumPy converts in a defined way."""
    a = edges(source)
    if source in FLOATS and target not in (*FLOATS, "bool"):
        low, high = (-(2**31), 2**31) if np.dtype(target).itemsize < 4 else (-(2**62), 2**62)
        i = np.iinfo(target)
        if np.dtype(target).itemsize >= 4:
            low, high = i.min, i.max
        a = np.concatenate([a, np.array([127.9, -128.9, 255.9, 300.7, 70000.3], source)])
        with np.errstate(invalid="ignore"):
            a = a[np.isfinite(a) & (a > low) & (a < high)]
        return a[(a > -1) | (i.min < 0) | (np.dtype(target).itemsize < 4)]
    return a


@in_both_loops
@pytest.mark.parametrize("source", ALL)
@pytest.mark.parametrize("target", ALL)
def test_casts_agree_with_astype(elementwise: Run, source: str, target: str, vector: bool) -> None:
    a = convertible(source, target)
    with np.errstate(all="ignore"):
        expected = a.astype(target)
    same(elementwise(lambda x: Cast(DType.parse(target), x), target, a, vector=vector), expected)


@in_both_loops
def test_the_upper_half_of_uint64_comes_from_floats_as_astype_gives_it(
    elementwise: Run, vector: bool
) -> None:
    a = np.array([0.0, 1.5, 2.0**62, 2.0**63, 1.75 * 2.0**63, 18446744073709549568.0])
    got = elementwise(lambda x: Cast(DType("uint", 64), x), "uint64", a, vector=vector)
    same(got, a.astype("uint64"))


@in_both_loops
@pytest.mark.parametrize("dtype", ALL)
def test_a_selection_takes_each_element_from_its_side(elementwise: Run, dtype: str, vector: bool) -> None:
    a, b = pairs(dtype)
    bits = np.arange(len(a)) % 3 == 0
    got = elementwise(lambda c, x, y: Select(c, x, y), dtype, bits, a, b, vector=vector)
    same(got, np.where(bits, a, b))


@in_both_loops
@pytest.mark.parametrize("dtype", ALL)
def test_constants_arrive_in_their_dtype(elementwise: Run, dtype: str, vector: bool) -> None:
    for value in edges(dtype).tolist():
        got = elementwise(
            lambda x, v=value: Select(
                Compare("eq", x, Const(0, DType("int", 32))),
                Const(v, DType.parse(dtype)),
                Const(v, DType.parse(dtype)),
            ),
            dtype,
            np.arange(3, dtype="int32"),
            vector=vector,
        )
        same(got, np.full(3, value, dtype))


def indices(index: Callable[[Var], Poly], dtype: str, n: int, vector: bool) -> PrimFunc:
    """Out[i] = the index, as a value."""
    out, loop, it = Buffer("Out", (poly(n),), DType.parse(dtype)), Var("i", n), Var("i", n)
    block = Block(
        "Out", (it,), (IterKind.SPATIAL,), (poly(loop),), out, (poly(it),), IndexValue(index(it), out.dtype)
    )
    return PrimFunc(
        "indices", (out,), (), (For(loop, (block,), LoopKind("vectorized" if vector else "serial")),)
    )


@in_both_loops
@pytest.mark.parametrize("dtype", ALL)
def test_indices_as_values_wrap_around_in_their_dtype(
    built: Callable[..., Any], dtype: str, vector: bool
) -> None:
    out = np.empty(50, dtype)
    built(indices(lambda i: poly(i) * 7 - 100, dtype, 50, vector))(out)
    same(out, (np.arange(50) * 7 - 100).astype(dtype))


@in_both_loops
def test_an_index_beyond_32_bits_is_whole(built: Callable[..., Any], vector: bool) -> None:
    out = np.empty(40, "int64")
    built(indices(lambda i: poly(i) * 2**33 - 5, "int64", 40, vector))(out)
    same(out, np.arange(40) * 2**33 - 5)


@pytest.mark.parametrize(
    ("value", "reason"),
    [
        (lambda x: Unary("sin", Cast(DType("int", 32), x)), "emit: no code for sin of int32"),
        (lambda x: Binary("floordiv", x, x), "emit: no code for floordiv of float32"),
        (lambda x: Binary("truncmod", x, x), "emit: no code for truncmod of float32"),
        (lambda x: Binary("shl", x, x), "emit: no code for shl of float32"),
        (lambda x: Unary("exp", Cast(DType("int", 32), x)), "emit: no code for exp of int32"),
        (lambda x: Binary("add", Cast(BOOL, x), Cast(BOOL, x)), "emit: no code for add of bool"),
    ],
)
def test_an_operation_without_code_is_refused_by_name(
    elementwise: Run, value: Callable[[Load], Any], reason: str
) -> None:
    with pytest.raises(BuildError) as caught:
        elementwise(value, str(value(Load(Buffer("A", (poly(4),), DType("float", 32)), (poly(0),))).dtype),
                    np.ones(4, "float32"), vector=False)  # fmt: skip
    assert str(caught.value).split("\n")[0] == reason


def test_a_dtype_without_code_is_refused_with_the_supported_ones() -> None:
    with pytest.raises(BuildError) as caught:
        memory_type(DType("int", 4))
    assert str(caught.value) == (
        "no code for int4 yet; supported: float32, float64, float16, bfloat16, int8, int16, int32, int64, "
        "uint8, uint16, uint32, uint64, bool"
    )
