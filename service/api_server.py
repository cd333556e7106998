"""The HTTP API on a listening socket, until a signal ends it."""

from __future__ import annotations

import contextlib
import os
import signal
import socket
import threading
from collections.abc import Callable, Generator
from types import FrameType

import uvicorn

from ..db.store import Store
from .app import create_app
from .dispatch import Searching
from .http_protocol import ProblemProtocol
from .settings import Settings
from .workloads import WorkloadParser

# Requests and streams end by themselves once `stopping` is set; what does not is cut off.
_GRACE_SECONDS = 10
_BACKLOG = 1024
# Longer than a worker measures between two calls.
_KEEP_ALIVE_SECONDS = 75


class ServeError(Exception):
    """The server cannot start, for the reason in the message."""


class Elsewhere:
    """`Searching` of a process that serves the API alone: others search, and look at the store themselves."""

    def wake(self) -> None:
        return

    def problem(self) -> str | None:
        return None


def serve_api(
    store: Store,
    settings: Settings,
    parser: WorkloadParser,
    searching: Searching,
    listener: socket.socket,
    started: Callable[[], None],
    process: int = 0,
) -> None:
    """Serve until SIGTERM or SIGINT, from the main thread; `started` is called once connections are taken."""
    stopping = threading.Event()
    config = uvicorn.Config(
        create_app(store, settings, searching, parser, stopping, process),
        http=ProblemProtocol,
        log_config=None,  # its entries go where all go
        access_log=False,
        lifespan="off",
        ws="none",
        proxy_headers=False,  # a proxy's word on who asks is not taken; auth looks at the headers itself
        server_header=False,
        backlog=_BACKLOG,
        timeout_keep_alive=_KEEP_ALIVE_SECONDS,
        timeout_graceful_shutdown=_GRACE_SECONDS,
    )
    _Server(config, stopping, started, settings.drain_seconds).run(sockets=[listener])


def bind(host: str, port: int) -> socket.socket:
    """A listening socket of this address. Raises ServeError that names the address."""
    try:
        family, kind, protocol, _, address = socket.getaddrinfo(
            host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
        )[0]
        listener = socket.socket(family, kind, protocol)
    except OSError as error:
        raise ServeError(f"cannot listen at {host}:{port}: {error.strerror or error}") from error
    try:
        if os.name == "posix":
            # The port of a server that has just ended can be taken again.
            listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind(address)
        listener.listen(_BACKLOG)
    except OSError as error:
        listener.close()
        raise ServeError(f"cannot listen at {host}:{port}: {error.strerror or error}") from error
    return listener


def url_of(host: str, listener: socket.socket) -> str:
    """Where this machine reaches the listener."""
    port = listener.getsockname()[1]
    name = {"0.0.0.0": "127.0.0.1", "::": "::1", "": "127.0.0.1"}.get(host, host)
    return f"http://[{name}]:{port}" if ":" in name else f"http://{name}:{port}"


class _Server(uvicorn.Server):
    """A uvicorn server that says when it accepts, ends its streams on a signal, and returns instead of dying
    of it."""

    def __init__(
        self,
        config: uvicorn.Config,
        stopping: threading.Event,
        started: Callable[[], None],
        drain_seconds: float,
    ) -> None:
        super().__init__(config)
        self._drain_seconds = drain_seconds
        self._stopping = stopping
        self._on_started = started

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        self._on_started()

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        """The first signal ends streams and long polls at once, and everything once `drain_seconds` have
        passed; the second one at once, whatever is under way."""
        if self._stopping.is_set():
            self.force_exit = self.should_exit = True
            return
        self._stopping.set()
        if self._drain_seconds <= 0:
            self.should_exit = True
            return
        drained = threading.Timer(self._drain_seconds, self._drained)
        drained.daemon = True
        drained.start()

    def _drained(self) -> None:
        self.should_exit = True

    @contextlib.contextmanager
    def capture_signals(self) -> Generator[None, None, None]:
        # uvicorn raises the signal again at its end, which would kill this process before its children are
        # ended.
        before = {sig: signal.signal(sig, self.handle_exit) for sig in (signal.SIGINT, signal.SIGTERM)}
        try:
            yield
        finally:
            for sig, handler in before.items():
                signal.signal(sig, handler)
