"""What a search of `tune` has found."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field

from ..compiler.schedule import Trace
from ..db.words import JobState
from .model_quality import ModelQuality
from .outcome import Trial
from .pruning import Pruning
from .time_split import TimeSplit

__all__ = ["TuningRecord"]


@dataclass(frozen=True, slots=True, kw_only=True)
class TuningRecord:
    """The best schedule of one workload for one target on one kind of hardware, and how it was found.

    `seconds` per call, `samples` and `best` are None (`samples` empty) where no trial gave a time. `samples`
    are the times of the final rounds, or of the one measurement where no other trial came near, and `seconds`
    goes with them. `trial_count` were measured; `known_count` were known from earlier searches, of which
    `best` may be one, with a number below 0 and no samples. `failures` counts by kind. `search_seconds` is
    CPU time of the search itself, without the measuring, and without loading the cost model's libraries.
    `split` says where all of the wall time went, and `model` how well the cost model predicted what was
    measured after it. `state` is `paused` or `cancelled` where somebody else has stopped the job; there were
    no final rounds then. `job`: the id under which the
    trials are recorded, None without a store. `pruning`: for each sketch how many configurations its
    constraints ruled out before anything was built. `space_errors`: rules that failed to make their part of
    the space, by name; the others' part was searched.
    """

    workload: str
    target: str
    hardware: str
    state: JobState
    reason: str
    seconds: float | None
    samples: tuple[float, ...]
    best: Trial | None
    trial_count: int
    failures: dict[str, int]
    wall_seconds: float
    search_seconds: float
    strategy: str
    flops: int | None
    job: str | None
    split: TimeSplit
    model: ModelQuality
    known_count: int = 0
    pruning: tuple[Pruning, ...] = ()
    space_errors: Mapping[str, str] = field(default_factory=dict)

    @property
    def trace(self) -> Trace | None:
        """The best schedule, to be applied, stored or printed as Python."""
        return None if self.best is None else Trace.from_json(json.loads(self.best.candidate.trace))

    @property
    def gflops(self) -> float | None:
        """Billions of operations a second, where the workload's operations can be counted."""
        return None if self.seconds is None or self.flops is None else self.flops / self.seconds / 1e9
