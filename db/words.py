"""The words that records use: states, outcomes, kinds and scopes, each as a type and as a tuple."""

from typing import Literal, get_args

JobState = Literal["queued", "waiting", "running", "paused", "completed", "exhausted", "cancelled", "failed"]
FinalJobState = Literal["completed", "exhausted", "cancelled", "failed"]
WorkerState = Literal[
    "registering", "online", "busy", "draining", "paused", "quarantined", "offline", "retired"
]
FailureKind = Literal[
    "build_error",
    "build_timeout",
    "run_error",
    "run_timeout",
    "wrong_output",
    "constraint",
    "worker_lost",
    "crashes_device",
    "cancelled",
]
Outcome = Literal["pending", "started", "ok", "censored"] | FailureKind
Origin = Literal["http", "local", "outside"]
History = Literal["use", "ignore"]
Cache = Literal["hot"]
Scope = Literal["jobs:write", "schedules:read", "schedules:write", "worker", "builder", "admin"]
HealthOccasion = Literal["attach", "periodic", "after_error", "quarantined"]
HealthVerdict = Literal["healthy", "suspect", "failed", "drifted", "dispersed"]

JOB_STATES: tuple[JobState, ...] = get_args(JobState)
FINAL_JOB_STATES: tuple[FinalJobState, ...] = get_args(FinalJobState)
WORKER_STATES: tuple[WorkerState, ...] = get_args(WorkerState)
FAILURE_KINDS: tuple[FailureKind, ...] = get_args(FailureKind)
OUTCOMES: tuple[Outcome, ...] = ("pending", "started", "ok", "censored", *FAILURE_KINDS)
ORIGINS: tuple[Origin, ...] = get_args(Origin)
HISTORIES: tuple[History, ...] = get_args(History)
CACHES: tuple[Cache, ...] = get_args(Cache)
"""With which caches kernels are timed; times of different policies would not compare."""
HEALTH_OCCASIONS: tuple[HealthOccasion, ...] = get_args(HealthOccasion)
HEALTH_VERDICTS: tuple[HealthVerdict, ...] = get_args(HealthVerdict)
SICK_VERDICTS: tuple[HealthVerdict, ...] = ("failed", "drifted", "dispersed")
"""A worker whose golden kernels come to one of these is quarantined."""
SCOPES: tuple[Scope, ...] = get_args(Scope)

PRESENT_STATES: tuple[WorkerState, ...] = ("registering", "online", "busy")
"""A worker in one of these measures, or is about to."""

MEASURED_STATES: tuple[JobState, ...] = ("running", "waiting")
"""A job in one of these has its trials leased."""

MAX_PRIORITY = 4
"""Priorities of jobs are -4 to 4: each step is twice the share."""

DEFAULT_BATCH = 8
"""Trials of one batch, where a job asks for no other number: two batches are out at a time."""

MOST_BATCH = 256
"""The largest batch that a job may ask for."""

LIMITS = ("seconds", "target_seconds", "patience")
"""What a budget may limit beside its trials."""

OPEN_OUTCOMES: tuple[Outcome, ...] = ("pending", "started")
"""A trial with one of these has no result yet."""

UNMEASURED_OUTCOMES: tuple[Outcome, ...] = ("pending", "started", "cancelled")
"""A trial with one of these does not count towards a job's `done`."""

LEAST_SECONDS = 1e-15
"""No call takes less, not even a light wave's one swing: a shorter time was made up, and rates made of it
may be more than a float holds."""
