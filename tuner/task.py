"""What is tuned: a workload for a target, with its search space."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from .space import TuningSpace

__all__ = ["TuningTask"]


@dataclass(frozen=True, slots=True, eq=False)
class TuningTask:
    """`workload` and `target` are JSON objects, `script` is the workload as a person reads it.

    `flops`: the floating-point operations of one call, None where they are not known. `codegen` and
    `feature_schema` are the versions that candidate keys and stored feature rows depend on. `defaults`:
    sketch names and rows that rules would choose without a search, the most promising first.
    """

    name: str
    workload: dict[str, Any]
    script: str
    target: dict[str, Any]
    target_key: str
    space: TuningSpace
    codegen: str
    feature_schema: int
    flops: int | None = None
    defaults: Sequence[tuple[str, tuple[int, ...]]] = ()

    @property
    def workload_key(self) -> str:
        return self.space.workload_key

    def gflops(self, seconds: float | None) -> float | None:
        """Billions of operations a second at that time per call."""
        return None if seconds is None or self.flops is None else self.flops / seconds / 1e9
