"""Schedules: programs transformed step by step, with a trace of what was done."""

from .errors import ScheduleError, TraceError
from .schedule import BlockRV, LoopRV, Schedule
from .trace import TRACE_VERSION, Instruction, Trace

__all__ = [
    "TRACE_VERSION",
    "BlockRV",
    "Instruction",
    "LoopRV",
    "Schedule",
    "ScheduleError",
    "Trace",
    "TraceError",
]
