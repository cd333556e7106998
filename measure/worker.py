"""The worker's loop: lease, start, measure, settle, until it is told to stop."""

from __future__ import annotations

import contextlib
import signal
import sys
import threading
import traceback
from collections.abc import Callable, Iterator
from enum import IntEnum
from typing import Protocol, TypeVar

from .errors import MeasureError
from .messages import (
    Failure,
    JobSource,
    Lease,
    LeaseLost,
    LeaseUpdate,
    MeasureInput,
    MeasureResult,
    NotATilewright,
    SourceError,
    SourceRefused,
    SourceUnreachable,
    Superseded,
    Unauthorized,
    VersionRefused,
    WorkerHello,
)
from .patience import Patience, Persistence
from .renewal import Renewal
from .words import clip, duration_of, tail_of

T = TypeVar("T")

DEFAULT_BATCH = 16
# Between two empty answers, for a service that does not make the worker wait.
_IDLE_SECONDS = 0.2


class Exit(IntEnum):
    """The exit codes of a worker."""

    DRAINED = 0
    FAILED = 1
    UNREACHABLE = 2
    UNAUTHORIZED = 3
    SUPERSEDED = 5
    VERSION_REFUSED = 7


_EXITS: tuple[tuple[type[Exception], Exit], ...] = (
    (NotATilewright, Exit.UNREACHABLE),
    (SourceUnreachable, Exit.UNREACHABLE),
    (Unauthorized, Exit.UNAUTHORIZED),
    (Superseded, Exit.SUPERSEDED),
    (VersionRefused, Exit.VERSION_REFUSED),
    (MeasureError, Exit.FAILED),
)
_FATAL = tuple(kind for kind, _ in _EXITS)


class Measures(Protocol):
    """What a worker needs of a Runner."""

    def measure(self, item: MeasureInput) -> MeasureResult: ...

    def cancel(self, item: str | None = None) -> None: ...


def to_stderr(line: str) -> None:
    print(line, file=sys.stderr, flush=True)


def run(
    source: JobSource,
    runner: Measures,
    hello: WorkerHello,
    *,
    batch: int = DEFAULT_BATCH,
    patience: Patience | None = None,
    say: Callable[[str], None] = to_stderr,
) -> Exit:
    """Works until drained; the exit code. `say` takes lines for a person.

    In the main thread SIGTERM and SIGINT drain: the current item is finished and settled, the rest of the
    lease released. A second one gives up the current item as well.
    """
    worker = Worker(source, runner, hello, batch, Persistence(patience or Patience(), say))
    with _signals(worker.interrupt):
        return worker.run()


class _Woken(BaseException):
    """Raised out of a long poll by a signal handler; not an Exception, so that no client takes it for one."""


