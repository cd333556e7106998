"""Compiled kernels as callables over NumPy arrays."""

from .arguments import ParamInfo
from .errors import ArgumentError, ArgumentTypeError, ArgumentValueError
from .module import LoadedCode, Module, SourceInfo, WorkspaceInfo

__all__ = [
    "ArgumentError",
    "ArgumentTypeError",
    "ArgumentValueError",
    "LoadedCode",
    "Module",
    "ParamInfo",
    "SourceInfo",
    "WorkspaceInfo",
]
