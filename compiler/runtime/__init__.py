"""Compiled kernels as callables over arrays."""

from .arguments import ParamInfo
from .errors import ArgumentError, ArgumentTypeError, ArgumentValueError, CallError, LoadError
from .function import Function, LoadedCode, SourceInfo, UnloadedCode, WorkspaceInfo
from .module import Module, UnknownFunction
from .packing import PackInfo

__all__ = [
    "ArgumentError",
    "ArgumentTypeError",
    "ArgumentValueError",
    "CallError",
    "Function",
    "LoadError",
    "LoadedCode",
    "Module",
    "PackInfo",
    "ParamInfo",
    "SourceInfo",
    "UnknownFunction",
    "UnloadedCode",
    "WorkspaceInfo",
]
