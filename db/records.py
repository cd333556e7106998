"""What a store takes and gives: plain values that know nothing of SQL, copied in and out.

Times (`…_at`, `waiting_since`) are seconds since the epoch by the database's clock; durations are seconds.
Programs, descriptions, facts, traces, specs, versions, labels and details are JSON texts.
"""

import json
from dataclasses import dataclass
from typing import Generic, TypeVar

from .words import DEFAULT_BATCH, FailureKind, History, JobState, Origin, Outcome, Scope

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Workload:
    """A program to be tuned; `name` and `script` are its readable form and no part of the key."""

    key: str
    name: str
    program: str
    script: str
    created_at: float


@dataclass(frozen=True, slots=True)
class Target:
    key: str
    description: str
    created_at: float


@dataclass(frozen=True, slots=True)
class Hardware:
    """A kind of device; `facts` are those last reported by a machine of this kind."""

    key: str
    facts: str
    created_at: float


@dataclass(frozen=True, slots=True)
class NewJob:
    """`seconds` None: no limit. `hardware` None: bound later (`bind_hardware`). `spec`: what was asked.

    A trial of at most `target_seconds` is good enough, and `patience` trials in a row without a new best end
    the search; None: no such limit. `history`: whether what other jobs have measured informs this one.
    `owner`: the token that made it, None for nobody in particular; `trace_id`: of the request that made it.
    Only workers of its `pool` (None: of any) that have all its `labels` measure it. `account`: whose share of
    the fleet its trials count to; `priority` weighs it against other jobs of that account.
    """

    workload: str
    target: str
    hardware: str | None
    trials: int
    seconds: float | None
    seed: int
    strategy: str
    worker_wait: float
    origin: Origin
    spec: str
    target_seconds: float | None = None
    patience: int | None = None
    history: History = "use"
    owner: str | None = None
    trace_id: str = ""
    pool: str | None = None
    labels: str = "{}"
    priority: int = 0
    account: str = ""


@dataclass(frozen=True, slots=True)
class Job:
    """`done` counts the trials with a result, cancelled ones not included; `epoch` 0: no search yet.

    `reason` says what a waiting job waits for, why a finished one ended, and why another does not get on;
    else it is empty. `paused_at`: since when a paused job stands still; `paused_seconds`: how long it stood
    still before, which does not count against its `seconds`. `process`: of a local job, who tunes it.
    """

    id: str
    state: JobState
    reason: str
    workload: str
    target: str
    hardware: str | None
    trials: int
    seconds: float | None
    seed: int
    strategy: str
    worker_wait: float
    origin: Origin
    spec: str
    epoch: int
    done: int
    created_at: float
    started_at: float | None
    waiting_since: float | None
    finished_at: float | None
    target_seconds: float | None = None
    patience: int | None = None
    history: History = "use"
    paused_at: float | None = None
    paused_seconds: float = 0.0
    process: str = ""
    owner: str | None = None
    trace_id: str = ""
    pool: str | None = None
    labels: str = "{}"
    priority: int = 0
    account: str = ""

    @property
    def batch(self) -> int:
        """Trials of one batch: what was asked for."""
        said = json.loads(self.spec).get("batch")
        return said if isinstance(said, int) else DEFAULT_BATCH

    def stood_still(self, now: float) -> float:
        """Seconds of the job's life, up to `now`, that do not count against its `seconds`."""
        return self.paused_seconds + (0.0 if self.paused_at is None else max(0.0, now - self.paused_at))


@dataclass(frozen=True, slots=True)
class Page(Generic[T]):
    """`next` is the `after` of the following page, or None on the last one."""

    items: tuple[T, ...]
    next: str | None


@dataclass(frozen=True, slots=True)
class NewTrial:
    """A candidate to be measured. `number` counts from 0 within the job; `features` is its feature row.

    `predicted`: the score that a cost model gave it, None where none did; `origin`: what proposed it.
    """

    number: int
    batch: int
    candidate_key: str
    sketch: str
    trace: str
    features: bytes
    feature_schema: int
    input_seed: int
    predicted: float | None = None
    origin: str = ""


