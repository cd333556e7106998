"""Programs with one output for every operation of a dtype, values to run them on, and what NumPy says."""

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from tilewright.compiler.arith import Var, poly
from tilewright.compiler.interpret.functions import FUNCTIONS
from tilewright.compiler.ir import (
    Binary,
    Block,
    Buffer,
    Cast,
    Compare,
    DType,
    Expr,
    For,
    IterKind,
    Load,
    LoopKind,
    PrimFunc,
    Unary,
)
from tilewright.compiler.ir.expr import BINARY_OPS, COMPARE_OPS, UNARY_OPS
from tilewright.compiler.ir.rounding import converted
from tilewright.compiler.ir.rules import refused

Array = np.ndarray[Any, Any]
Value = Callable[..., Expr]

DTYPES = (
    *(f"{sign}int{bits}" for sign in ("", "u") for bits in (8, 16, 32, 64)),
    *("float16", "bfloat16", "float32", "float64", "bool"),
)
#: Largest error in units of the last place of the dtype; every other operation is exact to the bit.
ULPS: dict[str, float] = {
    "exp": 1.2, "log": 0.85, "tanh": 1.6, "sigmoid": 2.0, "erf": 1.3, "rsqrt": 1.5, "sin": 0.9, "cos": 0.9,
    "pow": 1.3, "gelu": 0.9,
}  # fmt: skip
#: What a reference that is a double itself, and a function of double, may be wrong by beyond that.
DOUBLE_SLACK = {"erf": 1.0, "gelu": 6.0}


