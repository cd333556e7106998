"""A builder's loop: claim, make, hand in, until it is told to stop."""

from __future__ import annotations

import hashlib
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Protocol

from ..exits import FATAL, Exit, exit_of
from ..interrupts import interrupting
from ..messages import Failure, LeaseLost, SourceError, SourceRefused, SourceUnreachable
from ..patience import Patience, Persistence
from ..words import duration_of
from ..worker import to_stderr
from .folders import folder_of
from .messages import BuildAnswer, BuildInput, BuildLease, BuildSource

__all__ = ["Makes", "run"]

_BATCH = 4
_WAIT_SECONDS = 20.0
# Between two empty answers, for a service that does not make the builder wait.
_IDLE_SECONDS = 0.2


class Makes(Protocol):
    """What a builder needs of a Workbench."""

    def make(self, item: BuildInput, path: Path, most_bytes: int) -> tuple[Failure | None, float]: ...

    def cancel(self) -> None: ...


def run(
    source: BuildSource,
    workbench: Makes,
    *,
    patience: Patience | None = None,
    say: Callable[[str], None] = to_stderr,
) -> Exit:
    """Builds until drained; the exit code, one of a worker's.

    In the main thread SIGTERM and SIGINT drain: what is being made is finished and handed in, the rest given
    back. A second one gives that up as well.
    """
    builder = _Builder(source, workbench, Persistence(patience or Patience(), say))
    with interrupting(builder.interrupt), folder_of("tilewright-build-") as folder:
        return builder.run(folder / "artifact")


class _Woken(BaseException):
    """Raised out of a long poll by a signal handler."""


class _Builder:
    def __init__(self, source: BuildSource, workbench: Makes, persistence: Persistence) -> None:
        self._source = source
        self._workbench = workbench
        self._persistence = persistence
        self._say = persistence.say
        self._draining = False
        self._waiting = False

    def run(self, path: Path) -> Exit:
        patience = self._persistence.patience
        reached = False
        try:
            while not self._draining:
                lease = self._claim(patience.outage if reached else patience.attach)
                reached = True
                if lease is None:
                    self._persistence.pause(_IDLE_SECONDS, self._is_draining)
                else:
                    self._work(lease, path)
        except FATAL as error:
            self._say(str(error))
            return exit_of(error)
        self._say("drained")
        return Exit.DRAINED

    def interrupt(self) -> None:
        if self._draining:
            self._workbench.cancel()
        self._draining = True
        if self._waiting:
            raise _Woken

    def _is_draining(self) -> bool:
        return self._draining

    def _claim(self, seconds: float) -> BuildLease | None:
        try:
            try:
                self._waiting = True
                if self._draining:
                    return None
                return self._persistence.call(
                    lambda: self._source.claim(_BATCH, _WAIT_SECONDS), seconds, self._is_draining
                )
            finally:
                self._waiting = False
        except _Woken:
            return None
        except SourceUnreachable:
            if self._draining:
                return None
            raise

    def _work(self, lease: BuildLease, path: Path) -> None:
        left = [(item.build, item.attempt) for item in lease.items]
        over = threading.Event()
        renewing = threading.Thread(target=self._renew, args=(lease, left, over), daemon=True, name="renew")
        renewing.start()
        try:
            for item in lease.items:
                if self._draining:
                    break
                self._make(item, path, lease.most_bytes)
                left.remove((item.build, item.attempt))
        finally:
            over.set()
            renewing.join()
            if left:
                self._release()

    def _renew(self, lease: BuildLease, left: list[tuple[str, int]], over: threading.Event) -> None:
        while not over.wait(lease.renew_seconds):
            try:
                self._source.renew(list(left))
            except SourceError as error:  # whoever hands in the result will hear it again
                self._say(f"builds could not be renewed: {error}")

    def _make(self, item: BuildInput, path: Path, most_bytes: int) -> None:
        failure, seconds = self._workbench.make(item, path, most_bytes)
        answer = BuildAnswer(item.build, item.attempt, failure=failure, build_seconds=seconds)
        try:
            if failure is None:
                sha256 = _sha256(path)
                self._call(lambda: self._source.put(sha256, path))
                answer = BuildAnswer(item.build, item.attempt, sha256, build_seconds=seconds)
            self._call(lambda: self._source.settle(answer))
            what = f"{failure.kind}: {failure.message}" if failure else f"built in {duration_of(seconds)}"
            self._say(f"{item.build}, {item.kind}: {what}")
        except (LeaseLost, SourceRefused) as error:
            self._say(f"{item.build}: refused: {error}")
        finally:
            path.unlink(missing_ok=True)

    def _call(self, action: Callable[[], None]) -> None:
        self._persistence.call(action, self._persistence.patience.outage, self._is_draining)

    def _release(self) -> None:
        try:
            self._source.release()
        except SourceError as error:
            self._say(f"builds could not be released and will expire: {error}")


def _sha256(path: Path) -> str:
    digest = hashlib.sha256()
    with path.open("rb") as file:
        while block := file.read(1 << 20):
            digest.update(block)
    return digest.hexdigest()
