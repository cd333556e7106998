"""Devices by name: the CPU, and those that plug-ins bring along."""

from __future__ import annotations

from ...target.errors import TargetError
from ...target.registry import backend, known_kinds, resolve
from .api import Device, DeviceAPI, DeviceError, Memory, Stream
from .cpu import API as CPU


def device(kind: str = "cpu", index: int = 0) -> Device:
    """A device that exists. Raises DeviceError for one that does not."""
    api = device_api(kind)
    if type(index) is not int:
        raise DeviceError(f"device: the index is an integer, not {index!r}")
    if not api.attribute(index, "exist"):
        raise DeviceError(f"there is no {Device(kind, index)} on this machine")
    return Device(kind, index)


def device_api(kind: str) -> DeviceAPI:
    """The devices of a kind. Raises DeviceError."""
    if kind == CPU.name:
        return CPU
    if kind not in known_kinds():
        raise DeviceError(f"unknown device {kind!r}; known: cpu, and those of {', '.join(known_kinds())}")
    try:
        found = backend(kind).device
    except TargetError as error:
        raise DeviceError(str(error)) from error
    if found is None:
        raise DeviceError(f"the kind {kind!r} brings no device of its own: its code runs on the cpu")
    api: DeviceAPI = resolve(found)
    return api


def copy(
    source: Memory,
    target: Memory,
    nbytes: int,
    source_offset: int = 0,
    target_offset: int = 0,
    stream: Stream | None = None,
) -> None:
    """Copy bytes from one device to another or within one; between two that are not the CPU through its
    memory. As DeviceAPI.copy otherwise.
    """
    kinds = source.device.kind, target.device.kind
    if kinds[0] == kinds[1] or CPU.name in kinds:
        api = device_api(kinds[1] if kinds[0] == CPU.name else kinds[0])
        return api.copy(source, target, nbytes, source_offset, target_offset, stream)
    between = CPU.allocate(0, nbytes)
    device_api(kinds[0]).copy(source, between, nbytes, source_offset)
    device_api(kinds[0]).synchronize(source.device.index)
    device_api(kinds[1]).copy(between, target, nbytes, 0, target_offset, stream)
