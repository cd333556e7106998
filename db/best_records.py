"""Best-known schedules as a store gives them; the conventions are those of `records`."""

from collections.abc import Mapping
from dataclasses import dataclass
from statistics import median

from .words import JobState


@dataclass(frozen=True, slots=True)
class SearchState:
    """How complete the search behind a best-known schedule is: `done` of `asked` trials; the job's state."""

    done: int
    asked: int
    state: JobState


@dataclass(frozen=True, slots=True)
class Baseline:
    """What the default schedule takes on the same hardware; with `bound`, it takes longer than `seconds`."""

    trial: str
    seconds: float
    bound: bool = False


@dataclass(frozen=True, slots=True)
class Confirmation:
    """Another worker of the same kind of hardware checked the schedule, too, and took `seconds`."""

    worker: str
    seconds: float
    at: float


@dataclass(frozen=True, slots=True)
class Challenger:
    """A trial of another job that read faster, and was not timed against the best in turn yet."""

    trial: str
    seconds: float


@dataclass(frozen=True, slots=True)
class Pin:
    """Somebody wants this trial's schedule for the key, whatever is faster; None: the default schedule."""

    workload: str
    target: str
    hardware: str
    trial: str | None
    note: str
    by: str
    at: float


@dataclass(frozen=True, slots=True)
class BestSchedule:
    """The best-known schedule of a workload for a target on a kind of hardware, with the evidence for it.

    `kind` is `exact`, or `default` where the default schedule is pinned: `trace` is empty then, and `seconds`
    0. `versions`: what the worker that measured it had installed. `pin`: what is pinned for its key, if that
    was asked for. `imported`: it was measured for another store.
    """

    workload: str
    target: str
    hardware: str
    trace: str
    seconds: float
    samples: tuple[float, ...]
    error: float
    trial: str
    job: str
    worker: str | None
    measured_at: float
    codegen_version: str
    search: SearchState
    kind: str
    reason: str
    versions: str = "{}"
    baseline: Baseline | None = None
    confirmation: Confirmation | None = None
    challenger: Challenger | None = None
    pin: Pin | None = None
    imported: bool = False

    @property
    def confirmed(self) -> bool:
        return self.confirmation is not None

    @property
    def dispersion(self) -> float | None:
        """How far the samples lie apart: (largest - smallest) / median; None for fewer than two."""
        if len(self.samples) < 2:
            return None
        return (max(self.samples) - min(self.samples)) / median(self.samples)

    @property
    def speedup(self) -> float | None:
        """The default schedule's time over this one's, at least that where `baseline.bound`; None where the
        default schedule was not measured."""
        if self.baseline is None or self.seconds <= 0.0:
            return None
        if self.baseline.trial == self.trial:
            return 1.0  # it may have been timed again since
        return self.baseline.seconds / self.seconds


@dataclass(frozen=True, slots=True)
class KeptSchedule:
    """A best-known schedule with what its keys stand for. `line`: of an imported one, as it came."""

    schedule: BestSchedule
    name: str
    program: str
    script: str
    description: str
    facts: str
    line: str | None = None


@dataclass(frozen=True, slots=True)
class Duel:
    """A best-known schedule and others timed in turn on one device: `worker`, None: the searching process."""

    job: str
    incumbent: str
    winner: str
    times: Mapping[str, tuple[float, ...]]
    worker: str | None
    at: float


@dataclass(frozen=True, slots=True)
class Retirement:
    """A trial whose schedule is not served any more, and why."""

    trial: str
    reason: str
    at: float


@dataclass(frozen=True, slots=True)
class Freeze:
    """A named copy of which schedule was best-known for each of `count` keys."""

    name: str
    note: str
    by: str
    at: float
    count: int


@dataclass(frozen=True, slots=True)
class ChangedKey:
    """A key whose best-known schedule is another than the frozen one; `now` None: there is none any more, or
    the default schedule is pinned."""

    workload: str
    target: str
    hardware: str
    frozen: str
    now: str | None


@dataclass(frozen=True, slots=True)
class ForeignRecord:
    """A record of another store, read and verified by whoever brings it. `digest` identifies the `line`."""

    digest: str
    line: str
    workload: str
    name: str
    program: str
    script: str
    structure: str
    target: str
    description: str
    hardware: str
    facts: str
    trial: str
    candidate_key: str
    sketch: str
    trace: str
    seconds: float
    samples: tuple[float, ...]
    error: float
    codegen_version: str
    measured_at: float
    search: SearchState
