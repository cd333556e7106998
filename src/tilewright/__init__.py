"""Tilewright: auto-tuning search service for tensor kernels.

The names below are loaded on first use, so that `import tilewright` costs next to nothing.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from tilewright.compiler import te, topi
    from tilewright.compiler.build import build
    from tilewright.compiler.codegen.errors import BuildError
    from tilewright.compiler.dump import dump
    from tilewright.compiler.ir import IRModule, PrimFunc, TypeMismatch, VerifyError
    from tilewright.compiler.runtime import CallError, LoadError, Module
    from tilewright.compiler.runtime.device_api import Device, DeviceError, device
    from tilewright.compiler.runtime.load import load_module
    from tilewright.compiler.runtime.ndarray import NDArray
    from tilewright.compiler.runtime.pool import num_threads, set_num_threads
    from tilewright.compiler.schedule import (
        Schedule,
        ScheduleError,
        TensorIntrin,
        Trace,
        register_tensor_intrin,
    )
    from tilewright.compiler.target import Target, TargetError, backends
    from tilewright.service.async_client import AsyncClient
    from tilewright.service.client import ApiError, Client
    from tilewright.service.connect import connect
    from tilewright.service.explaining import explain
    from tilewright.tuner.ask_tell import ask_tell
    from tilewright.tuner.resuming import resume
    from tilewright.tuner.tasks import TasksRecord, WeightedTask, tune_tasks
    from tilewright.tuner.tune import TuningRecord, tune

__version__ = "0.1.0"

_WHERE = {
    "te": "tilewright.compiler",
    "topi": "tilewright.compiler",
    "build": "tilewright.compiler.build",
    "BuildError": "tilewright.compiler.codegen.errors",
    "IRModule": "tilewright.compiler.ir",
    "dump": "tilewright.compiler.dump",
    "PrimFunc": "tilewright.compiler.ir",
    "TypeMismatch": "tilewright.compiler.ir",
    "VerifyError": "tilewright.compiler.ir",
    "CallError": "tilewright.compiler.runtime",
    "LoadError": "tilewright.compiler.runtime",
    "Module": "tilewright.compiler.runtime",
    "Device": "tilewright.compiler.runtime.device_api",
    "DeviceError": "tilewright.compiler.runtime.device_api",
    "device": "tilewright.compiler.runtime.device_api",
    "load_module": "tilewright.compiler.runtime.load",
    "NDArray": "tilewright.compiler.runtime.ndarray",
    "num_threads": "tilewright.compiler.runtime.pool",
    "set_num_threads": "tilewright.compiler.runtime.pool",
    "Schedule": "tilewright.compiler.schedule",
    "ScheduleError": "tilewright.compiler.schedule",
    "TensorIntrin": "tilewright.compiler.schedule",
    "register_tensor_intrin": "tilewright.compiler.schedule",
    "Trace": "tilewright.compiler.schedule",
    "Target": "tilewright.compiler.target",
    "TargetError": "tilewright.compiler.target",
    "backends": "tilewright.compiler.target",
    "ApiError": "tilewright.service.client",
    "AsyncClient": "tilewright.service.async_client",
    "Client": "tilewright.service.client",
    "connect": "tilewright.service.connect",
    "explain": "tilewright.service.explaining",
    "resume": "tilewright.tuner.resuming",
    "TuningRecord": "tilewright.tuner.tune",
    "ask_tell": "tilewright.tuner.ask_tell",
    "tune": "tilewright.tuner.tune",
    "TasksRecord": "tilewright.tuner.tasks",
    "WeightedTask": "tilewright.tuner.tasks",
    "tune_tasks": "tilewright.tuner.tasks",
}

__all__ = [
    "ApiError",
    "AsyncClient",
    "BuildError",
    "CallError",
    "Client",
    "Device",
    "DeviceError",
    "IRModule",
    "LoadError",
    "Module",
    "NDArray",
    "PrimFunc",
    "Schedule",
    "ScheduleError",
    "Target",
    "TargetError",
    "TasksRecord",
    "TensorIntrin",
    "Trace",
    "TuningRecord",
    "TypeMismatch",
    "VerifyError",
    "WeightedTask",
    "__version__",
    "ask_tell",
    "backends",
    "build",
    "connect",
    "device",
    "dump",
    "explain",
    "load_module",
    "num_threads",
    "register_tensor_intrin",
    "resume",
    "set_num_threads",
    "te",
    "topi",
    "tune",
    "tune_tasks",
]


def __getattr__(name: str) -> Any:
    if name not in _WHERE:
        raise AttributeError(f"module 'tilewright' has no attribute {name!r}")
    module = import_module(_WHERE[name])
    value = import_module(f"{_WHERE[name]}.{name}") if name in ("te", "topi") else getattr(module, name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return __all__
