"""The tables as this program reads and writes them; migrations/ makes them, and a test compares the two."""

from .artifacts import artifacts, builds
from .base import metadata
from .catalog import hardware, structures, targets, workloads
from .fleet import doubts, leases, shares, workers
from .health import health_checks, job_baselines
from .jobs import events, job_labels, jobs, warm_starts
from .schedules import baselines, duels, freezes, frozen, imports, pins, retirements, schedules
from .service import answers, audit, tokens
from .trials import attempts, crashes, holdings, retimings, trials

__all__ = [
    "answers",
    "artifacts",
    "attempts",
    "audit",
    "baselines",
    "builds",
    "crashes",
    "doubts",
    "duels",
    "events",
    "freezes",
    "frozen",
    "hardware",
    "health_checks",
    "holdings",
    "imports",
    "job_baselines",
    "job_labels",
    "jobs",
    "leases",
    "metadata",
    "pins",
    "retimings",
    "retirements",
    "schedules",
    "shares",
    "structures",
    "targets",
    "tokens",
    "trials",
    "warm_starts",
    "workers",
    "workloads",
]
