"""`tilewright serve`."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated

import typer

from ...db.errors import StoreFull, StoreUnavailable
from ..settings import Loaded, load
from .exits import CommandError
from .options import NO_TOKEN, AsJson, Db, LogFormat, LogLevel
from .output import say, show_json_line


def serve(
    db: Db = None,
    host: Annotated[
        str | None, typer.Option(help="Address to bind. Not loopback: every request needs a token.")
    ] = None,
    port: Annotated[int | None, typer.Option(help="Port to bind; 0 takes a free one.")] = None,
    ready_file: Annotated[
        Path | None, typer.Option(help="Written with the URL once the server accepts, removed at its end.")
    ] = None,
    processes: Annotated[
        int, typer.Option(min=1, max=64, help="Processes that serve the API at one address.")
    ] = 1,
    search: Annotated[
        bool,
        typer.Option(
            "--search/--no-search", help="Run searches too, or leave them to `tilewright search run`."
        ),
    ] = True,
    log_format: LogFormat = None,
    log_level: LogLevel = None,
    as_json: AsJson = False,
) -> None:
    """Serve the HTTP API and run the searches of its jobs, until SIGTERM.

    Prints the server's URL on stdout once it accepts connections.
    """
    flags = {"db": db, "host": host, "port": port, "log_format": log_format, "log_level": log_level}
    loaded = load(flags, unused=NO_TOKEN)
    settings = loaded.settings
    try:
        from ...db import open_store, shown
        from ..logs import configure
        from ..server import ServeError
        from ..server import serve as serve_until_told
        from ..wiring import CompilerParser

        configure(settings.log_format, settings.log_level)
        with _naming_the_setting(loaded):
            store = open_store(settings.db)
    except ModuleNotFoundError as error:
        raise CommandError(
            f"a server needs {error.name}, which is not installed: pip install 'tilewright[server]'"
        ) from error

    def announce(url: str) -> None:
        if as_json:
            show_json_line({"url": url, "db": shown(settings.db), "pid": os.getpid()})
        else:
            print(url, flush=True)
        say(f"tilewright serves {shown(settings.db)} at {url}")

    with store, _naming_the_setting(loaded):
        try:
            code = serve_until_told(
                store, settings, CompilerParser(), announce, ready_file, processes=processes, search=search
            )
        except ServeError as error:
            raise CommandError(str(error)) from error
    raise typer.Exit(code)


@contextlib.contextmanager
def _naming_the_setting(loaded: Loaded) -> Iterator[None]:
    """Where a database cannot be served, the error says which setting chose it, and where that was said."""
    try:
        yield
    except StoreUnavailable as error:
        kind = StoreFull if isinstance(error, StoreFull) else StoreUnavailable
        raise kind(f"{error} (setting db, {loaded.sources['db']})") from error
