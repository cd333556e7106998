"""Whether there may be work for a worker: one cheap read shared by all lease calls that wait."""

from __future__ import annotations

import asyncio
import time

from starlette.concurrency import run_in_threadpool

from ..db.fleet_records import OpenWork, Worker, labels_of
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
        self._open: list[OpenWork] = []

    async def may_have_work(self, worker: Worker) -> bool:
        """Whether trials that this worker may measure wait, or wait to be timed once more."""
        async with self._lock:
            if time.monotonic() - self._read_at > _FRESH:
                self._open = await run_in_threadpool(self._store.open_work)
                self._read_at = time.monotonic()
            kinds = self._open
        labels = labels_of(worker.labels)
        return any(work.fits(worker.hardware, worker.pool, labels) for work in kinds)
