"""What a store takes and gives about workers and their leases; the conventions are those of `records`."""

import json
from dataclasses import dataclass

from .words import WorkerState


@dataclass(frozen=True, slots=True)
class NewWorker:
    """What a worker says when it attaches. `name` is its identity, `session` tells its processes apart.

    `facts`: of this one machine, a JSON object. `run_only`: it runs programs that builders made, since it
    cannot compile.
    """

    name: str
    session: str
    hardware: str
    protocol: int
    versions: str
    labels: str
    codegen_version: str
    pool: str | None = None
    facts: str = "{}"
    run_only: bool = False


@dataclass(frozen=True, slots=True)
class Worker:
    """`state` is `busy` where an online worker holds a lease, whose id is `lease`.

    It is in its state since `state_at` (None: since it registered); a pause ends `until` then. `settled`
    results were taken from it, `failed` of them failures; `trial` is the one that it runs now.
    """

    id: str
    name: str
    session: str
    hardware: str
    protocol: int
    versions: str
    labels: str
    codegen_version: str
    pool: str | None
    state: WorkerState
    reason: str
    lease: str | None
    registered_at: float
    seen_at: float
    facts: str = "{}"
    run_only: bool = False
    state_at: float | None = None
    until: float | None = None
    settled: int = 0
    failed: int = 0
    trial: str | None = None


@dataclass(frozen=True, slots=True)
class WorkerChange:
    """A worker after a verb. Of the best-known schedules that rested on it, `replaced` have another trial
    now and `lost` have none."""

    worker: Worker
    replaced: int = 0
    lost: int = 0


@dataclass(frozen=True, slots=True)
class Doubt:
    """What `worker` settled from `since` until `until` (None: from then on) is not believed."""

    worker: str
    since: float
    until: float | None
    reason: str
    made_at: float


@dataclass(frozen=True, slots=True)
class Crash:
    """A candidate that `losses` workers of a kind of hardware were lost with; `trial`: the last one that ran.

    It is not run there any more once that is MAX_LOSSES.
    """

    candidate_key: str
    hardware: str
    losses: int
    last_at: float
    trial: str | None


def labels_of(labels: str) -> frozenset[str]:
    """The labels of a JSON text, each as `key=value`."""
    return frozenset(f"{key}={value}" for key, value in json.loads(labels).items())


@dataclass(frozen=True, slots=True)
class OpenWork:
    """A kind of work that waits for a worker: of this hardware, in this pool (None: in any), with all these
    labels (`key=value`)."""

    hardware: str
    pool: str | None
    labels: frozenset[str]

    def fits(self, hardware: str, pool: str | None, labels: frozenset[str]) -> bool:
        """Whether a worker would find it."""
        return hardware == self.hardware and self.pool in (None, pool) and self.labels <= labels


@dataclass(frozen=True, slots=True)
class LeaseItem:
    """One trial to measure. `best_seconds` is the best of its job so far, None before the first success.

    For a worker that only runs, the artifacts that it needs: SHA-256 and size of program and data.
    """

    trial: str
    attempt: int
    job: str
    number: int
    workload: str
    program: str
    target: str
    description: str
    trace: str
    input_seed: int
    best_seconds: float | None
    trace_id: str = ""
    program_sha256: str | None = None
    program_bytes: int | None = None
    data_sha256: str | None = None
    data_bytes: int | None = None


@dataclass(frozen=True, slots=True)
class Measured:
    """What a trial of a lease is: its program, the description of its target, the facts of the hardware."""

    program: str
    description: str
    facts: str


@dataclass(frozen=True, slots=True)
class Lease:
    id: str
    worker: str
    ttl: float
    items: tuple[LeaseItem, ...]


@dataclass(frozen=True, slots=True)
class LeaseState:
    """`cancelled`: trials of the lease that nobody wants any more; `ttl`: seconds left, 0 if lost.

    Of a paused job these are the ones not started yet, which go back to the queue when the lease ends.
    """

    cancelled: tuple[str, ...]
    drain: bool
    ttl: float


@dataclass(frozen=True, slots=True)
class Stall:
    """Nothing was heard of a running job `since`: what it waits for, by the number of its oldest trial that
    is not settled. `worker`, by its name, runs that (`started`) or holds it; None: no worker does, or (no
    `number`) the search has proposed nothing that is not settled."""

    since: float
    number: int | None
    worker: str | None
    started: bool


@dataclass(frozen=True, slots=True)
class LostLease:
    """A lease that has ended. `blamed` was running and goes back once; `poisoned` will not run there again.

    `returned` go back untouched, `cancelled` belonged to a job that has ended.
    """

    lease: str
    worker: str
    blamed: tuple[str, ...]
    poisoned: tuple[str, ...]
    returned: tuple[str, ...]
    cancelled: tuple[str, ...]
