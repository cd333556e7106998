"""Several processes that serve the API on one socket, and the one that watches over them."""

from __future__ import annotations

import contextlib
import json
import logging
import os
import selectors
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Generator
from dataclasses import dataclass
from types import FrameType

from .settings import Settings

log = logging.getLogger("tilewright.serve")

_READY = b"ready\n"
_START_SECONDS = 60.0
_GRACE_SECONDS = 12.0
_LOOK_EVERY = 0.1
_LONG_LIFE = 30.0
_SHORT_LIVES = 5
"""So many in a row, and there is no use in starting another."""


@dataclass(slots=True)
class _Place:
    """One of the processes; `short_lives` of it ended in a row soon after they had begun, the last one by a
    signal if it `was_killed`."""

    number: int
    process: subprocess.Popen[bytes] | None = None
    begun: float = 0.0
    short_lives: int = 0
    again_at: float = 0.0
    was_killed: bool = False


class ApiProcesses:
    """`count` processes; one that ends is begun again, a little later each time that it lived shortly."""

    def __init__(self, settings: Settings, listener: socket.socket, count: int) -> None:
        self._settings = settings
        self._listener = listener
        self._places = [_Place(number) for number in range(count)]
        self._stopping = False
        self._wakeup_reader, self._wakeup_writer = os.pipe()

    def run(self, started: Callable[[], None]) -> bool:
        """Until SIGTERM or SIGINT, from the main thread; whether it gave up before.

        `started` is called once all of them take connections. On return none is left.
        """
        with self._signals():
            try:
                for place in self._places:
                    self._begin(place)
                if not self._all_ready():
                    return not self._stopping
                started()
                return self._watch()
            finally:
                self._end_all()
                os.close(self._wakeup_reader)
                os.close(self._wakeup_writer)

    def _begin(self, place: _Place) -> None:
        descriptor = self._listener.fileno()
        process = subprocess.Popen(
            (
                *(sys.executable, "-m", "tilewright.service.api_child"),
                *("--socket", str(descriptor), "--parent", str(os.getpid()), "--place", str(place.number)),
            ),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            pass_fds=(descriptor,),
            start_new_session=True,
        )
        assert process.stdin is not None
        # One that has died already says so by its status.
        with contextlib.suppress(BrokenPipeError), process.stdin as stdin:
            stdin.write(json.dumps(self._settings.model_dump(mode="json", exclude={"token"})).encode())
        place.process, place.begun = process, time.monotonic()

    def _all_ready(self) -> bool:
        """Once all take connections; False where it is told to stop before, or they do not get so far.

        One that is killed as it starts is begun again; one that ends by itself would end so again.
        """
        deadline = time.monotonic() + _START_SECONDS
        waiting = list(self._places)
        while waiting and not self._stopping and time.monotonic() < deadline:
            place = waiting[0]
            assert place.process is not None and place.process.stdout is not None
            with selectors.DefaultSelector() as selector:
                selector.register(place.process.stdout, selectors.EVENT_READ)
                if not selector.select(_LOOK_EVERY):
                    continue
            if place.process.stdout.readline() == _READY:
                waiting.pop(0)
                continue
            self._bury(place, place.process.wait(), time.monotonic())
            if not place.was_killed or place.short_lives >= _SHORT_LIVES:
                log.error("an API process ended before it took connections")
                return False
            self._begin(place)
        return not waiting and not self._stopping

    def _watch(self) -> bool:
        while not self._stopping:
            now = time.monotonic()
            for place in self._places:
                if place.process is None:
                    if now >= place.again_at:
                        self._begin(place)
                elif (status := place.process.poll()) is not None:
                    self._bury(place, status, now)
                    if place.short_lives >= _SHORT_LIVES:
                        log.error("API processes end as soon as they begin")
                        return True
            with selectors.DefaultSelector() as selector:
                selector.register(self._wakeup_reader, selectors.EVENT_READ)
                selector.select(_LOOK_EVERY)
        return False

    def _bury(self, place: _Place, status: int, now: float) -> None:
        assert place.process is not None
        how = f"by signal {-status}" if status < 0 else f"with status {status}"
        log.warning("API process %d ended %s", place.process.pid, how)
        _close_pipe(place.process)
        place.process, place.was_killed = None, status < 0
        place.short_lives = place.short_lives + 1 if now - place.begun < _LONG_LIFE else 1
        place.again_at = now + 0.1 * 2**place.short_lives

    def _end_all(self) -> None:
        processes = [place.process for place in self._places if place.process is not None]
        for process in processes:
            process.terminate()
        deadline = time.monotonic() + self._settings.drain_seconds + _GRACE_SECONDS
        for process in processes:
            try:
                process.wait(max(0.1, deadline - time.monotonic()))
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
            _close_pipe(process)

    def _stop(self, sig: int, frame: FrameType | None) -> None:
        self._stopping = True
        with contextlib.suppress(OSError):  # closed: it ends already
            os.write(self._wakeup_writer, b"x")

    @contextlib.contextmanager
    def _signals(self) -> Generator[None, None, None]:
        before = {sig: signal.signal(sig, self._stop) for sig in (signal.SIGINT, signal.SIGTERM)}
        try:
            yield
        finally:
            for sig, handler in before.items():
                signal.signal(sig, handler)


def _close_pipe(process: subprocess.Popen[bytes]) -> None:
    if process.stdout is not None:
        process.stdout.close()
