"""Where a program's arrays lie: in the file that it reads, and in its memory."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Self

from ...runtime import ParamInfo
from ..errors import BuildError

_ALIGNMENT = 64
_BITS = {"bool": 8, "bfloat16": 16}


@dataclass(frozen=True, slots=True)
class Part:
    """One array of the file."""

    offset: int
    bytes: int

    @property
    def end(self) -> int:
        return self.offset + self.bytes


@dataclass(frozen=True, slots=True)
class Layout:
    """The data file of a workload: every input in parameter order, then for each output what is expected
    (float64 for floats, else as the output is stored) and the tolerances (float64); each begins at a multiple
    of 64, and zeros lie between them.

    It follows from the parameters alone, so that whoever writes the file and whoever compiles the program
    need not meet.
    """

    inputs: tuple[Part | None, ...]
    expected: tuple[Part | None, ...]
    tolerances: tuple[Part | None, ...]
    bytes: int

    @classmethod
    def of(cls, params: Sequence[ParamInfo]) -> Self:
        """Raises BuildError for sizes that are not numbers, and dtypes of no whole bytes."""
        at = 0

        def part(size: int) -> Part:
            nonlocal at
            made = Part(at, size)
            at = _up(made.end)
            return made

        inputs = [None if p.is_output else part(size_of(p)) for p in params]
        expected: list[Part | None] = []
        tolerances: list[Part | None] = []
        for p in params:
            wide = 8 if is_float(p) else item_bytes(p)
            expected.append(part(elements(p) * wide) if p.is_output else None)
            tolerances.append(part(elements(p) * 8) if p.is_output else None)
        return cls(tuple(inputs), tuple(expected), tuple(tolerances), max(at, _ALIGNMENT))


def is_float(param: ParamInfo) -> bool:
    return param.dtype.startswith(("float", "bfloat"))


def elements(param: ParamInfo) -> int:
    """How many elements a parameter has."""
    extents = [n for n in param.shape if isinstance(n, int)]
    if len(extents) != len(param.shape):
        raise BuildError(f"{param.name} has a shape that is not known before the call")
    return math.prod(extents)


def item_bytes(param: ParamInfo) -> int:
    digits = param.dtype.lstrip("abcdefghijklmnopqrstuvwxyz")
    bits = _BITS.get(param.dtype) or int(digits or 0)
    if bits not in (8, 16, 32, 64):
        raise BuildError(f"no program of its own can check an output of {param.dtype}")
    return bits // 8


def size_of(param: ParamInfo) -> int:
    """Bytes of a parameter."""
    return elements(param) * item_bytes(param)


def _up(n: int) -> int:
    return -(-n // _ALIGNMENT) * _ALIGNMENT
