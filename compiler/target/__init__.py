"""Targets: what kernels are compiled for, and the machine at hand."""

from .attributes import Attribute
from .errors import TargetError
from .hardware import Hardware, detect
from .kind import TargetKind
from .registry import Backend, BackendStatus, backends
from .target import Target

__all__ = [
    "Attribute",
    "Backend",
    "BackendStatus",
    "Hardware",
    "Target",
    "TargetError",
    "TargetKind",
    "backends",
    "detect",
]
