"""The part of a store's contract by which it forgets."""

from typing import Protocol

from .upkeep import Pruned

KEPT_JOBS = 4
KEPT_FASTEST = 16
KEPT_FIRST = 32
"""What a warm start looks at stays, with its feature rows: of each of the newest KEPT_JOBS jobs of a
workload, target and hardware, the KEPT_FASTEST fastest trials and the first KEPT_FIRST."""


class RetentionStore(Protocol):
    def prune(self, older_than: float, dry_run: bool = False) -> Pruned:
        """Forget trials and events of jobs that ended more than `older_than` seconds ago, and such jobs whole
        where nothing of them remains; with them attempts, retimings and leases. With `dry_run` nothing is
        forgotten, and the answer is what would be.

        What stays: every job that is not over; every trial that a row of another table refers to, such as a
        best-known schedule, a pin, a retirement or a warm start, with its attempts and retimings; and what a
        later search begins with (KEPT_JOBS). In small transactions, beside which the store is used; a
        call may be repeated.
        """
