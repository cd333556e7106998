"""What is tuned: a workload for a target, with its search space."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from .candidate import Features
from .estimate import Estimated
from .space import TuningSpace

__all__ = ["Replayed", "Structure", "TuningTask"]


@dataclass(frozen=True, slots=True)
class Structure:
    """`key`: what programs share that differ in their extents alone; `extents`: those of one of them, in an
    order that is common to all."""

    key: str
    extents: tuple[int, ...]


@dataclass(frozen=True, slots=True, eq=False)
class Replayed:
    """A trace that applies to the program: as it is stored (RFC 8785) and as it is identified, and the
    features of the schedule it makes."""

    trace: str
    canonical: str
    features: Features | None


@dataclass(frozen=True, slots=True, eq=False)
class TuningTask:
    """`workload` and `target` are JSON objects, `script` is the workload as a person reads it.

    `flops`: the floating-point operations of one call, None where they are not known. `codegen` and
    `feature_schema` are the versions that candidate keys and stored feature rows depend on. `defaults`:
    sketch names and rows that rules would choose without a search, the most promising first, and `costs`:
    what these rules say of any rows of features (None: there are none). `space_errors`: for each rule that
    failed to make its part of the space, its name and what it raised.

    `structure` is the workload's, and `structure_of` that of any program (None: it cannot be read). `replay`
    applies a trace (JSON) to the program; it raises NotReplayable. `open_other` makes the task of another
    workload for another target, from their stored JSON texts; None where this version cannot. Without them a
    search takes nothing over from related workloads, and tries nothing outside of its space.
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
    costs: Estimated | None = None
    space_errors: Mapping[str, str] = field(default_factory=dict)
    structure: Structure | None = None
    structure_of: Callable[[Mapping[str, Any]], Structure | None] | None = None
    replay: Callable[[Mapping[str, Any]], Replayed] | None = None
    open_other: Callable[[str, str], TuningTask | None] | None = None

    @property
    def workload_key(self) -> str:
        return self.space.workload_key

    def gflops(self, seconds: float | None) -> float | None:
        """Billions of operations a second at that time per call."""
        return None if seconds is None or self.flops is None else self.flops / seconds / 1e9
