"""What a store gives of a job beside the job itself; the conventions are those of `records`."""

from collections.abc import Mapping
from dataclasses import dataclass

from .fleet_records import Stall
from .health_records import WorkerBaseline
from .records import Known, Trial


@dataclass(frozen=True, slots=True)
class ResultDoubt:
    """So many `results` of a worker, by its name, do not count, for the `reason` of its newest doubt."""

    worker: str
    reason: str
    results: int


@dataclass(frozen=True, slots=True)
class JobSummary:
    """What a job has come to by `at`, the database's clock.

    `report` and `model`: data of its newest events of these kinds. `counts`: trials of each outcome (0
    included), and `settled`: those neither pending nor started. `best`: of a job that is over, what is
    best-known by it or won its final rounds (another trial's single reading may have been luckier); else its
    fastest checked trial that is believed. `known_best`: the fastest of those that were `known` before it
    began. `first_started_at`: when its first trial began. `baselines` and `doubts` are by the worker's name.
    `stall`: since when, and on what, a running job waits, if nothing was heard of it for long.
    """

    at: float
    report: str | None
    model: str | None
    counts: Mapping[str, int]
    best: Trial | None
    known: Known
    known_best: Trial | None
    first_started_at: float | None
    baselines: tuple[WorkerBaseline, ...]
    doubts: tuple[ResultDoubt, ...]
    stall: Stall | None
