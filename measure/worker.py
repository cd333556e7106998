"""The worker's loop: lease, start, measure, settle, until it is told to stop."""

from __future__ import annotations

import math
import sys
import time
import traceback
from collections.abc import Callable
from dataclasses import replace
from typing import TypeVar

from .checkup import Checkup
from .exits import FATAL, Exit, exit_of
from .golden import golden_items
from .health import explain
from .health_messages import HealthReport
from .interrupts import interrupting
from .measuring import Measures, Measuring, summary
from .messages import (
    Drain,
    JobSource,
    Lease,
    LeaseLost,
    LeaseUpdate,
    MeasureInput,
    MeasureResult,
    SourceError,
    SourceRefused,
    SourceUnreachable,
    WorkerHello,
)
from .patience import Patience, Persistence
from .renewal import Renewal

__all__ = ["DEFAULT_BATCH", "Exit", "Measures", "Worker", "run", "to_stderr"]

T = TypeVar("T")

DEFAULT_BATCH = 16
# A signalled worker offers a result for so long, or until its lease expires, to a service out of reach.
_LAST_CHANCE_SECONDS = 30.0
# Between two empty answers, for a service that does not make the worker wait.
_IDLE_SECONDS = 0.2


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
    lease released. A second one gives up the current item as well. Where the service is out of reach then,
    the result is offered until the lease expires, for 30 s at most.
    """
    checkup = Checkup(golden_items, runner.measure, time.monotonic)
    worker = Worker(source, runner, hello, batch, Persistence(patience or Patience(), say), checkup)
    with interrupting(worker.interrupt):
        return worker.run()


class _Woken(BaseException):
    """Raised out of a long poll by a signal handler; not an Exception, so that no client takes it for one."""


class Worker:
    """One worker's state. `run` is for one thread; `interrupt` for its signal handlers, or others."""

    def __init__(
        self,
        source: JobSource,
        runner: Measures,
        hello: WorkerHello,
        batch: int,
        persistence: Persistence,
        checkup: Checkup,
    ) -> None:
        self._source = source
        self._runner = runner
        self._hello = hello
        self._batch = batch
        self._persistence = persistence
        self._checkup = checkup
        self._measuring = Measuring(runner, persistence.say)
        self._say = persistence.say
        self._wait_seconds = 0.0
        self._draining = False
        self._stopped = False
        self._waiting = False
        self._signalled_at = math.inf
        # Of the present lease; written by the thread that renews it, too.
        self._cancelled: set[str] = set()
        self._error: SourceError | None = None
        self._expires_at = math.inf

    def run(self) -> Exit:
        """Never raises for what a service or a candidate does."""
        patience = self._persistence.patience
        attached = False
        troubles = 0
        while not self._draining and troubles < patience.troubles:
            try:
                if not attached:
                    attached = self._attach(patience.outage if troubles else patience.attach)
                if self._checkup.is_overdue():
                    self._report(self._checkup.check("quarantined"))
                if lease := self._lease():
                    self._work(lease)
                troubles = 0
            except FATAL as error:
                self._say(str(error))
                return exit_of(error)
            except Exception as error:  # the worker's edge: recorded, and not the end of it
                self._say(str(error) if isinstance(error, SourceError) else traceback.format_exc())
                troubles += 1
                attached = False  # the service may have forgotten this worker
                self._persistence.pause(patience.longest_pause, self._is_draining)
        if not self._draining:
            self._say(f"giving up after {troubles} unexpected errors in a row")
            return Exit.FAILED
        if attached:
            self._leave()
        self._say("drained")
        return Exit.DRAINED

    def interrupt(self) -> None:
        """Drains; the second time gives up the current item too. Prints nothing: it may interrupt a print."""
        if self._draining:
            self._stopped = True
            self._runner.cancel()
        self._draining = True
        self._signalled_at = min(self._signalled_at, self._persistence.clock())
        if self._waiting:
            raise _Woken

    def _attach(self, seconds: float) -> bool:
        """Whether it is attached; not if it is to drain before that."""
        hello = replace(self._hello, health=self._checkup.last)
        registration = self._idly(lambda: self._source.register(hello), seconds)
        if registration is None:
            return False
        self._wait_seconds = registration.wait_seconds
        self._checkup.plan = registration.health
        self._say(f"attached as {registration.worker}")
        if self._checkup.is_wanted and not self._checkup.has_norm:
            self._report(self._checkup.attach())
        return True

    def _report(self, report: HealthReport | None) -> None:
        """Tells what a check came to; nothing of one that was cut short."""
        if report is None:
            return
        if words := explain(report):
            self._say(words)
        update = self._idly(lambda: self._source.health(report), self._persistence.patience.outage)
        if update is not None:
            self._checkup.heard(update.state)
            if update.state == "quarantined":
                self._say(f"in quarantine, until it is released: {update.reason}")

    def _lease(self) -> Lease | None:
        try:
            lease = self._idly(
                lambda: self._source.lease(self._batch, self._wait_seconds),
                self._persistence.patience.outage,
            )
        except Drain:
            self._draining = True
            return None
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
        self._measuring.begin_batch()
        self._expires_at = self._persistence.clock() + lease.ttl_seconds
        held = True
        try:
            with Renewal(self._source, lease, self._hear, self._fail):
                if self._checkup.is_quarantined:  # it has work again: it was released, as it is now
                    self._report(self._checkup.attach())
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
        for number, item in enumerate(lease.items):
            if self._error is not None:
                raise self._error
            if self._draining:
                return False
            if self._checkup.is_quarantined:
                return False
            if item.item not in self._cancelled and not self._measure_one(lease, item, number + 1):
                return False
            if occasion := self._checkup.due():
                self._report(self._checkup.check(occasion))
        return not self._stopped

    def _measure_one(self, lease: Lease, item: MeasureInput, after: int) -> bool:
        """False where it was not started, as this worker is to drain. What comes next is built meanwhile: the
        first that is still wanted of the items from number `after`."""
        try:
            if not self._start(lease, item):
                return False
            wanted = (other for other in lease.items[after:] if other.item not in self._cancelled)
            result = self._measuring.measure(item, next(wanted, None))
            self._checkup.note(result)
            self._say(f"{item.item}: {summary(result)}")
            # Cancelled by the service, which knows, or by a signal, and then the lease is released.
            if result.failure is None or result.failure.kind != "cancelled":
                self._settle(lease, result)
        except SourceRefused as error:
            self._say(f"{item.item}: refused: {error}")
        return True

    def _start(self, lease: Lease, item: MeasureInput) -> bool:
        """Whether the service was told; a worker that is to drain does not wait for one out of reach."""
        try:
            self._persistence.call(
                lambda: self._source.start(lease.lease, item.item, item.attempt),
                self._persistence.patience.outage,
                self._is_draining,
            )
        except SourceUnreachable:
            if self._draining:
                return False
            raise
        return True

    def _settle(self, lease: Lease, result: MeasureResult) -> None:
        try:
            self._hear(
                self._persistence.call(
                    lambda: self._source.settle(lease.lease, (result,)),
                    self._persistence.patience.outage,
                    self._is_hopeless,
                )
            )
        except SourceUnreachable:
            self._say(f"the result of {result.item} was not delivered: {summary(result)}")
            raise

    def _release(self, lease: Lease) -> None:
        try:
            self._source.release(lease.lease)
        except SourceError as error:
            self._say(f"lease {lease.lease} could not be released and will expire: {error}")

    def _leave(self) -> None:
        """So that the service need not wait for this worker's silence."""
        leave: Callable[[], None] | None = getattr(self._source, "leave", None)
        if leave is None:
            return  # a source from before there was such a call
        try:
            leave()
        except SourceError as error:
            self._say(f"the service was not told that this worker left: {error}")

    def _hear(self, update: LeaseUpdate) -> None:
        self._cancelled.update(update.cancelled)
        self._expires_at = self._persistence.clock() + update.ttl_seconds
        self._draining = self._draining or update.drain
        for item in update.cancelled:
            self._runner.cancel(item)

    def _fail(self, error: SourceError) -> None:
        """Renewing is over. A lost lease lets the current item end: its result is offered all the same."""
        self._error = error
        if isinstance(error, FATAL):
            self._runner.cancel()

    def _is_draining(self) -> bool:
        return self._draining

    def _is_hopeless(self) -> bool:
        """Whether a result is not offered to a service out of reach any longer."""
        last_chance = min(
            self._signalled_at + _LAST_CHANCE_SECONDS, max(self._signalled_at, self._expires_at)
        )
        return self._stopped or self._persistence.clock() >= last_chance
