"""Bytes to devices and back, for the tests of every device."""

from typing import Any

import numpy as np

from tilewright.compiler.runtime.device_api import (
    Device,
    DeviceAPI,
    Memory,
)

KINDS = ("cpu", "pyref")


def ignore(*done: object) -> None:
    """Work gives nothing."""


def host(array: np.ndarray[Any, Any]) -> Memory:
    return Memory(Device("cpu"), array.ctypes.data, array.nbytes, array)


def upload(api: DeviceAPI, values: list[int]) -> Memory:
    array = np.array(values, np.uint8)
    memory = api.allocate(0, array.nbytes)
    api.copy(host(array), memory, array.nbytes)
    api.synchronize(0)
    return memory


def download(api: DeviceAPI, memory: Memory) -> list[int]:
    array = np.zeros(memory.nbytes, np.uint8)
    api.copy(memory, host(array), memory.nbytes)
    api.synchronize(0)
    values: list[int] = array.tolist()
    return values
