"""Schedules: programs transformed step by step, with a trace of what was done."""

from .errors import ScheduleError, TraceError
from .intrinsics import IntrinsicError, TensorIntrin, accumulating, known_intrinsics, register_tensor_intrin
from .schedule import BlockRV, LoopRV, Schedule
from .trace import TRACE_VERSION, Instruction, Trace

__all__ = [
    "TRACE_VERSION",
    "BlockRV",
    "Instruction",
    "IntrinsicError",
    "LoopRV",
    "Schedule",
    "ScheduleError",
    "TensorIntrin",
    "Trace",
    "TraceError",
    "accumulating",
    "known_intrinsics",
    "register_tensor_intrin",
]
