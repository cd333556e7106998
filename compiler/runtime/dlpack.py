"""Arrays of other libraries through DLPack, without a copy.

NumPy knows neither bfloat16 nor, without version 1 of the protocol, whether an array may be written. Both are
made up for here: bfloat16 passes NumPy as 16-bit integers, and an array of the older protocol may be written,
as that protocol has it. Layout: dlpack.h, version 1.0.
"""

from __future__ import annotations

import ctypes
from typing import Any, Protocol

import ml_dtypes
import numpy as np

Array = np.ndarray[Any, Any]

_BFLOAT16 = np.dtype(ml_dtypes.bfloat16)
_UINT, _BFLOAT = 1, 4
CPU, EXTENSION = 1, 12
_HOST = {CPU, 3, 11}
"""Device types whose memory the CPU reads: its own, and memory pinned for CUDA and ROCm."""
_DEVICE_NAMES = {2: "CUDA", 4: "OpenCL", 7: "Vulkan", 8: "Metal", 10: "ROCm", 14: "oneAPI", 15: "WebGPU"}


class Exporter(Protocol):
    """An array that says where its elements are."""

    def __dlpack__(self, **options: Any) -> object: ...

    def __dlpack_device__(self) -> tuple[int, int]: ...


class _Tensor(ctypes.Structure):
    _fields_ = [
        ("data", ctypes.c_void_p),
        ("device_type", ctypes.c_int32),
        ("device_id", ctypes.c_int32),
        ("ndim", ctypes.c_int32),
        ("code", ctypes.c_uint8),
        ("bits", ctypes.c_uint8),
        ("lanes", ctypes.c_uint16),
    ]


class _Versioned(ctypes.Structure):
    _fields_ = [
        ("major", ctypes.c_uint32),
        ("minor", ctypes.c_uint32),
        ("context", ctypes.c_void_p),
        ("deleter", ctypes.c_void_p),
        ("flags", ctypes.c_uint64),
        ("tensor", _Tensor),
    ]


_is_capsule = ctypes.pythonapi.PyCapsule_IsValid
_is_capsule.argtypes = (ctypes.py_object, ctypes.c_char_p)
_is_capsule.restype = ctypes.c_int
_pointer = ctypes.pythonapi.PyCapsule_GetPointer
_pointer.argtypes = (ctypes.py_object, ctypes.c_char_p)
_pointer.restype = ctypes.c_void_p


def is_exporter(value: object) -> bool:
    """Whether a value speaks the protocol."""
    kind = type(value)  # of a class it is its objects that do
    return hasattr(kind, "__dlpack__") and hasattr(kind, "__dlpack_device__")


def from_dlpack(exporter: Exporter) -> Array:
    """The exporter's elements as a NumPy array that shares its memory and keeps it alive.

    It may be written unless the exporter forbids it. Raises BufferError for an array on another device or of
    a dtype that NumPy does not have.
    """
    if isinstance(exporter, np.ndarray):  # which does not export bfloat16
        return np.asarray(exporter)
    kind, index = exporter.__dlpack_device__()
    if int(kind) not in _HOST:
        name = _DEVICE_NAMES.get(int(kind), f"of DLPack type {int(kind)}")
        raise BufferError(f"the array is on device {index} ({name}); copy it to the CPU")
    try:
        capsule = exporter.__dlpack__(max_version=(1, 0))
    except TypeError:  # from before version 1 of the protocol
        capsule = exporter.__dlpack__()
    versioned = bool(_is_capsule(capsule, b"dltensor_versioned"))
    tensor = _tensor(capsule, versioned)
    wide = (tensor.code, tensor.bits, tensor.lanes) == (_BFLOAT, 16, 1)
    if wide:
        tensor.code = _UINT
    try:
        array: Array = np.from_dlpack(_Given(capsule))
    except (RuntimeError, ValueError) as error:
        raise BufferError(str(error)) from error
    if wide:
        array = array.view(_BFLOAT16)
    return array if versioned or array.flags.writeable else _writeable(array)


def to_capsule(array: Array, **options: Any) -> object:
    """What ``array.__dlpack__`` gives, for bfloat16 too."""
    if array.dtype != _BFLOAT16:
        return array.__dlpack__(**options)
    capsule = array.view(np.uint16).__dlpack__(**options)
    _tensor(capsule, bool(_is_capsule(capsule, b"dltensor_versioned"))).code = _BFLOAT
    return capsule


class _Given:
    """A capsule as an exporter of it."""

    def __init__(self, capsule: object) -> None:
        self._capsule = capsule

    def __dlpack__(self, **options: Any) -> Any:
        return self._capsule

    def __dlpack_device__(self) -> tuple[Any, Any]:
        return CPU, 0


def _tensor(capsule: object, versioned: bool) -> _Tensor:
    if versioned:
        whole = _Versioned.from_address(_pointer(capsule, b"dltensor_versioned"))
        return _Tensor.from_address(ctypes.addressof(whole) + _Versioned.tensor.offset)
    if not _is_capsule(capsule, b"dltensor"):
        raise BufferError("__dlpack__ gave no DLPack tensor")
    return _Tensor.from_address(_pointer(capsule, b"dltensor"))


def _writeable(array: Array) -> Array:
    """The same memory as an array that may be written; one with gaps, which no kernel takes, as it is."""
    if not array.size:
        return np.empty(array.shape, array.dtype)
    if not array.flags.c_contiguous:
        return array
    block = (ctypes.c_char * array.nbytes).from_address(array.ctypes.data)
    block.owner = array  # type: ignore[attr-defined]
    return np.ndarray(array.shape, array.dtype, memoryview(block))
