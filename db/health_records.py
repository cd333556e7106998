"""What a store takes and gives about how well workers are; the conventions are those of `records`."""

from dataclasses import dataclass

from .words import HealthOccasion, HealthVerdict


@dataclass(frozen=True, slots=True)
class NewHealthCheck:
    """What golden kernels showed of a worker. `parts`: the numbers, as a JSON array; `reason`: what is wrong,
    in words."""

    occasion: HealthOccasion
    verdict: HealthVerdict
    parts: str = "[]"
    reason: str = ""


@dataclass(frozen=True, slots=True)
class HealthCheck:
    seq: int
    worker: str
    at: float
    occasion: HealthOccasion
    verdict: HealthVerdict
    parts: str
    reason: str


@dataclass(frozen=True, slots=True)
class WorkerBaseline:
    """Seconds of the baseline kernel on one worker, around the first and the last trial that it timed for a
    job.

    `readings`: how many there were. `drifted`: it has once been more than DRIFT_LIMIT away from the first.
    """

    job: str
    worker: str
    name: str
    first_seconds: float
    last_seconds: float
    readings: int
    drifted: bool

    @property
    def drift(self) -> float:
        """How much slower it has become, as a ratio less 1."""
        return self.last_seconds / self.first_seconds - 1.0
