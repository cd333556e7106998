"""`tilewright search`: processes that run searches, beside servers that serve the API alone."""

from __future__ import annotations

import signal
from types import FrameType
from typing import Annotated

import typer

from ..settings import load
from .exits import CommandError, Exit
from .options import NO_TOKEN, Db, LogFormat, LogLevel
from .output import say

app = typer.Typer(name="search", help="Run searches beside the API's servers.", no_args_is_help=True)


@app.command("run")
def run(
    db: Db = None,
    concurrency: Annotated[
        int | None,
        typer.Option(min=1, help="Searches at a time. [TILEWRIGHT_MAX_SEARCHES]", show_default=False),
    ] = None,
    log_format: LogFormat = None,
    log_level: LogLevel = None,
) -> None:
    """Run the searches of the jobs in a PostgreSQL database until SIGTERM.

    It builds for devices without a compiler, too. As many of these as are wanted may run, on any machines.
    The searches of one that is stopped or lost go on in another, from their stored trials.
    """
    flags = {"db": db, "max_searches": concurrency, "log_format": log_format, "log_level": log_level}
    settings = load(flags, unused=NO_TOKEN).settings
    from ...db.address import shown
    from ...db.queue import is_postgres

    if not is_postgres(settings.db):
        raise CommandError(
            f"search runners need PostgreSQL, and {settings.db} is none: `tilewright serve` runs the "
            "searches of a database in a file",
            Exit.USAGE,
        )
    try:
        from ...db import open_store
        from ..builder_keeper import BuilderKeeper, builder_command
        from ..logs import configure
        from ..search_process import search_command
        from ..search_runner import SearchRunner
        from ..wiring import CompilerParser
    except ModuleNotFoundError as error:
        raise CommandError(
            f"a search runner needs {error.name}, which is not installed: "
            "pip install 'tilewright[server,postgres]'"
        ) from error
    configure(settings.log_format, settings.log_level)
    with open_store(settings.db) as store:
        runner = SearchRunner(
            store, settings, CompilerParser(), search_command(settings.db), settings.max_searches
        )

        def stop(sig: int, frame: FrameType | None) -> None:
            runner.stop()

        for sig in (signal.SIGTERM, signal.SIGINT):
            signal.signal(sig, stop)
        say(f"tilewright runs up to {settings.max_searches} searches of {shown(settings.db)}")
        keeper = BuilderKeeper(store, builder_command(settings), said=settings.db)
        if settings.builder:
            keeper.start()
        try:
            code = runner.run()
        finally:
            keeper.stop()
        raise typer.Exit(code)