def values(dtype: str) -> Array:
    """The edges of the dtype, and what lies around them."""
    if dtype == "bool":
        return np.array([False, True])
    d = DType.parse(dtype)
    rng = np.random.default_rng(7)
    if d.is_int:
        low, high = d.limits
        near = {low, low + 1, high, high - 1, 0, 1, 2, 3, 7, 31, d.bits - 1, d.bits, 100, high // 2, 85}
        near |= {-v for v in near} if low else set()
        some = rng.integers(low, high, 12, dtype=d.numpy, endpoint=True)
        return np.unique(np.concatenate([np.array([v for v in near if low <= v <= high], d.numpy), some]))
    f = finfo(d)
    edges = [0.0, 1.0, 0.5, 1.5, 2.5, 3.0, 7.0, 0.1, 1 / 3, 100.0, 1000.0, 2.0**10, f["max"], f["tiny"]]
    edges += [f["tiny"] / 2, f["smallest"], 3 * f["smallest"], 1 + f["eps"], 1 - f["eps"] / 2, math.inf]
    some = rng.standard_normal(10)
    with np.errstate(all="ignore"):
        return np.array([*edges, *(-e for e in edges), *some, math.nan]).astype(d.numpy)


def finfo(d: DType) -> dict[str, float]:
    """The limits of a floating-point dtype."""
    if d.code == "bfloat":
        return {"max": 3.3895313892515355e38, "tiny": 2.0**-126, "smallest": 2.0**-133, "eps": 2.0**-7}
    f = np.finfo(d.numpy)
    return {"max": float(f.max), "tiny": float(f.tiny), "smallest": float(f.smallest_subnormal), "eps": d.eps}


def pairs(dtype: str) -> tuple[Array, Array]:
    """Every value with every value."""
    a, b = np.meshgrid(values(dtype), values(dtype))
    return a.ravel().copy(), b.ravel().copy()


def operations(dtype: str) -> dict[str, Value]:
    """What the dtype has, by name: functions of the operands."""
    d = DType.parse(dtype)
    out: dict[str, Value] = {}
    for op in BINARY_OPS:
        out[op] = lambda a, b, op=op: Binary(op, a, b)
    for op in COMPARE_OPS:
        out[op] = lambda a, b, op=op: Compare(op, a, b)
    for op in UNARY_OPS:
        out[op] = lambda a, b, op=op: Unary(op, a)
    return {op: f for op, f in out.items() if refused(op, d) is None}


def conversions() -> dict[str, Value]:
    """A conversion to each dtype, by its name."""
    return {to: lambda a, to=to: Cast(DType.parse(to), a) for to in DTYPES}


def program(parts: dict[str, Value], inputs: Sequence[Array], kind: str) -> PrimFunc:
    """outputs[name][i] = parts[name](inputs[0][i], …), each in a loop of its own: plain, in lanes with what
    is left over masked, or four iterations at a time.
    """
    n = inputs[0].shape[0]
    buffers = [Buffer(f"A{k}", (poly(n),), DType.parse(a.dtype.name)) for k, a in enumerate(inputs)]
    outputs, body = [], []
    for name, value in parts.items():
        it = Var("i", n)
        e = value(*(Load(b, (poly(it),)) for b in buffers))
        out = Buffer(f"Out_{name}", (poly(n),), e.dtype)
        outputs.append(out)

        def block(bind: Any, out: Buffer = out, it: Var = it, e: Expr = e, name: str = name) -> Block:
            predicates = () if kind != "unrolled" else (bind - n,)
            return Block(
                name, (it,), (IterKind.SPATIAL,), (bind,), out, (poly(it),), e, predicates=predicates
            )

        if kind == "unrolled":
            outer, inner = Var("o", -(-n // 4)), Var("u", 4)
            unrolled = For(inner, (block(poly(outer) * 4 + poly(inner)),), LoopKind.UNROLLED)
            body.append(For(outer, (unrolled,)))
        else:
            loop = Var("i", n)
            body.append(For(loop, (block(poly(loop)),), LoopKind(kind)))
    return PrimFunc("every", (*buffers, *outputs), (), tuple(body))


def results(func: PrimFunc, inputs: Sequence[Array]) -> list[Array]:
    """Arrays for a call: the inputs, and outputs that are filled with 0xAA."""
    out = [np.empty(inputs[0].shape, p.dtype.numpy) for p in func.params[len(inputs) :]]
    for x in out:
        x.view(np.uint8)[:] = 0xAA
    return [*inputs, *out]


def _truncdiv(a: Array, b: Array) -> Array:
    bits = a.dtype.itemsize * 8
    out = []
    for x, y in zip(a.tolist(), b.tolist(), strict=True):
        out.append(0 if y == 0 else abs(x) // abs(y) * (1 if (x < 0) == (y < 0) else -1))
    return np.array([v % 2**bits for v in out], f"uint{bits}").astype(a.dtype)


NUMPY: dict[str, Callable[[Array, Array], Array]] = {
    "add": np.add, "sub": np.subtract, "mul": np.multiply, "truediv": np.true_divide,
    "floordiv": np.floor_divide, "floormod": np.remainder, "truncdiv": _truncdiv, "truncmod": np.fmod,
    "min": np.minimum, "max": np.maximum, "and": np.bitwise_and, "or": np.bitwise_or, "xor": np.bitwise_xor,
    "shl": np.left_shift, "shr": np.right_shift,
    "eq": np.equal, "ne": np.not_equal, "lt": np.less, "le": np.less_equal, "gt": np.greater,
    "ge": np.greater_equal,
    "neg": lambda a, b: np.negative(a), "abs": lambda a, b: np.abs(a), "not": lambda a, b: np.invert(a),
    "floor": lambda a, b: np.floor(a), "ceil": lambda a, b: np.ceil(a), "round": lambda a, b: np.rint(a),
    "sqrt": lambda a, b: np.sqrt(a),
}  # fmt: skip

_EXACT: dict[str, Callable[[Array, Array], Array]] = {
    "exp": lambda a, b: np.exp(a), "log": lambda a, b: np.log(a), "tanh": lambda a, b: np.tanh(a),
    "sigmoid": lambda a, b: np.where(a < 0, np.exp(a) / (1 + np.exp(a)), 1 / (1 + np.exp(-a))),
    "erf": lambda a, b: np.vectorize(math.erf, otypes=[float])(a), "rsqrt": lambda a, b: 1 / np.sqrt(a),
    "sin": lambda a, b: np.sin(a), "cos": lambda a, b: np.cos(a), "pow": np.power,
    "gelu": lambda a, b: FUNCTIONS["gelu"](a),
}  # fmt: skip


def assert_result(op: str, got: Array, a: Array, b: Array, slack: float = 0.0) -> None:
    """NumPy's result, to the bit or within the stated error and the slack in units of the last place; a NaN
    is any NaN.
    """
    with np.errstate(all="ignore"):
        if op in NUMPY:
            want = NUMPY[op](a, b)
            if op in ("min", "max") and want.dtype.kind not in "iub":
                # Of zeros of both signs, either: NumPy's choice differs between its dtypes.
                got, want = got + want.dtype.type(0), want + want.dtype.type(0)
            assert_same(op, got, want, a, b)
            return
        wide = np.longdouble if a.dtype == np.float64 and op not in DOUBLE_SLACK else np.float64
        exact = np.asarray(_EXACT[op](a.astype(wide), b.astype(wide)))
        d = DType.parse(got.dtype.name)
        near = converted(exact.astype(np.float64), d).astype(np.float64)
        error = np.abs(got.astype(wide) - exact) / unit(near, d)
    # The function is that of float, within its own error; rounding it to a narrow dtype adds half a unit.
    ulps = ULPS[op] + (DOUBLE_SLACK.get(op, 0.0) if a.dtype == np.float64 else 0.0)
    most = 0.5 + ULPS[op] * 2.0**-13 if d.is_narrow else ulps
    mine = got.astype(np.float64)
    same = ((mine == near) & (np.signbit(mine) == np.signbit(near))) | (np.isnan(mine) & np.isnan(near))
    bad = ~(same | (np.isfinite(mine) & np.isfinite(near) & (error <= most + slack)))
    assert not bad.any(), (op, d, a[bad][:5], b[bad][:5], got[bad][:5], exact[bad][:5])


def assert_same(what: str, got: Array, want: Array, *inputs: Array) -> None:
    """Equal with the sign of 0; NaN equals NaN."""
    assert got.dtype == want.dtype, (what, got.dtype, want.dtype)
    if got.dtype.kind in "iub":
        bad = got.view(f"u{got.itemsize}") != want.view(f"u{want.itemsize}")
    else:
        mine, theirs = got.astype(np.float64), want.astype(np.float64)
        nan = np.isnan(mine) & np.isnan(theirs)
        bad = ~(nan | (mine == theirs) & (np.signbit(mine) == np.signbit(theirs)))
    assert not bad.any(), (what, [x[bad][:5] for x in inputs], got[bad][:5], want[bad][:5])


def unit(x: Array, d: DType) -> Array:
    """The distance between neighbours of the dtype at x."""
    f = finfo(d)
    _, exponent = np.frexp(np.minimum(np.abs(x), f["max"]))
    return np.maximum(np.ldexp(f["eps"], exponent - 1), f["smallest"])


def defined(a: Array, to: str) -> Array:
    """Where NumPy says what a conversion gives: for floats that become integers, in range. What is below 32
    bits goes by way of int32.
    """
    d = DType.parse(to)
    if not d.is_int or not DType.parse(a.dtype.name).is_float:
        return np.ones(a.shape, bool)
    low, high = d.limits if d.bits >= 32 else (-(2**31), 2**31 - 1)
    wide = a.astype(np.float64)
    with np.errstate(invalid="ignore"):
        return (np.trunc(wide) >= low) & (wide < float(high + 1))
