"""Data types: the code/bits/lanes triple of DLPack."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cache
from typing import Any, Literal

import ml_dtypes
import numpy as np

DTypeCode = Literal["int", "uint", "float", "bfloat", "bool"]

#: DLPack's DLDataTypeCode.
DLPACK_CODES: dict[DTypeCode, int] = {"int": 0, "uint": 1, "float": 2, "bfloat": 4, "bool": 6}

#: DLPack keeps the lanes in 16 bits.
MAX_LANES = 65_535
_LANES = re.compile(r"[1-9][0-9]{0,4}", re.ASCII)
_SCALARS: dict[str, tuple[DTypeCode, int]] = {
    **{f"int{b}": ("int", b) for b in (8, 16, 32, 64)},
    **{f"uint{b}": ("uint", b) for b in (8, 16, 32, 64)},
    **{f"float{b}": ("float", b) for b in (16, 32, 64)},
    "bfloat16": ("bfloat", 16),
    "bool": ("bool", 8),
}


class TypeMismatch(TypeError):
    """Operands whose dtypes may not meet, or a literal that its dtype cannot hold."""


@dataclass(frozen=True, slots=True)
class DType:
    """One element type: a code and a width in bits (bool is stored in 8); with `lanes`, a vector of as many.

    Buffers and values are of single elements (see `scalar`): vectors come of `Schedule.vectorize`, and their
    types of code generation. A dtype with lanes names such a vector type at the edges: in text and in DLPack.
    """

    code: DTypeCode
    bits: int
    lanes: int = 1

    @staticmethod
    def parse(text: str | DType) -> DType:
        """`float32`, `int8`, `bfloat16`, `bool`, …, and with lanes `float32x4`: what `str` writes. Raises
        TypeMismatch with the known names."""
        if isinstance(text, DType):
            return text
        return _parse(str(text))

    @staticmethod
    def scalar(text: str | DType) -> DType:
        """The dtype of a buffer or a value. Raises TypeMismatch for an unknown one and for one with lanes."""
        dtype = DType.parse(text)
        if dtype.lanes > 1:
            raise TypeMismatch(
                f"{dtype} has {dtype.lanes} lanes, but buffers and values hold single elements; "
                f"use {dtype.element} and make vectors with Schedule.vectorize"
            )
        return dtype

    @staticmethod
    def from_dlpack(code: int, bits: int, lanes: int = 1) -> DType:
        """The dtype of DLPack's (code, bits, lanes). Raises TypeMismatch with the known codes and widths."""
        for name, width in _SCALARS.values():
            if (DLPACK_CODES[name], width) == (code, bits) and 1 <= lanes <= MAX_LANES:
                return DType(name, width, lanes)
        if not 1 <= lanes <= MAX_LANES:
            raise TypeMismatch(f"a DLPack dtype has 1 to {MAX_LANES} lanes, got {lanes}")
        widths = {name: ", ".join(str(b) for c, b in _SCALARS.values() if c == name) for name in DLPACK_CODES}
        known = "; ".join(f"{DLPACK_CODES[name]} ({name}) with {bits} bits" for name, bits in widths.items())
        raise TypeMismatch(f"no dtype has the DLPack code {code} with {bits} bits; known: {known}")

    @property
    def dlpack(self) -> tuple[int, int, int]:
        """DLPack's DLDataType: (code, bits, lanes)."""
        return DLPACK_CODES[self.code], self.bits, self.lanes

    def __str__(self) -> str:
        name = "bool" if self.code == "bool" else f"{self.code}{self.bits}"
        return f"{name}x{self.lanes}" if self.lanes > 1 else name

    @property
    def element(self) -> DType:
        """The dtype of one lane."""
        return self if self.lanes == 1 else DType(self.code, self.bits)

    @property
    def bytes(self) -> int:
        """Bytes of one element, all lanes together."""
        return self.bits // 8 * self.lanes

    @property
    def is_float(self) -> bool:
        return self.code in ("float", "bfloat")

    @property
    def is_narrow(self) -> bool:
        """float16 or bfloat16: 16 bits in memory, as a value a float32 rounded after every operation."""
        return self.is_float and self.bits == 16

    @property
    def value_bytes(self) -> int:
        """Bytes of one element as a value that is computed with."""
        return 4 if self.is_narrow else self.bytes

    @property
    def is_int(self) -> bool:
        """int or uint; bool is neither integer nor float."""
        return self.code in ("int", "uint")

    @property
    def is_bool(self) -> bool:
        return self.code == "bool"

    @property
    def numpy(self) -> np.dtype[Any]:
        """The NumPy dtype (bfloat16 through ml_dtypes); of several lanes, a subarray of them."""
        if self.lanes > 1:
            return np.dtype((self.element.numpy, (self.lanes,)))
        return np.dtype(ml_dtypes.bfloat16) if self.code == "bfloat" else np.dtype(str(self))

    @property
    def accumulator(self) -> DType:
        """What a sum of this dtype accumulates in: float16 and bfloat16 in float32, integers below 32 bits in
        int32."""
        if self.is_float and self.bits < 32:
            return DType("float", 32)
        if self.is_int and self.bits < 32:
            return DType("int", 32)
        return self

    @property
    def limits(self) -> tuple[int, int]:
        """(lowest, highest) value of an integer or boolean dtype."""
        if self.code == "bool":
            return 0, 1
        if self.code == "uint":
            return 0, 2**self.bits - 1
        return -(2 ** (self.bits - 1)), 2 ** (self.bits - 1) - 1

    @property
    def eps(self) -> float:
        """The distance from 1 to the next larger float of this dtype."""
        return 2.0**-7 if self.code == "bfloat" else float(np.finfo(self.numpy).eps)


@cache
def _parse(text: str) -> DType:
    name, times, lanes = text.partition("x")
    if name not in _SCALARS:
        raise TypeMismatch(f"unknown dtype {text!r}; known: {', '.join(_SCALARS)}")
    if not times:
        return DType(*_SCALARS[name])
    # As `str` writes it, and as DLPack holds it.
    if not _LANES.fullmatch(lanes) or not 2 <= int(lanes) <= MAX_LANES:
        raise TypeMismatch(f"unknown dtype {text!r}: a vector of {name} is {name}x2 to {name}x{MAX_LANES}")
    return DType(*_SCALARS[name], int(lanes))


BOOL = DType("bool", 8)
INT32 = DType("int", 32)
INT64 = DType("int", 64)
FLOAT32 = DType("float", 32)
FLOAT64 = DType("float", 64)