@dataclass(frozen=True, slots=True)
class Settlement:
    """The result of one attempt: seconds (median; a lower bound where `censored`), or a typed failure.

    `error` is the worst |y - ref| / tolerance of the checked output; None where it was not checked.
    `codegen_version` None stands for the version the worker registered with. `disturbed`: something, as
    `disturbance` says, disturbed every sample. `calls` were made in each sample, with the caches as `cache`
    says (`hot`). `baseline`: seconds of the device's baseline kernel before and after the samples.
    `settle_local` ignores `trial` and `attempt`.
    """

    trial: str = ""
    attempt: int = 1
    seconds: float | None = None
    samples: tuple[float, ...] = ()
    censored: bool = False
    error: float | None = None
    failure_kind: FailureKind | None = None
    failure_message: str = ""
    failure_detail: str = "{}"
    build_seconds: float = 0.0
    wall_seconds: float = 0.0
    codegen_version: str | None = None
    disturbed: bool = False
    calls: int | None = None
    cache: str | None = None
    baseline: tuple[float, ...] = ()
    disturbance: str = ""


@dataclass(frozen=True, slots=True)
class Trial:
    """`outcome` is `pending`, `started`, `ok`, `censored` or a failure kind; `worker`: who measured it.

    `attempt` counts the grants so far. A pending trial that lies in somebody's lease is still `pending`.
    `first_seconds` and `first_samples`: what the search was told of a trial that the final rounds timed again
    (`crown`), whose `seconds` and `samples` are theirs. `baseline_before` and `baseline_after`: of the first
    timing; `baseline_ratio` is its seconds in units of their mean, to compare across what a device went
    through.
    """

    id: str
    job: str
    number: int
    batch: int
    candidate_key: str
    sketch: str
    trace: str
    features: bytes
    feature_schema: int
    input_seed: int
    outcome: Outcome
    attempt: int
    seconds: float | None
    samples: tuple[float, ...]
    censored: bool
    error: float | None
    failure_kind: FailureKind | None
    failure_message: str
    failure_detail: str
    build_seconds: float
    wall_seconds: float
    codegen_version: str | None
    worker: str | None
    created_at: float
    started_at: float | None
    settled_at: float | None
    predicted: float | None = None
    origin: str = ""
    disturbed: bool = False
    first_seconds: float | None = None
    first_samples: tuple[float, ...] | None = None
    calls: int | None = None
    cache: str | None = None
    baseline_before: float | None = None
    baseline_after: float | None = None
    baseline_ratio: float | None = None
    disturbance: str = ""


@dataclass(frozen=True, slots=True)
class PastTrial:
    """A settled trial as a later search reads it: as it is stored, to be checked by the reader."""

    id: str
    job: str
    number: int
    candidate_key: str
    sketch: str
    trace: str
    features: bytes
    feature_schema: int
    outcome: Outcome
    seconds: float | None
    error: float | None
    failure_kind: FailureKind | None
    failure_message: str
    failure_detail: str


@dataclass(frozen=True, slots=True)
class PastSearch:
    """A key that was searched before; `seconds`: of its best-known schedule. `structure` None: not known."""

    workload: str
    target: str
    hardware: str
    structure: str | None
    seconds: float


@dataclass(frozen=True, slots=True)
class Known:
    """How many trials of a job's budget were measured by earlier jobs, and which of them was the fastest."""

    trials: int
    best: str | None


@dataclass(frozen=True, slots=True)
class Retiming:
    """A trial timed once more, in round `turn`. `outcome` is `pending`, `ok`, `cancelled` or a failure kind;
    `seconds` only where it is `ok`. `number` is that within its job, which may be another one."""

    trial: str
    number: int
    turn: int
    outcome: str
    seconds: float | None
    samples: tuple[float, ...]
    worker: str | None


@dataclass(frozen=True, slots=True)
class Event:
    """Something that happened to a job; `seq` counts from 1 within the job."""

    job: str
    seq: int
    kind: str
    data: str
    at: float


@dataclass(frozen=True, slots=True)
class Token:
    """A bearer token without its secret, of which only the SHA-256 is stored.

    It may have `max_jobs` unfinished jobs with `max_trials` unmeasured trials, and make `rate` requests a
    second; None: what the server allows everyone.
    """

    id: str
    name: str
    scopes: tuple[Scope, ...]
    pool: str | None
    created_at: float
    expires_at: float | None
    revoked_at: float | None
    max_jobs: int | None = None
    max_trials: int | None = None
    rate: float | None = None


@dataclass(frozen=True, slots=True)
class TokenLimits:
    """What a token may use; None: what the server allows everyone."""

    max_jobs: int | None = None
    max_trials: int | None = None
    rate: float | None = None


NO_LIMITS = TokenLimits()
