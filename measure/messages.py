"""What a worker and the service say to each other: plain data, with IR and traces as JSON objects."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Annotated, Any, Literal, Protocol, Self, get_args

from ..compiler.target.attributes import MOST_THREADS
from .health_messages import HealthPlan, HealthReport, HealthUpdate
from .wire import MAX_INTEGER, Bound, Message, MessageError, Size

__all__ = [
    "FAILURE_KINDS",
    "MAX_BATCH",
    "MAX_DISTURBANCE",
    "MAX_LAST_WORDS",
    "MAX_MESSAGE",
    "PROTOCOL",
    "Drain",
    "Failure",
    "FailureKind",
    "JobSource",
    "Lease",
    "LeaseLost",
    "LeaseUpdate",
    "Limits",
    "MeasureInput",
    "MeasureResult",
    "MessageError",
    "NotATilewright",
    "Registration",
    "SourceError",
    "SourceRefused",
    "SourceUnreachable",
    "Superseded",
    "Unauthorized",
    "VersionRefused",
    "WorkerHello",
]

PROTOCOL = 2
"""The protocol integer that every call of a worker carries."""

MAX_BATCH = 64
"""The most items of one lease."""

MAX_MESSAGE = 4_000
MAX_LAST_WORDS = 8_000
"""The most characters of a failure's message, and of its last words."""

MAX_DISTURBANCE = 200
"""The most characters that say what disturbed a timing."""

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
FAILURE_KINDS: tuple[FailureKind, ...] = get_args(FailureKind)

Identifier = Annotated[str, Size(128, least=1)]
Key = Annotated[str, Size(64, least=64)]
Duration = Annotated[float, Bound(0, 1e9)]
Positive = Annotated[float, Bound(0, 1e9, above=True)]


@dataclass(frozen=True, slots=True)
class Limits(Message):
    """What one candidate may use: seconds of wall time to build, then to check and be timed; bytes of memory
    beyond what its process starts with."""

    build_seconds: Annotated[float, Bound(0, 86_400, above=True)] = 10.0
    run_seconds: Annotated[float, Bound(0, 86_400, above=True)] = 10.0
    memory_bytes: Annotated[int, Bound(1)] = 2 << 30


@dataclass(frozen=True, slots=True)
class MeasureInput(Message):
    """One candidate to measure: `trace` replayed on `workload` for `target`, on the inputs of `input_seed`.

    `attempt` is the fencing token of this item's grant. `best_seconds`, when known, lets a trial that is
    clearly slower stop early as `censored`; without it there is no race. `traceparent` (W3C Trace Context)
    names the trace of the request that made the job, for logs.
    """

    item: Identifier
    attempt: Annotated[int, Bound(0)]
    workload: dict[str, Any]
    target: dict[str, Any]
    trace: dict[str, Any]
    input_seed: Annotated[int, Bound(0, MAX_INTEGER)] = 0
    limits: Limits = field(default_factory=Limits)
    best_seconds: Positive | None = None
    traceparent: Annotated[str, Size(64)] | None = None

    @property
    def threads(self) -> int:
        """The threads of its target; 1 where that does not say."""
        given = self.target.get("num-threads")
        return given if type(given) is int and 1 <= given <= MOST_THREADS else 1


@dataclass(frozen=True, slots=True)
class Failure(Message):
    """Why a candidate yielded no time.

    `limit` is the limit it ran into, in the unit of that limit (seconds, bytes), `elapsed` the seconds it had
    taken when it failed, `last_words` the end of what it wrote to stderr. `of_workload`: it is not this
    candidate that failed, no candidate of the workload can be measured here.
    """

    kind: FailureKind
    message: Annotated[str, Size(MAX_MESSAGE)]
    limit: Annotated[float, Bound(0)] | None = None
    elapsed: Duration | None = None
    last_words: Annotated[str, Size(MAX_LAST_WORDS)] = ""
    of_workload: bool = False


@dataclass(frozen=True, slots=True)
class MeasureResult(Message):
    """What came of one item: `seconds` (the minimum of `samples`, per call) or a `failure`, never both.

    `calls` were made in each sample, with the caches as `cache` says: hot, since every call works on the same
    buffers. `censored`: stopped after fewer samples since it was clearly slower than the best; `seconds` is
    then its lower bound, as far as few samples tell. `disturbed`: something disturbed every sample, such as
    other work; `disturbance` says what. `baseline`: the seconds of one call of the baseline kernel on this
    device, right before and right after the samples, to which these compare. `error` is the worst |y - ref| /
    tolerance the check found: at most 1 when it passed; None also for a censored candidate that was stopped
    in its very first call.
    """

    item: Identifier
    attempt: Annotated[int, Bound(0)]
    seconds: Positive | None = None
    samples: Annotated[tuple[Positive, ...], Size(1_000)] = ()
    censored: bool = False
    error: Annotated[float, Bound(0)] | None = None
    failure: Failure | None = None
    build_seconds: Duration = 0.0
    wall_seconds: Duration = 0.0
    disturbed: bool = False
    calls: Annotated[int, Bound(1, MAX_INTEGER)] = 1
    cache: Literal["hot"] = "hot"
    baseline: Annotated[tuple[Positive, ...], Size(2)] = ()
    disturbance: Annotated[str, Size(MAX_DISTURBANCE)] = ""

    @classmethod
    def failed(cls, item: MeasureInput, failure: Failure) -> Self:
        return cls(item.item, item.attempt, failure=failure)

    def refusal(self) -> str | None:
        if (self.seconds is None) == (self.failure is None):
            return "a result has either seconds or a failure"
        if self.seconds is not None and not self.samples:
            return "seconds without the samples they come from"
        if self.seconds is not None and self.seconds != min(self.samples):
            return f"seconds are the least of the samples, {min(self.samples)!r}, not {self.seconds!r}"
        if self.failure is not None and (self.samples or self.censored or self.disturbed or self.baseline):
            return "a failure has no samples and no baseline, and is neither censored nor disturbed"
        if self.disturbance and not self.disturbed:
            return "a disturbance of a result that is not disturbed"
        return None


