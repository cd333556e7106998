"""Data types: the code/bits/lanes triple of DLPack."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from typing import Any, Literal

import ml_dtypes
import numpy as np

DTypeCode = Literal["int", "uint", "float", "bfloat", "bool"]

#: DLPack's DLDataTypeCode.
DLPACK_CODES: dict[DTypeCode, int] = {"int": 0, "uint": 1, "float": 2, "bfloat": 4, "bool": 6}

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
    """One element type: a code and a width in bits (bool is stored in 8)."""

    code: DTypeCode
    bits: int
    lanes: int = 1

    @staticmethod
    def parse(text: str | DType) -> DType:
        """`float32`, `int8`, `bfloat16`, `bool`, … Raises TypeMismatch with the known names."""
        if isinstance(text, DType):
            return text
        return _parse(str(text))

    def __str__(self) -> str:
        if self.code == "bool":
            return "bool"
        return f"{self.code}{self.bits}" + (f"x{self.lanes}" if self.lanes > 1 else "")

    @property
    def bytes(self) -> int:
        """Bytes of one element."""
        return self.bits // 8

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
        """The NumPy dtype (bfloat16 through ml_dtypes)."""
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
    if text not in _SCALARS:
        raise TypeMismatch(f"unknown dtype {text!r}; known: {', '.join(_SCALARS)}")
    return DType(*_SCALARS[text])


BOOL = DType("bool", 8)
INT32 = DType("int", 32)
INT64 = DType("int", 64)
FLOAT32 = DType("float", 32)
FLOAT64 = DType("float", 64)
