"""The check of a call's arrays against a kernel's parameters."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from .arrays import address_reader, numpy_dtype
from .dims import Dim, evaluate, name_of, names_in, text
from .errors import ArgumentTypeError, ArgumentValueError

Array = np.ndarray[Any, Any]


@dataclass(frozen=True, slots=True)
class ParamInfo:
    """A parameter: its dtype by name ("bool" is stored as bytes), its shape, which may be over sizes, and
    whether the kernel writes it.
    """

    name: str
    dtype: str
    shape: tuple[Dim, ...]
    is_output: bool

    def __str__(self) -> str:
        arrow = " out" if self.is_output else ""
        return f"{self.name}: {self.dtype}[{', '.join(map(text, self.shape))}]{arrow}"


class ArgumentCheck:
    """``check(arrays)`` gives the arrays' addresses and behind them the values of the sizes, in the order of
    `sizes`, or raises ArgumentError naming the argument.

    A size is read off the first dimension that is the size by itself; every other dimension must fit.

    An array must be a plain numpy.ndarray (or a memory map) of the parameter's dtype and shape, in C order,
    aligned to its dtype; an output must be writeable and share no memory with another argument. About 0.4
    µs an array.
    """

    def __init__(self, name: str, params: Sequence[ParamInfo], sizes: Sequence[str] = ()) -> None:
        self._name = name
        self._params = tuple(params)
        self._read = address_reader()
        dtypes = [numpy_dtype(p.dtype) for p in params]
        self._dtypes = dtypes
        self._open = tuple(any(not isinstance(d, int) for d in p.shape) for p in params)
        self._sources = tuple((s, *_source(s, params)) for s in sizes)
        self._expected = tuple(
            (d, None if is_open else p.shape, p.is_output, d.alignment - 1)
            for p, d, is_open in zip(params, dtypes, self._open, strict=True)
        )
        self._pairs = tuple(
            (i, j)
            for i, p in enumerate(params)
            for j, q in enumerate(params)
            if p.is_output and i != j and not (q.is_output and j < i)
        )
        lengths = (
            None if any(self._open) else [_bytes(d, p.shape) for p, d in zip(params, dtypes, strict=True)]
        )
        self._apart = () if lengths is None else self._ranges(lengths)

    def _ranges(self, lengths: Sequence[int]) -> tuple[tuple[int, int, int, int], ...]:
        """The pairs of arguments that must not overlap, with their lengths in bytes."""
        return tuple((i, lengths[i], j, lengths[j]) for i, j in self._pairs if lengths[i] and lengths[j])

    def __call__(self, arrays: Sequence[Array]) -> list[int]:
        if len(arrays) != len(self._expected):
            raise self._count_error(arrays)
        read = self._read
        addresses: list[int] = []
        for array, (dtype, shape, is_output, low_bits) in zip(arrays, self._expected, strict=True):
            if type(array) is not np.ndarray and type(array) is not np.memmap:
                raise self._type_error(len(addresses), array)
            if array.dtype != dtype or (array.shape != shape and shape is not None):
                raise self._kind_error(len(addresses), array)
            flags = array.flags
            address = read(array)
            if not flags.c_contiguous or (is_output and not flags.writeable) or address & low_bits:
                raise self._memory_error(len(addresses), array)
            addresses.append(address)
        apart = self._apart
        if any(self._open):
            addresses += self._sizes_of(arrays)
            apart = self._ranges([array.nbytes for array in arrays])
        for i, i_bytes, j, j_bytes in apart:
            if addresses[i] < addresses[j] + j_bytes and addresses[j] < addresses[i] + i_bytes:
                raise self._overlap_error(i, j)
        return addresses

    def _sizes_of(self, arrays: Sequence[Array]) -> list[int]:
        for n, p in enumerate(self._params):
            if arrays[n].ndim != len(p.shape):
                raise self._kind_error(n, arrays[n])
        sizes = {s: arrays[n].shape[d] for s, n, d in self._sources}
        for n, is_open in enumerate(self._open):
            if is_open:
                for d, dim in enumerate(self._params[n].shape):
                    if arrays[n].shape[d] != evaluate(dim, sizes):
                        raise self._size_error(n, d, dim, arrays[n].shape[d], sizes)
        return list(sizes.values())

    def _size_error(
        self, index: int, d: int, dim: Dim, came: int, sizes: dict[str, int]
    ) -> ArgumentValueError:
        head = f"{self._at(index)}: dimension {d} is {came}"
        if isinstance(dim, int):
            return ArgumentValueError(f"{head}, expected {dim}")
        from_ = {s: f"argument {n + 1}, {self._params[n].name!r} dimension {k}" for s, n, k in self._sources}
        name = name_of(dim)
        if name is not None:
            return ArgumentValueError(f"{head}, but {name!r} is {sizes[name]} from {from_[name]}")
        used = [s for s in sizes if s in names_in(dim)]
        told = " and ".join(f"{s!r} is {sizes[s]} from {from_[s]}" for s in used)
        return ArgumentValueError(f"{head}, but {text(dim)} is {evaluate(dim, sizes)}, since {told}")

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
        dtype, shape = self._dtypes[index], self._params[index].shape
        if array.dtype != dtype:
            came = array.dtype.name if array.dtype.isnative else f"{array.dtype.name} in foreign byte order"
            return ArgumentTypeError(f"{self._at(index)}: expected dtype {dtype.name}, got {came}")
        if array.ndim != len(shape):
            return ArgumentValueError(
                f"{self._at(index)}: expected {len(shape)} dimensions, shape {_shape_text(shape)}, "
                f"got {array.ndim}, shape {array.shape}"
            )
        return ArgumentValueError(
            f"{self._at(index)}: expected shape {_shape_text(shape)}, got {array.shape}"
        )

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


def _source(size: str, params: Sequence[ParamInfo]) -> tuple[int, int]:
    """The argument and the dimension that tell the size."""
    for n, p in enumerate(params):
        for d, dim in enumerate(p.shape):
            if name_of(dim) == size:
                return n, d
    raise ValueError(f"the size {size!r} is no dimension of a parameter by itself")


def _bytes(dtype: np.dtype[Any], shape: Sequence[Any]) -> int:
    return dtype.itemsize * int(np.prod(shape, dtype=np.int64))


def _shape_text(shape: tuple[Dim, ...]) -> str:
    dims = ", ".join(map(text, shape))
    return f"({dims},)" if len(shape) == 1 else f"({dims})"
