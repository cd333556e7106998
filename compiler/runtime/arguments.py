"""The check of a call's arrays against a kernel's parameters."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from .arrays import address_reader, numpy_dtype
from .errors import ArgumentTypeError, ArgumentValueError

Array = np.ndarray[Any, Any]


@dataclass(frozen=True, slots=True)
class ParamInfo:
    """A parameter: its dtype by name ("bool" is stored as bytes), its shape, and whether the kernel writes
    it.
    """

    name: str
    dtype: str
    shape: tuple[int, ...]
    is_output: bool

    def __str__(self) -> str:
        arrow = " out" if self.is_output else ""
        return f"{self.name}: {self.dtype}{list(self.shape)}{arrow}"


class ArgumentCheck:
    """``check(arrays)`` gives the arrays' addresses, or raises ArgumentError naming the argument.

    An array must be a plain numpy.ndarray (or a memory map) of the parameter's dtype and shape, in C order,
    aligned to its dtype; an output must be writeable and share no memory with another argument. About 0.4
    µs an array.
    """

    def __init__(self, name: str, params: Sequence[ParamInfo]) -> None:
        self._name = name
        self._params = tuple(params)
        self._read = address_reader()
        dtypes = [numpy_dtype(p.dtype) for p in params]
        self._expected = tuple(
            (d, tuple(p.shape), p.is_output, d.alignment - 1) for p, d in zip(params, dtypes, strict=True)
        )
        sizes = [
            d.itemsize * int(np.prod(p.shape, dtype=np.int64)) for p, d in zip(params, dtypes, strict=True)
        ]
        self._apart = tuple(
            (i, sizes[i], j, sizes[j])
            for i, p in enumerate(params)
            for j, q in enumerate(params)
            if p.is_output and i != j and not (q.is_output and j < i) and sizes[i] and sizes[j]
        )

    def __call__(self, arrays: Sequence[Array]) -> list[int]:
        if len(arrays) != len(self._expected):
            raise self._count_error(arrays)
        read = self._read
        addresses: list[int] = []
        for array, (dtype, shape, is_output, low_bits) in zip(arrays, self._expected, strict=True):
            if type(array) is not np.ndarray and type(array) is not np.memmap:
                raise self._type_error(len(addresses), array)
            if array.dtype != dtype or array.shape != shape:
                raise self._kind_error(len(addresses), array)
            flags = array.flags
            address = read(array)
            if not flags.c_contiguous or (is_output and not flags.writeable) or address & low_bits:
                raise self._memory_error(len(addresses), array)
            addresses.append(address)
        for i, i_bytes, j, j_bytes in self._apart:
            if addresses[i] < addresses[j] + j_bytes and addresses[j] < addresses[i] + i_bytes:
                raise self._overlap_error(i, j)
        return addresses

    def _at(self, index: int) -> str:
        return f"{self._name}: argument {index + 1}, {self._params[index].name!r}"

    def _count_error(self, arrays: Sequence[Array]) -> ArgumentTypeError:
        names = ", ".join(p.name for p in self._params)
        return ArgumentTypeError(
            f"{self._name}: takes {len(self._params)} arrays ({names}), got {len(arrays)}"
        )

    def _type_error(self, index: int, array: object) -> ArgumentTypeError:
        kind = type(array)
        return ArgumentTypeError(
            f"{self._at(index)}: expected a numpy.ndarray, got {kind.__module__}.{kind.__qualname__}"
        )

    def _kind_error(self, index: int, array: Array) -> ArgumentTypeError | ArgumentValueError:
        dtype, shape, _, _ = self._expected[index]
        if array.dtype != dtype:
            came = array.dtype.name if array.dtype.isnative else f"{array.dtype.name} in foreign byte order"
            return ArgumentTypeError(f"{self._at(index)}: expected dtype {dtype.name}, got {came}")
        if array.ndim != len(shape):
            return ArgumentValueError(
                f"{self._at(index)}: expected {len(shape)} dimensions, shape {shape}, "
                f"got {array.ndim}, shape {array.shape}"
            )
        return ArgumentValueError(f"{self._at(index)}: expected shape {shape}, got {array.shape}")

    def _memory_error(self, index: int, array: Array) -> ArgumentValueError:
        dtype, _, is_output, _ = self._expected[index]
        name = self._params[index].name
        if not array.flags.c_contiguous:
            remedy = (
                "write to a contiguous array and copy it back"
                if is_output
                else f"pass numpy.ascontiguousarray({name})"
            )
            return ArgumentValueError(
                f"{self._at(index)}: expected an array in C order without gaps, "
                f"got strides {array.strides} for shape {array.shape}; {remedy}"
            )
        if is_output and not array.flags.writeable:
            return ArgumentValueError(f"{self._at(index)}: is an output and the array is read-only")
        return ArgumentValueError(
            f"{self._at(index)}: expected an address that is a multiple of {dtype.alignment}, the alignment "
            f"of {dtype.name}, got one that is not; pass {name}.copy()"
        )

    def _overlap_error(self, output: int, other: int) -> ArgumentValueError:
        return ArgumentValueError(
            f"{self._at(output)}: is an output and shares memory with argument {other + 1}, "
            f"{self._params[other].name!r}"
        )
