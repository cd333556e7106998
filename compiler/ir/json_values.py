"""What the JSON reader checks of single values: each mistake is a VerifyError with a JSON pointer."""

from __future__ import annotations

import math
from typing import Any, TypeVar

import numpy as np

from .dtype import DType
from .errors import VerifyError
from .expr import Binary, Compare, Const, Expr, Select, Unary
from .rules import refused

Json = Any
Pair = TypeVar("Pair", Select, Compare, Binary)
_INT_LIMIT = 2**53


def fields(data: Json, at: str, required: set[str], optional: set[str]) -> dict[str, Json]:
    """An object with all of the required fields and no unknown one."""
    if not isinstance(data, dict):
        raise VerifyError(f"expected an object, got {kind_of(data)}", at)
    for key in data:
        if key not in required | optional:
            raise VerifyError(
                f"unknown field {key!r}; known: {', '.join(sorted(required | optional))}",
                f"{at}/{escaped(key)}",
            )
    for key in sorted(required - set(data)):
        raise VerifyError(f"the field {key!r} is missing", at)
    return data


def escaped(key: object) -> str:
    """A field's name in a JSON pointer (RFC 6901)."""
    return str(key).replace("~", "~0").replace("/", "~1")


def kind_of(x: Json) -> str:
    """What a JSON value is, in words."""
    names = {
        dict: "an object",
        list: "an array",
        str: "a string",
        bool: "a boolean",
        int: "an integer",
        float: "a number",
    }
    return "null" if x is None else names.get(type(x), type(x).__name__)


def array(data: Json, at: str) -> list[Json]:
    """An array."""
    if not isinstance(data, list):
        raise VerifyError(f"expected an array, got {kind_of(data)}", at)
    return data


def integer(data: Json, at: str) -> int:
    """An integer that every JSON reader keeps exact."""
    if type(data) is not int or abs(data) >= _INT_LIMIT:
        raise VerifyError(
            f"expected an integer below 2**53, got {data!r}"
            if type(data) is int
            else f"expected an integer, got {kind_of(data)}",
            at,
        )
    return data


def typed(op: str, e: Unary | Binary | Compare, at: str) -> Expr:
    """`e`, when `op` exists for the dtype of its operands."""
    reason = refused(op, e.a.dtype)
    if reason is not None:
        raise VerifyError(reason, f"{at}/1")
    return e


def same_dtype(e: Pair, args: list[Expr], at: str) -> Pair:
    """`e`, when its operands have one dtype."""
    if args[0].dtype != args[1].dtype:
        raise VerifyError(f"the operands differ in dtype: {args[0].dtype} and {args[1].dtype}", at)
    return e


def immediate(text: Json, dtype: DType, at: str) -> Const:
    """A constant from its text, which must be a value of the dtype."""
    if not isinstance(text, str):
        raise VerifyError(f"an immediate is written as a string, got {kind_of(text)}", at)
    try:
        if dtype.is_bool:
            return Const({"true": True, "false": False}[text], dtype)
        value = float.fromhex(text) if dtype.is_float else int(text)
    except (KeyError, ValueError, OverflowError):
        raise VerifyError(f"{text!r} is not a {dtype} immediate", at) from None
    spelled = value.hex() if isinstance(value, float) else str(value)
    if text != spelled:
        how = (
            "as float.hex() does, such as '0x1.8p+0', or inf, -inf, nan"
            if dtype.is_float
            else "in decimal digits"
        )
        raise VerifyError(f"a {dtype} immediate is written {how}; got {text!r}", at)
    if isinstance(value, float):
        with np.errstate(all="ignore"):
            rounded = float(dtype.numpy.type(value))
        if rounded != value and not math.isnan(value):
            raise VerifyError(f"{text!r} is not a value of {dtype}; the nearest is {rounded.hex()!r}", at)
        return Const(value, dtype)
    low, high = dtype.limits
    if not low <= value <= high:
        raise VerifyError(f"{value} does not fit into {dtype}", at)
    return Const(value, dtype)
