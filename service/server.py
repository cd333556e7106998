"""`tilewright serve`: one process with the API, the supervisor of searches and the store, until SIGTERM."""

from __future__ import annotations

import contextlib
import os
import signal
import socket
import threading
from collections.abc import Callable, Generator
from pathlib import Path
from types import FrameType

import uvicorn

from ..db.errors import Conflict
from ..db.store import Store
from .app import create_app
from .builder_keeper import BuilderKeeper, builder_command
from .search_process import Command, search_command
from .settings import Settings
from .supervisor import Supervisor
from .workloads import WorkloadParser

# Requests and streams end by themselves once `stopping` is set; what does not is cut off.
_GRACE_SECONDS = 10


class ServeError(Exception):
    """The server cannot start, for the reason in the message."""


def serve(
    store: Store,
    settings: Settings,
    parser: WorkloadParser,
    announce: Callable[[str], None],
    ready_file: Path | None = None,
    command: Command | None = None,
) -> int:
    """Serve until SIGTERM or SIGINT; the exit code: 0, or 1 when the supervisor crashed.

    `announce` is called with the server's URL once it accepts; `ready_file` then holds it too. Raises
    ServeError.
    """
    stopping = threading.Event()
    listener = bind(settings.host, settings.port)
    url = url_of(settings.host, listener)
    supervisor = Supervisor(
        store,
        parser,
        command or search_command(settings.db),
        max_searches=settings.max_searches,
        restarts=settings.search_restarts,
        on_crash=lambda: os.kill(os.getpid(), signal.SIGTERM),
    )

    keeper = BuilderKeeper(store, builder_command(settings))

    def started() -> None:
        supervisor.start()
        if settings.builder:
            keeper.start()
        if ready_file is not None:
            _write_whole(ready_file, url + "\n")
        announce(url)

    app = create_app(store, settings, supervisor, parser, stopping)
    config = uvicorn.Config(
        app,
        log_level="warning",
        access_log=False,
        lifespan="off",
        ws="none",
        proxy_headers=False,  # a proxy's word on who asks is not taken; auth looks at the headers itself
        server_header=False,
        timeout_graceful_shutdown=_GRACE_SECONDS,
    )
    with listener, _alone(store, url), _ready_file_while(ready_file):
        try:
            _Server(config, stopping, started).run(sockets=[listener])
            crashed = supervisor.crashed
        finally:
            keeper.stop()
            supervisor.stop()
    return 1 if crashed else 0


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
        listener.listen(128)
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
        self, config: uvicorn.Config, stopping: threading.Event, started: Callable[[], None]
    ) -> None:
        super().__init__(config)
        self._stopping = stopping
        self._on_started = started

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        self._on_started()

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        self._stopping.set()
        super().handle_exit(sig, frame)

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


@contextlib.contextmanager
def _alone(store: Store, url: str) -> Generator[None, None, None]:
    """Two servers would take each other's searches away for ever."""
    with contextlib.ExitStack() as stack:
        try:
            stack.enter_context(store.serving(f"process {os.getpid()} at {url}"))
        except Conflict as error:
            raise ServeError(str(error)) from error
        yield


@contextlib.contextmanager
def _ready_file_while(path: Path | None) -> Generator[None, None, None]:
    """The file says where the server is only while there is one."""
    try:
        yield
    finally:
        if path is not None:
            path.unlink(missing_ok=True)


def _write_whole(path: Path, text: str) -> None:
    """A reader sees the whole text or no file."""
    partial = path.with_name(path.name + ".partial")
    partial.write_text(text, "utf-8")
    partial.replace(path)
