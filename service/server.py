"""`tilewright serve`: the API, in this process or in several, and who has the searches of its jobs run."""

from __future__ import annotations

import contextlib
import os
import signal
from collections.abc import Callable, Generator
from pathlib import Path

from ..db.errors import Conflict
from ..db.store import Store
from .api_processes import ApiProcesses
from .api_server import Elsewhere, ServeError, bind, serve_api, url_of
from .builder_keeper import BuilderKeeper, builder_command
from .retention import Retention
from .search_process import Command, search_command
from .searchers import Searcher, searcher_of
from .settings import Settings
from .workloads import WorkloadParser

__all__ = ["ServeError", "bind", "serve", "url_of"]


def serve(
    store: Store,
    settings: Settings,
    parser: WorkloadParser,
    announce: Callable[[str], None],
    ready_file: Path | None = None,
    command: Command | None = None,
    *,
    processes: int = 1,
    search: bool = True,
) -> int:
    """Serve until SIGTERM or SIGINT; the exit code: 0, or 1 when searches or API processes gave up.

    With more than one of `processes`, each serves the API on one listening socket and this one watches over
    them. Without `search` others have to search on the same database. `announce` is called with the server's
    URL once it accepts; `ready_file` then holds it too. Raises ServeError.
    """
    listener = bind(settings.host, settings.port)
    url = url_of(settings.host, listener)
    searcher = None
    if search:
        searcher = searcher_of(
            store,
            settings,
            parser,
            command or search_command(settings.db),
            on_crash=lambda: os.kill(os.getpid(), signal.SIGTERM),
        )

    keeper = BuilderKeeper(store, builder_command(settings), said=settings.db)
    retention = Retention(store, settings.retention_days)

    def started() -> None:
        if searcher is not None:
            searcher.start()
            retention.start()
            if settings.builder:
                keeper.start()
        if ready_file is not None:
            _write_whole(ready_file, url + "\n")
        announce(url)

    with listener, _alone(store, url, search), _ready_file_while(ready_file):
        try:
            if processes > 1:
                failed = ApiProcesses(settings, listener, processes).run(started)
            else:
                serve_api(store, settings, parser, searcher or Elsewhere(), listener, started)
                failed = False
            crashed = searcher is not None and searcher.crashed
        finally:
            keeper.stop()
            retention.stop()
            _stop(searcher)
    return 1 if crashed or failed else 0


def _stop(searcher: Searcher | None) -> None:
    if searcher is not None:
        searcher.stop()


@contextlib.contextmanager
def _alone(store: Store, url: str, search: bool) -> Generator[None, None, None]:
    """Two servers of one file would take each other's searches away for ever."""
    with contextlib.ExitStack() as stack:
        try:
            if search:
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
    try:
        partial.write_text(text, "utf-8")
        partial.replace(path)
    except OSError as error:
        partial.unlink(missing_ok=True)
        raise ServeError(f"the ready file {path} cannot be written: {error.strerror}") from error
