"""Devices: their memory, copies and streams, behind one Protocol."""

from .api import Device, DeviceAPI, DeviceError, Memory, Stream, check_copy, check_free, check_request
from .pool import WorkspacePool
from .registry import copy, device, device_api

__all__ = [
    "Device",
    "DeviceAPI",
    "DeviceError",
    "Memory",
    "Stream",
    "WorkspacePool",
    "check_copy",
    "check_free",
    "check_request",
    "copy",
    "device",
    "device_api",
]
