"""Whose turn it is to ask for work, of the lease calls that wait: one cheap read is shared by all of them."""

from __future__ import annotations

import asyncio
import contextlib
import threading
from collections.abc import AsyncIterator

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
        self._loop: asyncio.AbstractEventLoop | None = None
        self._claiming = asyncio.Semaphore(_CLAIMS_AT_ONCE)

    @contextlib.asynccontextmanager
    async def may_claim(self, seconds: float) -> AsyncIterator[bool]:
        """Within it one of the few who claim at a time, where one's turn came within `seconds`."""
        try:
            await asyncio.wait_for(self._claiming.acquire(), seconds)
        except TimeoutError:
            yield False
            return
        try:
            yield True
        finally:
            self._claiming.release()

    def saw_work(self, worker: Worker) -> bool:
        """Whether there was work for this worker when anybody looked last."""
        return self._fits(worker, self._seen)

    async def turn(self, worker: Worker, seconds: float) -> bool:
        """Wait until there may be work for this worker, and it is its turn to claim; False after `seconds`,
        where the worker is `let_go`, and where the server stops. Raises StoreError."""
        self._loop = asyncio.get_running_loop()
        mine: asyncio.Future[bool] = self._loop.create_future()
        self._waiting[mine] = worker
        if self._task is None or self._task.done():
            self._task = asyncio.create_task(self._watch(), name="work watch")
        try:
            return await asyncio.wait_for(mine, seconds)
        except TimeoutError:
            return False
        finally:
            self._waiting.pop(mine, None)

    def let_go(self, worker_id: str) -> None:
        """The worker's state has changed: if it waits, it waits no longer. From any thread."""
        if self._loop is not None:
            self._loop.call_soon_threadsafe(self._end_turns_of, worker_id)

    def _end_turns_of(self, worker_id: str) -> None:
        for waiting in self._open_ones():
            if self._waiting[waiting].id == worker_id:
                waiting.set_result(False)

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
