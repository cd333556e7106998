"""Whose turn it is to ask for work, of the lease calls that wait: one cheap read is shared by all of them."""

from __future__ import annotations

import asyncio
import threading

from starlette.concurrency import run_in_threadpool

from ..db.errors import StoreError
from ..db.fleet_records import OpenWork, Worker, labels_of
from ..db.store import Store

_LOOK_EVERY = 0.05
_CLAIMS_AT_ONCE = 4
"""Of a process: a thousand workers that ask at once must not keep those from the database that renew."""
_AT_ONCE = 8
"""So many of those who wait are told of work at a time: claiming is a write, and a thousand workers that are
told of one candidate would all try."""


class WorkWatch:
    """Looks at the store every 50 ms while anybody waits, whatever their number, and lets those who have
    waited longest try first."""

    def __init__(self, store: Store, stopping: threading.Event) -> None:
        self._store = store
        self._stopping = stopping
        self._waiting: dict[asyncio.Future[bool], Worker] = {}
        self._task: asyncio.Task[None] | None = None
        self._seen: list[OpenWork] = []
        self.claiming = asyncio.Semaphore(_CLAIMS_AT_ONCE)

    def saw_work(self, worker: Worker) -> bool:
        """Whether there was work for this worker when anybody looked last."""
        return self._fits(worker, self._seen)

    async def turn(self, worker: Worker, seconds: float) -> bool:
        """Wait until there may be work for this worker, and it is its turn to claim; False after `seconds`,
        and where the server stops. Raises StoreError."""
        mine: asyncio.Future[bool] = asyncio.get_running_loop().create_future()
        self._waiting[mine] = worker
        if self._task is None or self._task.done():
            self._task = asyncio.create_task(self._watch(), name="work watch")
        try:
            return await asyncio.wait_for(mine, seconds)
        except TimeoutError:
            return False
        finally:
            self._waiting.pop(mine, None)

    async def _watch(self) -> None:
        while self._waiting and not self._stopping.is_set():
            try:
                self._seen = await run_in_threadpool(self._store.open_work)
                self._tell()
            except StoreError as error:
                for waiting in self._open_ones():
                    waiting.set_exception(error)
                return
            await asyncio.sleep(_LOOK_EVERY)
        for waiting in self._open_ones():
            waiting.set_result(False)

    def _tell(self) -> None:
        told = 0
        for waiting in self._open_ones() if self._seen else ():
            if self._fits(self._waiting[waiting], self._seen):
                waiting.set_result(True)
                told += 1
                if told == _AT_ONCE:
                    return

    @staticmethod
    def _fits(worker: Worker, work: list[OpenWork]) -> bool:
        labels = labels_of(worker.labels)
        return any(kind.fits(worker.hardware, worker.pool, labels) for kind in work)

    def _open_ones(self) -> list[asyncio.Future[bool]]:
        return [waiting for waiting in self._waiting if not waiting.done()]
