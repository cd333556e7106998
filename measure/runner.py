"""Measures candidates, one at a time, through a fork server that it owns."""

from __future__ import annotations

import contextlib
import os
import selectors
import signal
import socket
import subprocess
import sys
import threading
import time
from typing import Any, Self

from . import frames, zygote
from .errors import MeasureError
from .messages import Failure, MeasureInput, MeasureResult
from .program import PREPARE_SECONDS
from .words import Tail, clip

DEFAULT_PROGRAM = "tilewright.measure.candidate:Candidate"
# What the watcher may take beyond the limits of a candidate: forking, killing, reaping.
_SPARE_SECONDS = 5.0
_READ = 1 << 16
_LEAVE_SECONDS = 1.0


class Runner:
    """A context manager. `program` names what children run (measure.program); `start_seconds` bounds the
    start of the fork server and `prepare_seconds` what it does before it forks; a server that takes longer
    than these and the limits of a candidate is given up.

    Nothing that a candidate does raises here; MeasureError says that the fork server does not start. A server
    that died is replaced. Safe to use from several threads, which then wait for each other.
    """

    def __init__(
        self,
        program: str = DEFAULT_PROGRAM,
        *,
        start_seconds: float = 30.0,
        prepare_seconds: float = PREPARE_SECONDS,
    ) -> None:
        self._program = program
        self._start_seconds = start_seconds
        self._prepare_seconds = prepare_seconds
        self._server: ForkServer | None = None
        self._one_at_a_time = threading.Lock()
        # Reentrant: a signal handler may cancel while its own thread holds it.
        self._state = threading.RLock()
        self._current: str | None = None
        self._cancelled = False

    def __enter__(self) -> Self:
        with self._one_at_a_time:
            self._started()
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Ends the fork server; not for while another thread measures. A later `measure` starts another."""
        with self._state:
            server, self._server = self._server, None
        if server is not None:
            server.leave()
            server.close()

    def measure(self, item: MeasureInput, ahead: MeasureInput | None = None) -> MeasureResult:
        """The candidate's time or its failure. `ahead` is what will probably be measured next: it is built
        meanwhile where a processor is to spare for that, in a process of its own with limits of its own."""
        with self._one_at_a_time:
            begun = time.monotonic()
            with self._state:
                self._current, self._cancelled = item.item, False
            try:
                return self._ask(self._started(), item, ahead, begun)
            finally:
                with self._state:
                    self._current = None
                if self._cancelled:  # its server is dead or dying, even if a result came first
                    self.close()

    def cancel(self, item: str | None = None) -> None:
        """Ends the measurement of `item`, or whichever runs, at once; it then yields the failure `cancelled`.
        From any thread or signal handler; does nothing when that item is not being measured."""
        with self._state:
            if self._current is not None and item in (None, self._current):
                self._cancelled = True
                if self._server is not None:
                    self._server.kill()

    def _started(self) -> ForkServer:
        with self._state:
            if self._server is not None and not self._server.is_alive():
                self.close()
            if self._server is None:
                self._server = ForkServer(self._program, self._start_seconds)
            return self._server

    def _ask(
        self, server: ForkServer, item: MeasureInput, ahead: MeasureInput | None, begun: float
    ) -> MeasureResult:
        limits = item.limits
        patience = self._prepare_seconds + limits.build_seconds + limits.run_seconds + _SPARE_SECONDS
        reason = "nothing came from it"
        try:
            if self._cancelled:  # while the server started, so that there was none to kill
                server.kill()
            server.send({"item": item.to_json(), "ahead": None if ahead is None else ahead.to_json()})
            answer = server.receive(time.monotonic() + patience)
            if answer is not None:
                return MeasureResult.from_json(answer)
            reason = server.epitaph()
        except TimeoutError:
            reason = f"it did not answer within {patience:g} s"
        except OSError:
            reason = server.epitaph()
        elapsed = time.monotonic() - begun
        server.kill()
        self.close()
        if self._cancelled:
            failure = Failure("cancelled", "it was cancelled while it was measured", elapsed=elapsed)
        else:
            message = clip(f"the measuring process was lost: {reason}")
            failure = Failure("worker_lost", message, elapsed=elapsed, last_words=server.tail.text)
        return MeasureResult.failed(item, failure)


class ForkServer:
    """One fork server process and the sockets to it."""

    def __init__(self, program: str, start_seconds: float, module: str = zygote.__name__) -> None:
        self.tail = Tail()
        self._reader = frames.FrameReader(frames.MAX_FRAME)
        self._socket, theirs = socket.socketpair()
        with theirs:
            self._process = subprocess.Popen(
                [sys.executable, "-P", "-u", "-m", module, str(theirs.fileno()), program],
                stdin=subprocess.PIPE,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.PIPE,
                pass_fds=[theirs.fileno()],
                env=_environment(),
                cwd="/",
                start_new_session=True,
            )
        try:
            ready = self.receive(time.monotonic() + start_seconds)
            reason = None if ready == zygote.READY else self.epitaph()
        except TimeoutError:
            reason = f"it was not ready within {start_seconds:g} s"
        if reason is not None:
            self.close()
            words = f"\n{self.tail.text}" if self.tail.text else ""
            raise MeasureError(f"the measuring process does not start: {reason}{words}")

    def send(self, value: Any) -> None:
        frames.send(self._socket, value)

    def receive(self, deadline: float) -> Any | None:
        """The next value, None at the end of the stream; meanwhile takes last words. Raises TimeoutError."""
        assert self._process.stderr is not None
        with selectors.DefaultSelector() as selector:
            selector.register(self._socket, selectors.EVENT_READ)
            selector.register(self._process.stderr, selectors.EVENT_READ)
            while (left := deadline - time.monotonic()) > 0:
                for key, _ in selector.select(left):
                    if key.fileobj is self._socket:
                        data = self._socket.recv(_READ)
                        if not data:
                            return None
                        for value in self._reader.feed(data):
                            return value
                    elif not self._hear():
                        selector.unregister(key.fileobj)
        raise TimeoutError

    def epitaph(self) -> str:
        """How the process ended, which hung up; it is killed if it does not end soon."""
        try:
            code = self._process.wait(_SPARE_SECONDS)
        except subprocess.TimeoutExpired:
            self.kill()
            code = self._process.wait()
        while self._hear():
            pass
        if code < 0:
            return f"it died of {signal.Signals(-code).name}"
        return f"it ended with status {code}: {self.tail.last_line or 'it said nothing'}"

    def _hear(self) -> bool:
        assert self._process.stderr is not None
        data = self._process.stderr.read1(_READ)  # type: ignore[attr-defined]
        self.tail.feed(data)
        return bool(data)

    def is_alive(self) -> bool:
        return self._process.poll() is None

    def leave(self) -> None:
        """Lets it end its children, whose processor time then counts as that of this process's children, and
        itself; for a moment, as it may be busy."""
        with contextlib.suppress(OSError, subprocess.TimeoutExpired):
            self._socket.shutdown(socket.SHUT_RDWR)
            self._process.wait(_LEAVE_SECONDS)

    def kill(self) -> None:
        """Its child dies with it."""
        self._process.kill()

    def close(self) -> None:
        self.kill()
        self._process.wait()
        self._socket.close()
        for pipe in (self._process.stdin, self._process.stderr):
            if pipe is not None:
                with contextlib.suppress(OSError):
                    pipe.close()


def _environment() -> dict[str, str]:
    """All that the server, and so a candidate, sees of it: where modules are, and to use one thread."""
    threads = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")
    path = os.pathsep.join(os.path.abspath(p) for p in sys.path if p)
    return {"PYTHONPATH": path, "LC_ALL": "C.UTF-8"} | dict.fromkeys(threads, "1")
