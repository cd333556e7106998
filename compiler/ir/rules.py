"""Which operations exist for which dtypes. te and the JSON reader refuse the rest, so that nothing behind
them meets it."""

from __future__ import annotations

from .dtype import DType
from .expr import COMPARE_OPS, FLOAT_UNARY_OPS, Const

_ARITHMETIC = frozenset({"add", "sub", "mul", "min", "max", "neg", "abs"})
_FLOATS_ONLY = frozenset({"truediv", "pow"}) | FLOAT_UNARY_OPS
_INTEGERS_ONLY = frozenset({"floordiv", "floormod", "truncdiv", "truncmod", "shl", "shr"})
_BITS = frozenset({"and", "or", "xor", "not"})

#: What a reduction may combine its steps with: the associative and commutative ones.
REDUCERS = frozenset({"add", "mul", "min", "max", "and", "or", "xor"})


def identity(op: str, dtype: DType) -> Const:
    """The value that a reducer changes nothing with: what a reduction of `dtype` starts from."""
    value: int | float | bool
    match op:
        case "add" | "xor" | "or":
            value = 0
        case "mul":
            value = 1
        case "min":
            value = float("inf") if dtype.is_float else dtype.limits[1]
        case "max":
            value = float("-inf") if dtype.is_float else dtype.limits[0]
        case "and":
            value = -1 if dtype.code == "int" else dtype.limits[1]
        case _:
            raise ValueError(f"{op!r} is no reducer")
    if dtype.is_bool:
        return Const(bool(value), dtype)
    return Const(float(value) if dtype.is_float else value, dtype)


def refused(op: str, dtype: DType) -> str | None:
    """Why `op` does not take operands of `dtype`; None when it does."""
    if op in _FLOATS_ONLY and not dtype.is_float:
        return f"{op!r} takes floats, got {dtype}"
    if op in _INTEGERS_ONLY and not dtype.is_int:
        return f"{op!r} takes integers, got {dtype}"
    if op in _BITS and dtype.is_float:
        return f"{op!r} takes integers or booleans, got {dtype}"
    if op in _ARITHMETIC and dtype.is_bool:
        return f"{op!r} takes numbers, got bool"
    if op in COMPARE_OPS and op not in ("eq", "ne") and dtype.is_bool:
        return f"{op!r} orders numbers, got bool"
    return None
