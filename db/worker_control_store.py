"""The part of a store's contract that people use: what they may do to workers.

    | state                | pause  | resume    | drain     | quarantine | release   | remove    |
    |----------------------|--------|-----------|-----------|------------|-----------|-----------|
    | registering, online  | paused | no effect | draining  | quaranti…  | no effect | retired   |
    | draining             | paused | online    | no effect | quaranti…  | no effect | retired   |
    | paused               | paused | online    | draining  | quaranti…  | Conflict  | retired   |
    | quarantined          | Confl… | Conflict  | Conflict  | quaranti…  | online    | retired   |
    | offline              | paused | no effect | no effect | quaranti…  | no effect | retired   |
    | retired              | Conflict                                   | Conflict  | no effect |

A worker that would be `online` but is not attached, or was not heard of for long, is `offline` instead. Its
`reason` says what was done, by whom and why; `by` names who does it, such as `token ops`.
"""

from typing import Protocol

from .fleet_records import Crash, Doubt, Worker, WorkerChange


class WorkerControlStore(Protocol):
    """Each verb may be repeated. UnknownWorker where no worker has this id, Conflict as the table says."""

    def find_worker(self, name: str) -> Worker:
        """The worker with this name or id, retired ones included. UnknownWorker."""

    def pause_worker(
        self, worker_id: str, by: str, note: str = "", seconds: float | None = None
    ) -> WorkerChange:
        """No leases for it from now on; of the one it holds, the trial that runs takes its result and the
        others go back. It ends after `seconds`, or by `resume_worker`."""

    def resume_worker(self, worker_id: str, by: str) -> WorkerChange:
        """Let a paused or draining worker measure again."""

    def drain_worker(self, worker_id: str, by: str, note: str = "") -> WorkerChange:
        """Have the worker finish the trial that runs, give the others back, and end: it becomes offline."""

    def quarantine_worker(
        self, worker_id: str, by: str, note: str, since: float | None = None
    ) -> WorkerChange:
        """No leases for it, and nothing it settled from `since` is believed: no such result is best-known or
        becomes it, the next best is served, and the evidence is kept. `since` None: from its last
        healthy check, or from when it attached where there was none.

        Quarantined again, the earlier `since` counts.
        """

    def release_worker(self, worker_id: str, by: str, restore_results: bool = False) -> WorkerChange:
        """Let a quarantined worker measure again. What it settled before stays unbelieved, unless
        `restore_results` takes all doubts of it back."""

    def remove_worker(
        self, worker_id: str, by: str, note: str = "", discard_results: bool = False
    ) -> WorkerChange:
        """Retire it: its lease ends, and its name attaches no more. `discard_results`: nothing that it ever
        settled is believed."""

    def doubts(self, worker_id: str | None = None) -> list[Doubt]:
        """All doubts, or those of one worker, the oldest first."""

    def crashes(self, hardware: str | None = None, limit: int = 500) -> list[Crash]:
        """Candidates that workers were lost with, the newest loss first."""
