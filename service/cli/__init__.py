"""The command line. Loads with the base install alone; a command loads what it needs when it runs."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from importlib.metadata import version
from typing import Annotated

import typer

from ...db.disk_full import is_full
from . import (
    audit,
    best,
    best_exchange,
    best_fixed,
    builder,
    config,
    crashes,
    db,
    jobs,
    search,
    token,
    worker,
    workers,
)
from .exits import EXIT_CODES, KNOWN_ERRORS, Exit, exit_code
from .output import say
from .serve import serve
from .tune import tune
from .tune_tasks import tune_tasks

# typer's only public class of usage errors is one of their subclasses.
_UsageError: type[Exception] = typer.BadParameter.__mro__[1]

app = typer.Typer(
    name="tilewright",
    help="Auto-tuning search service for tensor kernels.",
    epilog=EXIT_CODES,
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)


# Their verbs are those of `best`, too.
del best_exchange, best_fixed


def _show_version(wanted: bool) -> None:
    if wanted:
        print(f"tilewright {version('tilewright')}", flush=True)
        raise typer.Exit


@app.callback()
def _common(
    show_version: Annotated[
        bool, typer.Option("--version", callback=_show_version, is_eager=True, help="Print the version.")
    ] = False,
) -> None:
    return


app.command("serve")(serve)
app.command("tune")(tune)
app.command("tune-tasks")(tune_tasks)
for group in (jobs, worker, workers, crashes, builder, search, token, config, audit, db, best):
    app.add_typer(group.app)


def main() -> None:
    """Runs the command of this process's arguments; the program itself is `service.command`."""
    sys.exit(run(sys.argv[1:]))


def run(arguments: Sequence[str]) -> int:
    """Run one command; the exit code. A known error is one line on stderr, a bug is a traceback."""
    try:
        code = app(list(arguments), prog_name="tilewright", standalone_mode=False)
    except _UsageError as error:
        if words := _words(error):  # none: the help was asked for, and shown
            say(f"tilewright: {words}; see --help")
        return Exit.USAGE
    except typer.Abort as error:
        if isinstance(error.__cause__, KeyboardInterrupt):
            say("tilewright: interrupted")
        return Exit.INTERRUPTED
    except KNOWN_ERRORS as error:
        say(f"tilewright: {error}")
        return exit_code(error)
    except BrokenPipeError:
        # Whoever read our output has seen enough.
        _give_output_up()
        return Exit.FAILED
    except Exception as error:
        if not is_full(error):
            raise
        say(f"tilewright: {_where(error)}: the disk is full")
        return Exit.FAILED
    return int(code or 0)


def _where(error: Exception) -> str:
    """What an error is about that says a disk takes no more."""
    name = getattr(error, "filename", None)
    if name is None:  # files are named where they are made: this is the standard output
        _give_output_up()
        return "standard output"
    return str(name)


def _give_output_up() -> None:
    """The interpreter flushes it at its end, which must not fail once more."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _words(error: BaseException) -> str:
    make = getattr(error, "format_message", None)
    return str(make() if make else error).strip().rstrip(".")
