"""The façade: one class with every step."""

from __future__ import annotations

from .block_steps import BlockSteps
from .handles import BlockRV, LoopRV
from .layout_steps import LayoutSteps
from .look import Look
from .loop_steps import LoopSteps
from .sample import Sample


class Schedule(Look, Sample, LoopSteps, BlockSteps, LayoutSteps):
    """Transforms a PrimFunc step by step. Each step either keeps the meaning or raises ScheduleError, which
    names the user's line."""


__all__ = ["BlockRV", "LoopRV", "Schedule"]
