"""Element types as LLVM writes them."""

from __future__ import annotations

import struct
from ctypes import c_float
from functools import lru_cache

import numpy as np

from ...ir import DType
from ...ir.rounding import rounded
from ..errors import BuildError

_FLOATS = {32: "float", 64: "double"}
SUPPORTED = (
    "float32", "float64", "float16", "bfloat16",
    "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64", "bool",
)  # fmt: skip


@lru_cache(maxsize=64)
def memory_type(dtype: DType) -> str:
    """The type of an element in memory: a bool is a byte, a float16 or bfloat16 its 16 bits. Raises
    BuildError for a dtype without code generation.
    """
    if str(dtype) not in SUPPORTED:
        raise BuildError(f"no code for {dtype} yet; supported: {', '.join(SUPPORTED)}")
    return _FLOATS[dtype.bits] if dtype.is_float and not dtype.is_narrow else f"i{dtype.bits}"


@lru_cache(maxsize=64)
def value_type(dtype: DType) -> str:
    """The type of an element as a value; a bool is one bit, a float16 or bfloat16 a float that it holds."""
    return "i1" if dtype.is_bool else "float" if dtype.is_narrow else memory_type(dtype)


def suffix(element: str, lanes: int | None = None) -> str:
    """The type in an intrinsic's name: `f32`, `v16f32`, `v8i64`."""
    name = {"float": "f32", "double": "f64"}.get(element, element)
    return name if lanes is None else f"v{lanes}{name}"


def vector_type(element: str, lanes: int | None) -> str:
    """`<lanes x element>`, or the element alone for None."""
    return element if lanes is None else f"<{lanes} x {element}>"


def literal(value: int | float | bool, dtype: DType) -> str:
    """An immediate. LLVM writes a float as the double of the same value."""
    if dtype.is_float:
        if dtype.is_narrow:
            number = rounded(value, dtype)
        else:
            number = float(value) if dtype.bits == 64 else c_float(value).value
        return "0x" + struct.pack(">d", number).hex().upper()
    if dtype.is_bool:
        return "true" if value else "false"
    low, high = dtype.limits
    bits = int(value)
    return str(bits if bits <= high >> (low == 0) else bits - (1 << dtype.bits))


def zero_in_memory(dtype: DType) -> str:
    """An immediate 0 of an element in memory."""
    return literal(0, dtype) if dtype.is_float and not dtype.is_narrow else "0"


def bits_of(immediate: str, dtype: DType) -> str:
    """The 16 bits of an immediate."""
    (number,) = struct.unpack(">d", bytes.fromhex(immediate[2:]))
    return str(int(np.asarray(number).astype(dtype.numpy).view(np.int16)))
