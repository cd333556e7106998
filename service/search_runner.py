"""A search runner: takes searches from the queue in PostgreSQL and runs each in a child process that can be
killed; one of the runners is the shepherd of them all, and sweeps.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import threading
from collections.abc import AsyncIterator

from procrastinate import App

from ..db.errors import NotFound, StoreError, StoreUnavailable
from ..db.queue import prepare_queue
from ..db.store import Store
from ..db.words import FINAL_JOB_STATES
from .queued_dispatcher import QUEUE_ERRORS, QueuedDispatcher
from .retention import Retention
from .search_ends import Knew, report_end
from .search_process import WAITS, Command, SearchProcess
from .search_queue import HOUSEKEEPING, RETENTION, RUN_SEARCH, SEARCHES, SWEEP, queue_of
from .settings import Settings
from .shepherd import Shepherd
from .workloads import WorkloadParser

log = logging.getLogger("tilewright.search")

_LOOK_EVERY = 0.1
_BACK_OFF = 1.0
_EVERY_FIVE_SECONDS = "* * * * * */5"
_EVERY_HOUR = "17 * * * *"


class SearchRunner:
    """Runs up to `concurrency` searches of the database of `settings` at a time.

    `run` returns once `stop` was called, with its searches ended and nothing left: they go on elsewhere, from
    their stored trials. A database that is away for a while ends the searches, not the runner.
    """

    def __init__(
        self,
        store: Store,
        settings: Settings,
        parser: WorkloadParser,
        command: Command,
        concurrency: int,
        interval: float = 0.25,
        patience: float = 3.0,
    ) -> None:
        self._store = store
        self._settings = settings
        self._parser = parser
        self._command = command
        self._concurrency = concurrency
        self._interval = interval
        self._patience = patience
        self._stopping = threading.Event()
        self._shepherd: Shepherd | None = None
        self.crashed = False

    def wake(self) -> None:
        if self._shepherd is not None:
            self._shepherd.wake()

    def problem(self) -> str | None:
        if self._shepherd is None:
            return "the search runner has not started yet"
        return self._shepherd.problem()

    def stop(self) -> None:
        """From any thread or signal handler; may be repeated."""
        self._stopping.set()

    def run(self) -> int:
        """Until told to stop; the exit code: 0, or 1 when the shepherd crashed."""
        asyncio.run(self._run())
        return 1 if self.crashed else 0

    async def _run(self) -> None:
        while not self._stopping.is_set():
            try:
                await asyncio.to_thread(prepare_queue, self._settings.db)
                async with queue_of(self._settings.db).open_async() as queue:
                    self._add_tasks(queue)
                    async with self._shepherding(queue):
                        await self._work(queue)
            except (*QUEUE_ERRORS, StoreUnavailable) as error:
                log.warning("the queue of searches: %s", error.__cause__ or error)
                await self._pause(_BACK_OFF)

    async def _work(self, queue: App) -> None:
        """Take tasks until told to stop, or until the library gives up: it does where the database is away
        and where another runner took this one for lost."""
        silence = self._settings.runner_silence
        common = {
            "install_signal_handlers": False,
            "update_heartbeat_interval": silence / 5,
            "stalled_worker_timeout": silence,
            "shutdown_graceful_timeout": 0.0,
            "delete_jobs": "always",
            "fetch_job_polling_interval": 1.0,
            "abort_job_polling_interval": 1.0,
        }
        # Sweeps must not wait for a search to end.
        workers = [
            asyncio.create_task(queue.run_worker_async(queues=[name], concurrency=n, name=name, **common))  # type: ignore[arg-type]
            for name, n in ((SEARCHES, self._concurrency), (HOUSEKEEPING, 1))
        ]
        stop = asyncio.create_task(self._until_stopped())
        done, _ = await asyncio.wait([*workers, stop], return_when=asyncio.FIRST_COMPLETED)
        for task in (*workers, stop):
            task.cancel()
        await asyncio.gather(*workers, stop, return_exceptions=True)
        for task in done - {stop}:
            if (error := task.exception()) is not None:
                raise error
        if not self._stopping.is_set():
            log.warning("the queue of searches let go of this runner, which begins again")
            await self._pause(_BACK_OFF)

    @contextlib.asynccontextmanager
    async def _shepherding(self, queue: App) -> AsyncIterator[None]:
        dispatcher = QueuedDispatcher(
            self._store, queue, asyncio.get_running_loop(), self._settings.runner_silence
        )
        self._shepherd = shepherd = Shepherd(
            self._store,
            self._parser,
            dispatcher,
            leadership=self._store.leadership(self._settings.runner_silence),
            restarts=self._settings.search_restarts,
            interval=self._interval,
            patience=self._patience,
            sweeps=False,
            on_crash=self._stopping.set,
        )
        shepherd.start()
        try:
            yield
        finally:
            # In another thread: it may be waiting for this loop.
            await asyncio.to_thread(shepherd.stop)
            self.crashed = self.crashed or shepherd.crashed

    def _add_tasks(self, queue: App) -> None:
        @queue.task(name=RUN_SEARCH, queue=SEARCHES)
        async def run_search(job: str, epoch: int) -> None:
            await self._search(job, epoch)

        @queue.periodic(cron=_EVERY_FIVE_SECONDS)
        @queue.task(name=SWEEP, queue=HOUSEKEEPING, queueing_lock=SWEEP)
        async def sweep(timestamp: int) -> None:
            await asyncio.to_thread(self._sweep)

        @queue.periodic(cron=_EVERY_HOUR)
        @queue.task(name=RETENTION, queue=HOUSEKEEPING, queueing_lock=RETENTION)
        async def retention(timestamp: int) -> None:
            await asyncio.to_thread(Retention(self._store, self._settings.retention_days).prune)

        del run_search, sweep, retention

    async def _search(self, job: str, epoch: int) -> None:
        try:
            known = await asyncio.to_thread(self._store.job, job)
        except NotFound:
            return
        if known.state in FINAL_JOB_STATES or known.epoch != epoch:
            return
        # On this thread, which lives as long as the process: a child dies with the thread that began it.
        try:
            process = SearchProcess(*self._command(job, epoch))
        except OSError as error:
            await self._report(job, epoch, Knew.of(known), 1, f"it cannot be started: {error}")
            return
        log.info("job %s: search %d runs as process %d", job, epoch, process.pid)
        try:
            while (status := process.ended()) is None:
                await asyncio.sleep(_LOOK_EVERY)
        finally:
            await asyncio.to_thread(process.close)
        if status not in (0, WAITS):
            log.warning("job %s: search %d ended with %d: %s", job, epoch, status, process.last_line())
        await self._report(job, epoch, Knew.of(known), status, process.last_line())

    async def _report(self, job: str, epoch: int, knew: Knew, status: int, words: str) -> None:
        try:
            await asyncio.to_thread(report_end, self._store, job, epoch, knew, status, words)
        except StoreError as error:  # the search is begun again, and its end is told then
            log.warning("job %s: how its search ended is not stored: %s", job, error)

    def _sweep(self) -> None:
        try:
            for lost in self._store.sweep():
                log.warning("worker %s lost lease %s; blamed: %s", lost.worker, lost.lease, lost.blamed)
        except StoreError as error:
            log.warning("the sweep: %s", error)

    async def _until_stopped(self) -> None:
        while not self._stopping.is_set():
            await asyncio.sleep(_LOOK_EVERY)

    async def _pause(self, seconds: float) -> None:
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(self._until_stopped(), seconds)
