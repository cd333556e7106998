"""Arguments that are no NumPy arrays, as NumPy arrays."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from .arguments import ParamInfo
from .device_api import Device, device_api
from .dlpack import from_dlpack, is_exporter
from .errors import ArgumentTypeError
from .ndarray import NDArray

Array = np.ndarray[Any, Any]


def adopt(name: str, params: Sequence[ParamInfo], arrays: Sequence[Any], device: Device) -> tuple[Any, ...]:
    """The arguments of a call, with NDArrays and what speaks DLPack as arrays that share their memory.

    A subclass of numpy.ndarray stays what it is: a mask, or another meaning of the elements, would be lost.
    Raises ArgumentTypeError, naming the argument, for an array that is not where the kernel can reach it.
    """
    plain = []
    for index, array in enumerate(arrays):
        at = params[index].name if index < len(params) else ""
        where = f"{name}: argument {index + 1}, {at!r}"
        if isinstance(array, NDArray):
            plain.append(_on_device(array, device, where, at))
        elif device.kind != "cpu" and (isinstance(array, np.ndarray) or is_exporter(array)):
            raise ArgumentTypeError(
                f"{where}: is on cpu(0), the kernel runs on {device}; "
                f"pass NDArray.from_numpy({at}, tilewright.device({device.kind!r}, {device.index}))"
            )
        elif isinstance(array, np.ndarray) or not is_exporter(array):
            plain.append(array)
        else:
            try:
                plain.append(from_dlpack(array))
            except BufferError as error:
                raise ArgumentTypeError(f"{where}: {error}") from error
    return tuple(plain)


def _on_device(array: NDArray, device: Device, where: str, name: str) -> Array:
    if array.device == device or (device.kind == "cpu" and device_api(array.device.kind).host_accessible):
        return array.view()
    raise ArgumentTypeError(
        f"{where}: is on {array.device}, the kernel runs on {device}; "
        f"pass {name}.to(tilewright.device({device.kind!r}, {device.index}))"
    )