class Worker:
    """One worker's state. `run` is for one thread; `interrupt` for its signal handlers, or others."""

    def __init__(
        self, source: JobSource, runner: Measures, hello: WorkerHello, batch: int, persistence: Persistence
    ) -> None:
        self._source = source
        self._runner = runner
        self._hello = hello
        self._batch = batch
        self._persistence = persistence
        self._say = persistence.say
        self._wait_seconds = 0.0
        self._draining = False
        self._stopped = False
        self._waiting = False
        # Of the present lease; written by the thread that renews it, too.
        self._cancelled: set[str] = set()
        self._error: SourceError | None = None

    def run(self) -> Exit:
        """Never raises for what a service or a candidate does."""
        patience = self._persistence.patience
        attached = False
        troubles = 0
        while not self._draining and troubles < patience.troubles:
            try:
                if not attached:
                    self._attach(patience.outage if troubles else patience.attach)
                    attached = True
                if lease := self._lease():
                    self._work(lease)
                troubles = 0
            except _FATAL as error:
                self._say(str(error))
                return next(code for kind, code in _EXITS if isinstance(error, kind))
            except Exception as error:  # the worker's edge: recorded, and not the end of it
                self._say(str(error) if isinstance(error, SourceError) else traceback.format_exc())
                troubles += 1
                attached = False  # the service may have forgotten this worker
                self._persistence.pause(patience.longest_pause, self._is_draining)
        if not self._draining:
            self._say(f"giving up after {troubles} unexpected errors in a row")
            return Exit.FAILED
        self._say("drained")
        return Exit.DRAINED

    def interrupt(self) -> None:
        """Drains; the second time gives up the current item too. Prints nothing: it may interrupt a print."""
        if self._draining:
            self._stopped = True
            self._runner.cancel()
        self._draining = True
        if self._waiting:
            raise _Woken

    def _attach(self, seconds: float) -> None:
        registration = self._idly(lambda: self._source.register(self._hello), seconds)
        if registration is not None:
            self._wait_seconds = registration.wait_seconds
            self._say(f"attached as {registration.worker}")

    def _lease(self) -> Lease | None:
        lease = self._idly(
            lambda: self._source.lease(self._batch, self._wait_seconds), self._persistence.patience.outage
        )
        if lease is None:
            self._persistence.pause(_IDLE_SECONDS, self._is_draining)
        return lease

    def _idly(self, action: Callable[[], T], seconds: float) -> T | None:
        """What `action` gives, made again during an outage; None as soon as this worker is to drain, which
        also interrupts `action`: nothing is in hand that could be lost."""
        try:
            try:
                self._waiting = True
                return None if self._draining else self._persistence.call(action, seconds, self._is_draining)
            finally:
                self._waiting = False
        except _Woken:
            return None
        except SourceUnreachable:
            if self._draining:
                return None
            raise

    def _work(self, lease: Lease) -> None:
        self._cancelled, self._error = set(), None
        held = True
        try:
            with Renewal(self._source, lease, self._hear, self._fail):
                held = not self._measure_all(lease)
            # A lease that is over once all is settled is not lost.
            if self._error is not None and not isinstance(self._error, LeaseLost):
                raise self._error
        except LeaseLost as error:
            held = False
            self._say(f"lease {lease.lease} is lost: {error}")
        finally:
            if held:
                self._release(lease)

    def _measure_all(self, lease: Lease) -> bool:
        """Whether nothing is left of the lease."""
        for item in lease.items:
            if self._error is not None:
                raise self._error
            if self._draining:
                return False
            if item.item not in self._cancelled:
                self._measure_one(lease, item)
        return not self._stopped

    def _measure_one(self, lease: Lease, item: MeasureInput) -> None:
        outage = self._persistence.patience.outage
        try:
            self._persistence.call(
                lambda: self._source.start(lease.lease, item.item, item.attempt), outage, self._is_stopped
            )
            result = self._measured(item)
            self._say(f"{item.item}: {_summary(result)}")
            if result.failure is not None and result.failure.kind == "cancelled":
                return  # by the service, which knows, or by a signal, and then the lease is released
            self._hear(
                self._persistence.call(
                    lambda: self._source.settle(lease.lease, (result,)), outage, self._is_stopped
                )
            )
        except SourceRefused as error:
            self._say(f"{item.item}: refused: {error}")

    def _measured(self, item: MeasureInput) -> MeasureResult:
        try:
            return self._runner.measure(item)
        except MeasureError:
            raise
        except Exception as error:  # a bug here must not stop the job that waits for this item
            words = traceback.format_exc()
            self._say(words)
            message = clip(f"the worker failed: {type(error).__name__}: {error}")
            return MeasureResult.failed(item, Failure("worker_lost", message, last_words=tail_of(words)))

    def _release(self, lease: Lease) -> None:
        try:
            self._source.release(lease.lease)
        except SourceError as error:
            self._say(f"lease {lease.lease} could not be released and will expire: {error}")

    def _hear(self, update: LeaseUpdate) -> None:
        self._cancelled.update(update.cancelled)
        self._draining = self._draining or update.drain
        for item in update.cancelled:
            self._runner.cancel(item)

    def _fail(self, error: SourceError) -> None:
        """Renewing is over. A lost lease lets the current item end: its result is offered all the same."""
        self._error = error
        if isinstance(error, _FATAL):
            self._runner.cancel()

    def _is_draining(self) -> bool:
        return self._draining

    def _is_stopped(self) -> bool:
        return self._stopped


def _summary(result: MeasureResult) -> str:
    if result.failure is not None:
        return f"{result.failure.kind}: {result.failure.message}"
    assert result.seconds is not None
    return duration_of(result.seconds) + (" or more" if result.censored else "")


@contextlib.contextmanager
def _signals(interrupt: Callable[[], None]) -> Iterator[None]:
    """Lets SIGTERM and SIGINT call `interrupt`, where this thread may say so."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    numbers = (signal.SIGTERM, signal.SIGINT)
    before = [signal.signal(number, lambda *_: interrupt()) for number in numbers]
    try:
        yield
    finally:
        for number, handler in zip(numbers, before, strict=True):
            signal.signal(number, handler)
