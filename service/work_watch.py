"""Whether there may be work for a kind of hardware: one cheap read shared by all lease calls that wait."""

from __future__ import annotations

import asyncio
import time

from starlette.concurrency import run_in_threadpool

from ..db.store import Store

_FRESH = 0.05


class WorkWatch:
    """Answers from a read that is at most 50 ms old, so that a hundred waiting workers cost as much as one.

    Claiming is a write; a worker that waits must not take the database's write lock ten times a second.
    """

    def __init__(self, store: Store) -> None:
        self._store = store
        self._lock = asyncio.Lock()
        self._read_at = float("-inf")
        self._kinds: frozenset[str] = frozenset()

    async def may_have_work(self, hardware: str) -> bool:
        async with self._lock:
            if time.monotonic() - self._read_at > _FRESH:
                self._kinds = await run_in_threadpool(self._read)
                self._read_at = time.monotonic()
            return hardware in self._kinds

    def _read(self) -> frozenset[str]:
        return frozenset(
            job.hardware
            for job in self._store.unfinished_jobs("http")
            if job.hardware is not None and job.state in ("running", "waiting") and self._has_work(job.id)
        )

    def _has_work(self, job: str) -> bool:
        """Whether trials wait to be measured, or to be timed once more in the final rounds."""
        if self._store.trial_counts(job)["pending"] > 0:
            return True
        return any(retiming.outcome == "pending" for retiming in self._store.retimings(job))