@dataclass(frozen=True, slots=True)
class WorkerHello(Message):
    """Who a worker is. `session` is fresh random hex: a newer session of its name supersedes it. `hardware`
    holds what its key is made of and other facts; `health` is the last check of a worker that attaches again.

    `run_only`: it cannot compile; its leases are RunLeases (measure/run_only).
    """

    protocol: int
    name: Identifier
    session: Annotated[str, Size(64, least=16)]
    hardware_key: Key
    hardware: dict[str, Any]
    versions: Annotated[dict[str, Annotated[str, Size(200)]], Size(64)]
    labels: Annotated[dict[str, Annotated[str, Size(200)]], Size(64)] = field(default_factory=dict)
    health: HealthReport | None = None
    run_only: bool = False


@dataclass(frozen=True, slots=True)
class Registration(Message):
    """What a worker is told at attach: its id and the durations it works by, on its own monotonic clock, and
    how it is to check itself (None: not at all)."""

    worker: Identifier
    ttl_seconds: Positive
    renew_seconds: Positive
    wait_seconds: Duration
    health: HealthPlan | None = None


@dataclass(frozen=True, slots=True)
class Lease(Message):
    """A batch of items granted for `ttl_seconds`, to be renewed every `renew_seconds`."""

    lease: Identifier
    ttl_seconds: Positive
    renew_seconds: Positive
    items: Annotated[tuple[MeasureInput, ...], Size(MAX_BATCH)]


@dataclass(frozen=True, slots=True)
class LeaseUpdate(Message):
    """The reply to renew and settle: items no longer wanted, whether to take no more, the time to live."""

    cancelled: tuple[Identifier, ...] = ()
    drain: bool = False
    ttl_seconds: Positive = 30.0


class SourceError(Exception):
    """A JobSource could not do what it was asked."""


class SourceUnreachable(SourceError, ConnectionError):
    """No answer came; the same call may be made again. The message names what was tried."""


class NotATilewright(SourceError):
    """Something answered that is not a Tilewright service (a wrong port, another program)."""

    def __init__(self, what: str, url: str) -> None:
        super().__init__(what, url)
        self.what = what
        self.url = url

    def __str__(self) -> str:
        return f"expected a tilewright service at {self.url}, found {self.what}"


class Unauthorized(SourceError):
    """The token is missing, wrong, expired, or not for workers."""


class LeaseLost(SourceError):
    """The lease or the attempt is no longer this worker's (409): its items are granted anew to someone."""


class Superseded(SourceError):
    """A newer session registered under this worker's name (409)."""


class NameRetired(SourceError):
    """This worker's name was removed, and never attaches again (409): another one would."""


class VersionRefused(SourceError):
    """The service does not speak this worker's protocol (426). The message names the version it needs."""


class SourceRefused(SourceError):
    """The service refused this one call for what it said (another 4xx), for the reason in the message."""


class Drain(Exception):
    """The service has nothing more for this worker: it is to end."""


class JobSource(Protocol):
    """Where a worker's work comes from. Every call may raise SourceUnreachable, NotATilewright, Unauthorized,
    Superseded, VersionRefused and SourceRefused; the calls of a lease may raise LeaseLost.

    Calls come from two threads of the worker: the loop, and the one that renews.
    """

    def register(self, hello: WorkerHello) -> Registration:
        """Attach, or attach again after the service forgot this worker."""

    def lease(self, max_items: int, wait_seconds: float) -> Lease | None:
        """The next batch, waiting up to `wait_seconds` for one; None when there is none. Raises Drain."""

    def start(self, lease: str, item: str, attempt: int) -> None:
        """Mark an item started, before it runs, so that a lost worker is blamed on it alone."""

    def renew(self, lease: str) -> LeaseUpdate:
        """Keep the lease alive."""

    def settle(self, lease: str, results: Sequence[MeasureResult]) -> LeaseUpdate:
        """Hand in results; this also renews. Settling the same result twice is fine."""

    def release(self, lease: str) -> None:
        """Give back what is not settled. This counts as no attempt."""

    def health(self, report: HealthReport) -> HealthUpdate:
        """Tell what a check of this worker came to; only where the registration has a plan for checks."""

    def leave(self) -> None:
        """Detach: this worker has drained and takes no more. A source that keeps no list of workers has
        nothing to do."""
