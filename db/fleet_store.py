"""The part of a store's contract that measurement needs: workers, and trials leased to them."""

from collections.abc import Mapping, Sequence
from typing import Protocol

from .fleet_records import Lease, LeaseState, LostLease, Measured, NewWorker, OpenWork, Worker
from .records import Settlement
from .words import WorkerState
from .worker_control_store import WorkerControlStore

MAX_LEASE_ITEMS = 64
MAX_ATTEMPTS = 3
"""A trial is not tried again after so many attempts that ended by the loss or a fault of the worker; those
that came back untouched do not count."""

MAX_LOSSES = 2
"""So many workers lost while they ran a candidate make it `crashes_device` for that kind of hardware."""


class WorkerStore(Protocol):
    def register_worker(self, worker: NewWorker) -> Worker:
        """Attach a worker; its hardware must have been put before.

        A name that is known keeps its id. Another session of it supersedes the older one, whose lease ends
        at once as if it had expired; the same session again keeps its lease and state, and what it says of
        itself is taken for the old. A worker that was paused or quarantined stays so; else it becomes
        `registering`, until it asks for work. Conflict where it was retired, or the same session says other
        hardware.
        """

    def workers(self) -> list[Worker]:
        """All workers but retired ones, by name."""

    def worker(self, worker_id: str) -> Worker: ...

    def leave(self, worker_id: str, session: str) -> Worker:
        """The session has ended of itself: its lease is released and the worker `offline` at once.

        A worker that was paused or quarantined stays so. May be repeated; Superseded once a newer session
        has registered. No later call of the session is taken.
        """

    def set_worker_state(self, worker_id: str, state: WorkerState, reason: str) -> Worker:
        """Drain, pause, quarantine, bring back or retire a worker (`busy` and `registering` cannot be set).

        Only a worker that is there, and held back by nothing, is given leases.
        """


class LeaseStore(Protocol):
    """Leases: at-least-once dispatch, effectively-once settlement.

    A trial's `attempt` grows with each grant and fences the older ones off.
    """

    def claim(self, worker: str, session: str, hardware: str, max_items: int, ttl: float) -> Lease | None:
        """Lease up to `max_items` (at most MAX_LEASE_ITEMS) trials of one job, the lowest numbers first;
        those to be timed again (`time_again`) before all others, and not together with them.

        None where there is no work. Only trials of waiting or running jobs of origin `http` that are bound
        to this hardware, to the worker's pool or none, and that ask for no label that it lacks. Of these the
        job is chosen whose account was given the fewest trials on this hardware, and which itself was given
        the fewest of that account, by a weight of 2 to the power of its priority; among equals the oldest.
        Trials that come back unmeasured do not count, and who had nothing queued saves nothing up.

        A job that was waiting becomes running. A worker holds one lease: what an open one of the worker still
        has goes back first. Expired leases are swept first. A candidate that has crashed this kind of
        hardware MAX_LOSSES times is settled as `crashes_device` instead. None for a worker that is draining,
        paused, quarantined or retired. Superseded; Conflict where the worker registered with another
        hardware.
        """

    def start(self, lease: str, trial: str, attempt: int, session: str | None = None) -> LeaseState:
        """Mark the one trial that the device runs from now on: it is blamed if the worker is lost.

        Starting the next one says that the worker survived the one before. May be repeated. LeaseLost,
        Superseded. `session`, here and below: who says so; NotFound where the lease is another's.
        """

    def renew(self, lease: str, ttl: float, session: str | None = None) -> LeaseState:
        """Let the lease end `ttl` seconds from now. LeaseLost once it has expired, Superseded.

        A lease whose trials are all settled, or that was released, is past: no effect.
        """

    def measured(self, lease: str, trials: Sequence[str]) -> dict[str, Measured]:
        """What those of these trials are that the lease was granted, by their ids."""

    def settle(
        self,
        lease: str,
        settlements: Sequence[Settlement],
        session: str | None = None,
        instead: Mapping[str, Settlement] | None = None,
    ) -> LeaseState:
        """Store results, update the best-known schedules in the same transaction, and renew the lease.

        Of a trial in `instead` that is stored, whatever was handed in: the service does not believe it. The
        same settlement again has no effect. A `worker_lost`, the worker's own failure, brings the trial back
        to the queue until it had MAX_ATTEMPTS. A late one, whose lease expired, is accepted while its
        trial was not granted again; then the state's `ttl` is 0 and `cancelled` names the rest of the
        lease. Refused ones raise after all others have been stored: LeaseLost for trials granted to
        somebody else, SettlementMismatch for another result of a settled attempt. One InvalidValue refuses
        the whole call. Superseded likewise.
        """

    def release(self, lease: str, session: str | None = None) -> None:
        """Give back what is not settled; it counts for nothing. No effect on a lease that is past."""

    def sweep(self, worker_silence: float = 60.0, local_silence: float = 600.0) -> list[LostLease]:
        """End expired leases and say what became of their trials.

        A worker whose lease expired becomes `offline`, and so does one not heard of for `worker_silence`.
        Local jobs whose process has ended become `paused`, for it cannot end them and another may resume
        them; where that cannot be known, since it ran elsewhere, once it has written nothing for
        `local_silence`. To be called every few seconds.
        """

    def open_work(self) -> list[OpenWork]:
        """What kinds of trials wait for a worker: to be asked before `claim`, which writes."""

    def clear_crashes(self, candidate_key: str, hardware: str) -> None:
        """Forget that a candidate crashed this kind of hardware, so that later jobs may run it again."""


class FleetStore(WorkerStore, WorkerControlStore, LeaseStore, Protocol):
    """Workers and leases."""
