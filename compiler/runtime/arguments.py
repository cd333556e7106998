"""The check of a call's arrays against a kernel's parameters."""

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from .arrays import address_reader, numpy_dtype
from .dims import Dim, evaluate, text
from .errors import ArgumentTypeError, ArgumentValueError
from .params import ParamInfo as ParamInfo
from .shapes import Misfit, ShapeCheck

Array = np.ndarray[Any, Any]


class ArgumentCheck:
    """``check(arrays)`` gives the arrays' addresses and behind them the values of the sizes, in the order of
    `sizes`, or raises ArgumentError naming the argument.

    A size is read off the first dimension that is the size by itself; every other dimension must fit.

    An array must be a plain numpy.ndarray (or a memory map) of the parameter's dtype and shape, in C order,
    aligned to its dtype; an output must be writeable and share no memory with another argument. About 0.4
    µs an array.
    """

    def __init__(
        self, name: str, params: Sequence[ParamInfo], sizes: Sequence[str] = (), *, what: str = "argument"
    ) -> None:
        """what: the word for one of them in errors."""
        self._name = name
        self._what = what
        self._params = tuple(params)
        self._read = address_reader()
        dtypes = [numpy_dtype(p.dtype) for p in params]
        self._dtypes = dtypes
        self._shapes = ShapeCheck(self._params, sizes) if sizes else None
        self._expected = tuple(
            (d, p.shape if all(isinstance(n, int) for n in p.shape) else None, p.is_output, d.alignment - 1)
            for p, d in zip(params, dtypes, strict=True)
        )
        pairs = [
            (i, j)
            for i, p in enumerate(params)
            for j, q in enumerate(params)
            if p.is_output and i != j and not (q.is_output and j < i)
        ]
        #: The pairs of arguments that must not overlap; where no size is open, with their lengths in bytes.
        self._pairs = tuple(pairs) if sizes else ()
        self._apart = () if sizes else _lengths(pairs, self._params, dtypes)

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
        for i, i_bytes, j, j_bytes in self._apart:
            if addresses[i] < addresses[j] + j_bytes and addresses[j] < addresses[i] + i_bytes:
                raise self._overlap_error(i, j)
        if self._shapes is not None:
            self._add_sizes(arrays, addresses, self._shapes)
        return addresses

    def _add_sizes(self, arrays: Sequence[Array], addresses: list[int], shapes: ShapeCheck) -> None:
        found = shapes(arrays)
        if type(found) is Misfit:
            if found.dimension is None:
                raise self._kind_error(found.argument, arrays[found.argument])
            raise ArgumentValueError(f"{self._at(found.argument)}: {shapes.reason(found, arrays)}")
        assert not isinstance(found, Misfit)
        for i, j in self._pairs:
            i_bytes, j_bytes = arrays[i].nbytes, arrays[j].nbytes
            before, after = addresses[i] < addresses[j] + j_bytes, addresses[j] < addresses[i] + i_bytes
            if before and after and i_bytes and j_bytes:
                raise self._overlap_error(i, j)
        addresses += found

    def _at(self, index: int) -> str:
        return f"{self._name}: {self._what} {index + 1}, {self._params[index].name!r}"

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


def _lengths(
    pairs: Sequence[tuple[int, int]], params: Sequence[ParamInfo], dtypes: Sequence[np.dtype[Any]]
) -> tuple[tuple[int, int, int, int], ...]:
    """(argument, its bytes, other argument, its bytes) of the pairs without empty arrays."""
    lengths = [math.prod(evaluate(n, {}) for n in p.shape) for p in params]
    sizes = [n * d.itemsize for n, d in zip(lengths, dtypes, strict=True)]
    return tuple((i, sizes[i], j, sizes[j]) for i, j in pairs if sizes[i] and sizes[j])


def _shape_text(shape: tuple[Dim, ...]) -> str:
    dims = ", ".join(map(text, shape))
    return f"({dims},)" if len(shape) == 1 else f"({dims})"
