"""Targets: what kernels are compiled for, and the machine at hand."""

from .attributes import Attribute
from .backends import Backend, BackendStatus, backends
from .errors import TargetError
from .hardware import Hardware, detect
from .kind import TargetKind
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
