"""Element types and immediates as C writes them."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ...ir import DType
from ..errors import BuildError

#: The level of an operator: how tightly it binds. An operand that binds less than wanted gets brackets.
TERNARY, OR, AND, BITS, EQUAL, LESS, SHIFT, SUM, PRODUCT, PREFIX, PRIMARY = range(11)


class Text(NamedTuple):
    """An expression and the level of its outermost operator.

    Its value is one of its dtype, although its C type may be int for small integers and conditions. `bare`
    is the expression without the conversion that ends it: an unsigned one that becomes signed, or a float
    that becomes a 16-bit one.
    """

    text: str
    level: int = PRIMARY
    bare: tuple[str, int] | None = None


def at_least(x: Text, level: int) -> str:
    """The expression as an operand of an operator that needs `level`."""
    return x.text if x.level >= level else f"({x.text})"


def cast(kind: str, x: Text) -> Text:
    """(kind)x"""
    return Text(f"({kind}){at_least(x, PREFIX)}", PREFIX)


def is_narrow(dtype: DType) -> bool:
    """float16 and bfloat16: 16 bits in memory, as a value a float that is rounded after each operation."""
    return dtype.is_float and dtype.bits == 16


def memory_type(dtype: DType) -> str:
    """The type of an element in memory. Raises BuildError for a vector dtype."""
    if dtype.lanes != 1:
        raise BuildError(f"no code for {dtype}: an element is a scalar")
    if is_narrow(dtype) or dtype.is_bool:
        return f"uint{dtype.bits}_t"
    return value_type(dtype)


def value_type(dtype: DType) -> str:
    """The type of an element as a value."""
    if dtype.is_float:
        return "double" if dtype.bits == 64 else "float"
    return "bool" if dtype.is_bool else f"{dtype.code}{dtype.bits}_t"


def unsigned_type(dtype: DType) -> str:
    """The type in which arithmetic of an integer dtype wraps around: at least 32 bits, or int would do it."""
    return f"uint{max(dtype.bits, 32)}_t"


def short(dtype: DType) -> str:
    """The dtype in a helper's name: i32, u8, f16, bf16."""
    if dtype.is_bool:
        return "bool"
    return f"{'bf' if dtype.code == 'bfloat' else dtype.code[0]}{dtype.bits}"


def literal(value: int | float | bool, dtype: DType) -> Text:
    """An immediate of the dtype."""
    if dtype.is_bool:
        return Text("true" if value else "false")
    return _float(float(value), dtype) if dtype.is_float else _integer(int(value), dtype)


def _float(value: float, dtype: DType) -> Text:
    if value != value:
        return Text("NAN")
    if value in (float("inf"), float("-inf")):
        return Text("INFINITY") if value > 0 else Text("-INFINITY", PREFIX)
    # The shortest decimal that reads back as the value; of a 16-bit float as the float32 that it is.
    with np.errstate(over="ignore"):
        number = np.float64(value) if dtype.bits == 64 else np.float32(dtype.numpy.type(value))
    if not np.isfinite(number):
        return _float(float(number), dtype)
    text = str(number) + ("" if dtype.bits == 64 else "f")
    return Text(text, PREFIX if text[0] == "-" else PRIMARY)


def _integer(value: int, dtype: DType) -> Text:
    low, _ = dtype.limits
    value = (value - low) % (1 << dtype.bits) + low
    if dtype.code == "uint":
        return Text(f"UINT64_C({value})" if dtype.bits == 64 else f"{value}u")
    if value == low and dtype.bits >= 32:
        return Text(f"INT{dtype.bits}_MIN")  # C has no negative literals, and 2^31 is no int
    text = f"INT64_C({value})" if abs(value) > 2**31 - 1 else str(value)
    return Text(text, PREFIX if text[0] == "-" else PRIMARY)
