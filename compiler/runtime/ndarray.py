"""Arrays on devices."""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from math import prod
from typing import Any, Self

import numpy as np

from . import dlpack
from .arrays import numpy_dtype
from .device_api import Device, DeviceAPI, Memory, copy, device_api

Array = np.ndarray[Any, Any]

CPU = Device("cpu")


class NDArray:
    """An array in C order on a device, aligned to 64 bytes where it allocated its memory itself.

    dtype: by name, "bfloat16" too. It is freed with its last user, views that NumPy or others have of it
    included.
    """

    __slots__ = ("device", "dtype", "memory", "shape")

    def __init__(self, shape: tuple[int, ...], dtype: str, memory: Memory) -> None:
        """For internal use: see empty, from_numpy and from_dlpack."""
        self.shape = shape
        self.dtype = dtype
        self.device = memory.device
        self.memory = memory

    @classmethod
    def empty(cls, shape: Sequence[int], dtype: str, device: Device = CPU) -> Self:
        """An array whose elements are not set. Raises DeviceError, TypeError for an unknown dtype, and
        ValueError for a negative size.
        """
        sizes = tuple(int(n) for n in shape)
        if any(n < 0 for n in sizes):
            raise ValueError(f"the sizes of an array are not negative: {sizes}")
        nbytes = prod(sizes) * _numpy(dtype).itemsize
        return cls(sizes, dtype, _Owned(device_api(device.kind), device.index, nbytes).memory())

    @classmethod
    def from_numpy(cls, array: Array, device: Device = CPU) -> Self:
        """A copy of a NumPy array."""
        new = cls.empty(array.shape, array.dtype.name, device)
        new.copy_from(array)
        return new

    @classmethod
    def from_dlpack(cls, exporter: dlpack.Exporter) -> Self:
        """Another library's array on the CPU, sharing its memory. Raises BufferError for one on another
        device, and for one with gaps, which needs a copy first.
        """
        array = dlpack.from_dlpack(exporter)
        if not array.flags.c_contiguous:
            raise BufferError(f"the array has gaps: strides {array.strides} for shape {array.shape}; copy it")
        return cls(array.shape, array.dtype.name, Memory(CPU, array.ctypes.data, array.nbytes, array))

    @property
    def nbytes(self) -> int:
        """Bytes of all elements together."""
        return prod(self.shape) * _numpy(self.dtype).itemsize

    @property
    def ndim(self) -> int:
        """The number of dimensions."""
        return len(self.shape)

    def numpy(self) -> Array:
        """The elements as a NumPy array: a view where this process can reach them, else a copy."""
        api = device_api(self.device.kind)
        if api.host_accessible:
            return self.view()
        return self.to(CPU).view()

    def view(self) -> Array:
        """An ndarray at this array's address, with its dtype and shape, which keeps it alive. Its elements
        may be read only where the device's memory is this process's: kernels take it from anywhere.
        """
        if isinstance(self.memory.keep, np.ndarray):  # of another library
            return self.memory.keep
        block = (ctypes.c_char * self.nbytes).from_address(self.memory.address)
        block.owner = self.memory  # type: ignore[attr-defined]
        return np.ndarray(self.shape, _numpy(self.dtype), memoryview(block))

    def to(self, device: Device) -> NDArray:
        """A copy on a device."""
        new = NDArray.empty(self.shape, self.dtype, device)
        copy(self.memory, new.memory, self.nbytes)
        for side in (self.device, device):
            device_api(side.kind).synchronize(side.index)
        return new

    def copy_from(self, array: Array | NDArray) -> None:
        """Take over the elements of an array of the same shape and dtype. Raises ValueError for another."""
        dtype = array.dtype if isinstance(array, NDArray) else array.dtype.name
        if (array.shape, dtype) != (self.shape, self.dtype):
            raise ValueError(
                f"cannot copy {dtype}{list(array.shape)} into {self.dtype}{list(self.shape)}: "
                "dtype and shape must be the same"
            )
        if isinstance(array, NDArray):
            source = array.memory
        else:
            # In this machine's byte order, of which no name of a dtype says anything.
            plain = np.ascontiguousarray(array, array.dtype.newbyteorder("="))
            source = Memory(CPU, plain.ctypes.data, plain.nbytes, plain)
        copy(source, self.memory, self.nbytes)
        for side in (source.device, self.device):
            device_api(side.kind).synchronize(side.index)

    def __dlpack__(self, **options: Any) -> object:
        if not device_api(self.device.kind).host_accessible:
            raise BufferError(f"an array on {self.device} has no DLPack form; copy it to the CPU")
        return dlpack.to_capsule(self.view(), **options)

    def __dlpack_device__(self) -> tuple[int, int]:
        host = device_api(self.device.kind).host_accessible
        return (dlpack.CPU, 0) if host else (dlpack.EXTENSION, self.device.index)

    def __repr__(self) -> str:
        return f"NDArray({self.dtype}{list(self.shape)} on {self.device})"


class _Owned:
    """Space that is freed when its last user is gone."""

    __slots__ = ("_free", "_space")

    def __init__(self, api: DeviceAPI, index: int, nbytes: int) -> None:
        self._space = api.allocate(index, nbytes)
        self._free = api.free

    def memory(self) -> Memory:
        """The space, which keeps this alive."""
        return Memory(self._space.device, self._space.address, self._space.nbytes, self)

    def __del__(self) -> None:
        if not hasattr(self, "_free"):  # nothing was allocated
            return
        self._free(self._space)


def _numpy(dtype: str) -> np.dtype[Any]:
    try:
        found = numpy_dtype(dtype) if isinstance(dtype, str) else None
    except (AttributeError, TypeError):
        found = None
    # Numbers alone: an object's bytes on a device are no object.
    if found is None or found.name != dtype or (found.isbuiltin != 2 and found.kind not in "biufc"):
        raise TypeError(f"unknown dtype {dtype!r}")
    return found
