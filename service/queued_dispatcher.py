"""Searches as tasks of a queue in PostgreSQL, which runners on any machine take up."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Coroutine, Iterable, Mapping
from concurrent.futures import TimeoutError as NotInTime
from typing import Any, TypeVar

import psycopg
import psycopg_pool
from procrastinate import App
from procrastinate.exceptions import AlreadyEnqueued, ProcrastinateException
from procrastinate.jobs import Job as Task
from procrastinate.jobs import Status

from ..db.errors import StoreUnavailable
from ..db.store import Store
from .dispatch import Dispatched
from .search_ends import Knew, report_end
from .search_queue import RUN_SEARCH, SEARCHES

QUEUE_ERRORS = (ProcrastinateException, psycopg.Error, psycopg_pool.PoolTimeout, OSError)
"""What the library raises where the database is away."""

_ANSWER_SECONDS = 20.0
_UNFINISHED = (Status.TODO.value, Status.DOING.value)
T = TypeVar("T")


class QueuedDispatcher:
    """A Dispatcher over a queue that is open on the event loop `loop`, which runs in another thread.

    A runner that gave no sign of life for `silence` seconds is lost, and so are its searches. One search
    waits in the queue at a time: the others keep their place in the store, where their order can change.
    """

    def __init__(self, store: Store, queue: App, loop: asyncio.AbstractEventLoop, silence: float) -> None:
        self._store = store
        self._queue = queue
        self._loop = loop
        self._silence = silence
        self._tasks: dict[str, Task] = {}
        self._seen: dict[int, float] = {}

    def full(self) -> str | None:
        if any(task.status == Status.TODO.value for task in self._tasks.values()):
            return "waits for a search runner that has room"
        return None

    def dispatch(self, job: str, epoch: int) -> None:
        task = self._queue.configure_task(RUN_SEARCH, queue=SEARCHES, queueing_lock=job)
        try:
            number = self._wait(task.defer_async(job=job, epoch=epoch))
        except AlreadyEnqueued:
            # A search under an older epoch that nobody took up yet: it would end as soon as it began.
            self._drop(t for t in self._read() if t.status == Status.TODO.value and _job_of(t) == job)
            number = self._wait(task.defer_async(job=job, epoch=epoch))
        self._tasks[job] = Task(
            id=number, status=Status.TODO.value, queue=SEARCHES, lock=None, queueing_lock=job,
            task_name=RUN_SEARCH, task_kwargs={"job": job, "epoch": epoch},
        )  # fmt: skip

    def searches(self) -> Mapping[str, Dispatched]:
        for lost in self._wait(
            self._queue.job_manager.get_stalled_jobs(queue=SEARCHES, seconds_since_heartbeat=self._silence)
        ):
            self._bury(lost)
        # The newest of a job last, so that it is the one that counts.
        tasks = sorted(self._read(), key=_epoch_of)
        self._tasks = {_job_of(task): task for task in tasks}
        doing = {task.id for task in tasks if task.status == Status.DOING.value}
        now = time.monotonic()
        self._seen = {number: self._seen.get(number, now) for number in doing if number is not None}
        return {job: Dispatched(_epoch_of(task), self._age(task, now)) for job, task in self._tasks.items()}

    def withdraw(self, job: str) -> None:
        task = self._tasks.get(job)
        if task is not None:
            self._drop([task])

    def problem(self) -> str | None:
        return None

    def close(self) -> None:
        """What this process runs is ended by its runner."""

    def _read(self) -> list[Task]:
        tasks = self._wait(self._queue.job_manager.list_jobs_async(queue=SEARCHES, task=RUN_SEARCH))
        return [task for task in tasks if task.status in _UNFINISHED]

    def _age(self, task: Task, now: float) -> float | None:
        """Since this process first saw it at work, which may be later than it began, but not earlier."""
        return None if task.id not in self._seen else now - self._seen[task.id]

    def _drop(self, tasks: Iterable[Task]) -> None:
        for task in tasks:
            assert task.id is not None
            manager = self._queue.job_manager
            self._wait(manager.cancel_job_by_id_async(task.id, abort=True, delete_job=True))

    def _bury(self, task: Task) -> None:
        assert task.id is not None
        job = _job_of(task)
        knew = Knew.of(self._store.job(job))
        epoch = _epoch_of(task)
        report_end(self._store, job, epoch, knew, None, "the runner of its search was lost")
        manager = self._queue.job_manager
        self._wait(manager.finish_job_by_id_async(task.id, Status.FAILED, delete_job=True))

    def _wait(self, call: Coroutine[Any, Any, T]) -> T:
        future = asyncio.run_coroutine_threadsafe(call, self._loop)
        try:
            return future.result(_ANSWER_SECONDS)
        except AlreadyEnqueued:
            raise
        except NotInTime:
            future.cancel()
            raise StoreUnavailable(
                f"the queue of searches has not answered for {_ANSWER_SECONDS:g} s"
            ) from None
        except QUEUE_ERRORS as error:
            raise StoreUnavailable(f"the queue of searches: {_words(error)}") from error


def _job_of(task: Task) -> str:
    return str(task.task_kwargs["job"])


def _epoch_of(task: Task) -> int:
    return int(str(task.task_kwargs["epoch"]))


def _words(error: BaseException) -> str:
    """The driver's words, which the library hides behind its own."""
    said = str(error.__cause__ or error).strip()
    return said.splitlines()[0] if said else type(error).__name__
