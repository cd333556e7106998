"""The part of a store's contract that tells how well the workers are."""

from collections.abc import Sequence
from typing import Protocol

from .fleet_records import Worker
from .health_records import HealthCheck, NewHealthCheck, WorkerBaseline

DRIFT_LIMIT = 0.10
"""A worker whose baseline moved by more, since its first trial of a job, has become another machine."""

MAX_HEALTH_CHECKS = 1000
"""So many of a worker are kept, the latest."""


class HealthStore(Protocol):
    def record_health(self, worker: str, session: str, check: NewHealthCheck) -> Worker:
        """Store what a worker's golden kernels showed.

        One of SICK_VERDICTS makes it `quarantined` for that reason, unless it was retired, and nothing it
        settled since its last healthy check, or since it attached, is believed (`quarantine_worker`). A
        healthy check does not release it: it is noted behind the reason. Superseded once a newer session
        has registered.
        """

    def health_checks(self, worker_id: str, limit: int = 100) -> Sequence[HealthCheck]:
        """The latest, newest first."""

    def sound_at(self, worker_id: str) -> float | None:
        """When its last healthy check was stored; None where there was none."""

    def baselines(self, job_id: str) -> list[WorkerBaseline]:
        """Of each worker that timed trials of the job between baselines, by name."""
