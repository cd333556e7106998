"""Every operation on every dtype, by each code generator, against NumPy."""

import operator
from collections.abc import Callable
from functools import cache
from typing import Any, NamedTuple

import ml_dtypes
import numpy as np
import pytest

from tilewright.compiler.arith import Var, poly
from tilewright.compiler.codegen.errors import BuildError
from tilewright.compiler.interpret.functions import ULPS
from tilewright.compiler.ir import (
    Binary,
    Block,
    Buffer,
    Cast,
    Compare,
    Const,
    DType,
    Expr,
    For,
    IterKind,
    Load,
    LoopKind,
    PrimFunc,
    Select,
    Unary,
)
from tilewright.compiler.ir.expr import IndexValue
from tilewright.compiler.runtime import Function
from tilewright.compiler.target import Target
from tilewright.compiler.target.runs import missing_features

Array = np.ndarray[Any, Any]

SIGNED = ("int8", "int16", "int32", "int64")
UNSIGNED = ("uint8", "uint16", "uint32", "uint64")
INTEGERS = SIGNED + UNSIGNED
NARROW = ("float16", "bfloat16")
FLOATS = ("float32", "float64", *NARROW)
ALL = (*INTEGERS, *FLOATS, "bool")
BITS = DType("bool", 8)


class Case(NamedTuple):
    """A program over inputs and what it must give, within so many units of eps·|result|."""

    func: PrimFunc
    inputs: tuple[Array, ...]
    expected: Array
    ulps: float = 0.0


def kind(dtype: str) -> Any:
    return DType.parse(dtype).numpy


def elementwise(dtype: str, value: Callable[..., Expr], *arrays: Array) -> PrimFunc:
    """out[i] = value(in0[i], in1[i], ...): a vector loop whose extent is whatever the inputs have."""
    n = arrays[0].shape[0]
    inputs = [Buffer(f"A{k}", (poly(n),), DType.parse(a.dtype.name)) for k, a in enumerate(arrays)]
    out, loop, it = Buffer("Out", (poly(n),), DType.parse(dtype)), Var("i", n), Var("i", n)
    at = (poly(it),)
    v = value(*(Load(b, at) for b in inputs))
    block = Block("Out", (it,), (IterKind.SPATIAL,), (poly(loop),), out, at, v)
    return PrimFunc("elementwise", (*inputs, out), (), (For(loop, (block,), LoopKind.VECTORIZED),))


def edges(dtype: str) -> Array:
    """Values at the edges of the dtype, and some in between."""
    if dtype == "bool":
        return np.array([False, True])
    if dtype in FLOATS:
        f = ml_dtypes.finfo(kind(dtype))
        values = [0.0, -0.0, 1.0, -1.0, 0.5, 2.5, -2.5, 3.49, 1e4, -1e-3, 1 + float(f.eps)]
        values += [float(f.max), float(f.min), float(f.tiny), float(f.tiny) / 4, np.inf, -np.inf, np.nan]
        return np.array(values).astype(kind(dtype))
    i = np.iinfo(dtype)
    between = [0, 1, 2, 3, 7, 31, 100] + ([] if i.min == 0 else [-1, -3, -7, -100])
    return np.unique(np.array([i.min, i.min + 1, i.max, i.max - 1, *between], dtype))


def pairs(dtype: str) -> tuple[Array, Array]:
    """Every edge with every edge."""
    a, b = np.meshgrid(edges(dtype), edges(dtype))
    return a.ravel().copy(), b.ravel().copy()


def truncated(a: Array, b: Array, quotient: bool) -> Array:
    """C's division: towards zero; by zero it gives 0."""
    out = []
    for x, y in zip(a.tolist(), b.tolist(), strict=True):
        q = 0 if y == 0 else abs(x) // abs(y) * (1 if (x < 0) == (y < 0) else -1)
        out.append(q if quotient else 0 if y == 0 else x - q * y)
    bits = a.dtype.itemsize * 8
    return np.array([v % 2**bits for v in out], f"uint{bits}").astype(a.dtype)


