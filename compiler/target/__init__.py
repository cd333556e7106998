"""Targets: what kernels are compiled for, and the machine at hand."""

from .errors import TargetError
from .hardware import Hardware, detect
from .target import Target

__all__ = ["Hardware", "Target", "TargetError", "detect"]