BINARY: dict[str, Callable[[Array, Array], Array]] = {
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
COMPARE = ("eq", "ne", "lt", "le", "gt", "ge")
FUNCTIONS: dict[str, Callable[[Array], Array]] = {
    "exp": np.exp,
    "log": np.log,
    "sqrt": np.sqrt,
    "rsqrt": lambda x: 1 / np.sqrt(x),
    "tanh": np.tanh,
    "sigmoid": lambda x: np.where(x < 0, np.exp(x) / (1 + np.exp(x)), 1 / (1 + np.exp(-x))),
    "sin": np.sin,
    "cos": np.cos,
}


def binary(op: Any, dtype: str) -> Case:
    a, b = pairs(dtype)
    expected = BINARY[op](a, b)
    return Case(elementwise(dtype, lambda x, y: Binary(op, x, y), a, b), (a, b), expected.astype(kind(dtype)))


def by_constant(op: Any, dtype: str, n: int) -> Case:
    a = edges(dtype)
    expected = BINARY[op](a, np.full_like(a, n))
    value = lambda x: Binary(op, x, Const(n, DType.parse(dtype)))  # noqa: E731
    return Case(elementwise(dtype, value, a), (a,), expected)


def chain(dtype: str) -> Case:
    """-(3 a - b) b + a, which passes the ends of the range several times."""
    a, b = pairs(dtype)
    three = Const(3, DType.parse(dtype))

    def value(x: Expr, y: Expr) -> Expr:
        return Binary("add", Binary("mul", Unary("neg", Binary("sub", Binary("mul", three, x), y)), y), x)

    expected = -(kind(dtype).type(3) * a - b) * b + a
    return Case(elementwise(dtype, value, a, b), (a, b), expected)


def compare(op: Any, dtype: str) -> Case:
    a, b = pairs(dtype)
    return Case(
        elementwise("bool", lambda x, y: Compare(op, x, y), a, b), (a, b), getattr(operator, op)(a, b)
    )


def unary(op: Any, dtype: str, f: Callable[[Array], Array]) -> Case:
    a = edges(dtype)
    expected = f(a)
    return Case(elementwise(dtype, lambda x: Unary(op, x), a), (a,), expected.astype(kind(dtype)))


def function(op: Any, dtype: str) -> Case:
    """A function within its stated error; the exact result is that of a wider format."""
    a = np.concatenate([edges(dtype), np.linspace(-20, 20, 301).astype(kind(dtype))])
    if op in ("sin", "cos"):
        a = a[~(np.abs(a.astype("f8")) > 1e4)]
    expected = FUNCTIONS[op](a.astype(np.longdouble))
    value = lambda x: Unary(op, x)  # noqa: E731
    return Case(elementwise(dtype, value, a), (a,), expected, ULPS[op])


def power(dtype: str) -> Case:
    a, b = np.meshgrid(np.array([0.0, 0.3, 1.0, 2.0, 7.5, np.inf]), np.array([-2.5, -1.0, 0.0, 0.5, 3.0]))
    x, y = (v.ravel().astype(kind(dtype)) for v in (a, b))
    expected = np.power(x.astype(np.longdouble), y.astype(np.longdouble))
    return Case(elementwise(dtype, lambda p, q: Binary("pow", p, q), x, y), (x, y), expected, ULPS["pow"])


def select(dtype: str) -> Case:
    a, b = pairs(dtype)
    c = np.arange(len(a)) % 3 == 0
    return Case(elementwise(dtype, lambda p, x, y: Select(p, x, y), c, a, b), (c, a, b), np.where(c, a, b))


def constants(dtype: str) -> Case:
    """The edges as immediates: out[i] = edges[i]."""
    values, a = edges(dtype), np.arange(len(edges(dtype)), dtype="int32")

    def value(x: Expr) -> Expr:
        out: Expr = Const(values[0].item(), DType.parse(dtype))
        for n, v in enumerate(values[1:], 1):
            out = Select(
                Compare("eq", x, Const(n, DType("int", 32))), Const(v.item(), DType.parse(dtype)), out
            )
        return out

    return Case(elementwise(dtype, value, a), (a,), values)


def convertible(source: str, target: str) -> Array:
    """Edges of the source that NumPy converts in a defined way."""
    a = edges(source)
    if source not in FLOATS or target in (*FLOATS, "bool"):
        return np.concatenate([a, halfway(source)]) if source == "float64" else a
    i = np.iinfo(target)
    low, high = (-(2.0**31), 2.0**31) if i.bits < 32 else (float(i.min), float(i.max))
    a = np.concatenate([a, np.array([127.9, -128.9, 255.9, 300.7, 70000.3]).astype(kind(source))])
    wide = a.astype("f8")
    return a[np.isfinite(wide) & (wide > low) & (wide < high) & ((wide > -1) | (i.min < 0) | (i.bits < 32))]


def halfway(source: str) -> Array:
    """Next to the middle of two float16 numbers: where rounding twice would go wrong."""
    middle = 1 + 2.0**-11 + np.arange(8) * 2.0**-10
    return np.concatenate([middle, middle * (1 + 2.0**-40), middle * (1 - 2.0**-40)]).astype(source)


def cast(source: str, target: str) -> Case:
    a = convertible(source, target)
    expected = a.astype(kind(target))
    return Case(elementwise(target, lambda x: Cast(DType.parse(target), x), a), (a,), expected)


def every(dtype: str) -> Case:
    """Each of the 65536 numbers of a 16-bit float, as float32."""
    a = np.arange(2**16, dtype="uint16").view(kind(dtype))
    return Case(elementwise("float32", lambda x: Cast(DType("float", 32), x), a), (a,), a.astype("float32"))


def middles(dtype: str, source: str) -> Case:
    """Each middle of two successive numbers of a 16-bit float, and what is next to it on both sides: rounded
    once, to the nearest, of two to the even one."""
    top = 0x7C00 if dtype == "float16" else 0x7F80
    bits = np.arange(top + 1, dtype="uint16")
    a = bits.view(kind(dtype)).astype("float64")
    a[top] = 2 * a[top - 1] - a[top - 2]  # what would come next, where infinity is
    middle, even = (a[1:] + a[:-1]) / 2, bits[:-1] + bits[:-1] % 2
    if source in INTEGERS:
        inside = (middle > 2**12) & (middle < 2.0 ** (np.iinfo(source).bits - 1))
        m = middle[inside].astype(source)
        x, expected = np.concatenate([m, m - 1, m + 1]), np.tile(inside, 3)
        rounded = np.concatenate([even, bits[:-1], bits[1:]])[expected]
        return Case(
            elementwise(dtype, lambda v: Cast(DType.parse(dtype), v), x), (x,), rounded.view(kind(dtype))
        )
    m = middle.astype(source)
    x = np.concatenate([m, np.nextafter(m, kind(source).type(0)), np.nextafter(m, kind(source).type(np.inf))])
    rounded = np.concatenate([even, bits[:-1], bits[1:]])
    x, rounded = np.concatenate([x, -x]), np.concatenate([rounded, rounded | 0x8000])
    return Case(elementwise(dtype, lambda v: Cast(DType.parse(dtype), v), x), (x,), rounded.view(kind(dtype)))


def index(dtype: str) -> Case:
    a = np.zeros(50, "int8")
    expected = (np.arange(50) * 7 - 100).astype(kind(dtype))
    func = elementwise(dtype, lambda x: IndexValue(x.indices[0] * 7 - 100, DType.parse(dtype)), a)
    return Case(func, (a,), expected)


CASES: dict[str, Callable[[], Case]] = {
    **{f"{op} {d}": lambda op=op, d=d: binary(op, d) for d in INTEGERS for op in BINARY if op != "truediv"},
    **{
        f"{op} {d}": lambda op=op, d=d: binary(op, d)
        for d in FLOATS
        for op in ("add", "sub", "mul", "truediv", "min", "max")
    },
    **{f"{op} bool": lambda op=op: binary(op, "bool") for op in ("and", "or", "xor", "min", "max")},
    **{
        f"{op} {d} by {n}": lambda op=op, d=d, n=n: by_constant(op, d, n)
        for d in INTEGERS
        for op in ("floordiv", "floormod", "truncdiv", "truncmod", "shl", "shr")
        for n in ((1, 7) if d in UNSIGNED or op[:2] == "sh" else (3, -1, -7))
    },
    **{f"chain {d}": lambda d=d: chain(d) for d in (*INTEGERS, *NARROW)},
    **{f"{op} {d}": lambda op=op, d=d: compare(op, d) for d in ALL for op in COMPARE},
    **{f"neg {d}": lambda d=d: unary("neg", d, operator.neg) for d in (*INTEGERS, *FLOATS)},
    **{f"abs {d}": lambda d=d: unary("abs", d, np.abs) for d in (*INTEGERS, *FLOATS)},
    **{f"not {d}": lambda d=d: unary("not", d, np.invert) for d in (*INTEGERS, "bool")},
    **{
        f"{op} {d}": lambda op=op, f=f, d=d: unary(op, d, f)
        for d in FLOATS
        for op, f in (("floor", np.floor), ("ceil", np.ceil), ("round", np.rint), ("sqrt", np.sqrt))
    },
    **{f"function {op} {d}": lambda op=op, d=d: function(op, d) for d in FLOATS for op in FUNCTIONS},
    **{f"pow {d}": lambda d=d: power(d) for d in FLOATS},
    **{f"select {d}": lambda d=d: select(d) for d in ALL},
    **{f"constants {d}": lambda d=d: constants(d) for d in ALL},
    **{f"{d} to {e}": lambda d=d, e=e: cast(d, e) for d in ALL for e in ALL},
    **{f"every {d}": lambda d=d: every(d) for d in NARROW},
    **{f"middles {d} of {e}": lambda d=d, e=e: middles(d, e) for d in NARROW for e in ("float32", "float64")},
    **{
        f"middles bfloat16 of {e}": lambda e=e: middles("bfloat16", e)
        for e in ("int32", "uint32", "int64", "uint64")
    },
    **{f"index {d}": lambda d=d: index(d) for d in (*INTEGERS, *FLOATS)},
}


@cache
def case(name: str) -> Case:
    with np.errstate(all="ignore"):
        return CASES[name]()


@pytest.fixture(scope="module")
def kernels(batch: Callable[..., Any]) -> dict[str, Function | BuildError]:
    """Each case's kernel; for AVX2 where the machine has it, for which C compiles fastest."""
    avx2 = "-mcpu=x86-64-v3"
    options = "" if missing_features(Target.parse(f"llvm {avx2}")) else avx2
    return dict(zip(CASES, batch([case(name).func for name in CASES], options), strict=True))


@pytest.mark.parametrize("name", CASES)
def test_an_operation_agrees_with_numpy(kernels: dict[str, Function | BuildError], name: str) -> None:
    kernel, (func, inputs, expected, ulps) = kernels[name], case(name)
    assert isinstance(kernel, Function), str(kernel)
    dtype = func.params[-1].dtype
    out = np.empty(inputs[0].shape[0], dtype.numpy)
    out.view(np.uint8)[:] = 0xAA
    kernel(*inputs, out)
    if not ulps:
        assert out.dtype == expected.dtype
        # assert_array_equal takes a NaN of bfloat16 for a number.
        shown = "float32" if dtype.code == "bfloat" else out.dtype
        np.testing.assert_array_equal(out.astype(shown), expected.astype(shown))
        return
    tiny = float(ml_dtypes.finfo(out.dtype).smallest_subnormal)
    with np.errstate(all="ignore"):
        got, rounded = out.astype(np.longdouble), expected.astype(out.dtype).astype(np.longdouble)
        near = np.abs(got - expected) <= ulps * (dtype.eps * np.abs(expected) + tiny)
    same = (got == rounded) | (np.isnan(got) & np.isnan(expected))
    wrong = np.flatnonzero(~(near | same))
    assert not wrong.size, [(inputs[0][n], out[n], expected[n]) for n in wrong[:5]]
