"""`tilewright db`: the database itself."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer

from ...db import need_sql, shown
from ..durations import seconds_of
from .asking import confirm
from .exits import CommandError, Exit
from .options import AsJson, Db, database_url
from .output import show

app = typer.Typer(name="db", help="The database.", no_args_is_help=True)

Yes = Annotated[bool, typer.Option("--yes", help="Do not ask whether this is meant.")]


@app.command("upgrade")
def upgrade(db: Db = None, as_json: AsJson = False) -> None:
    """Bring the database to this program's schema."""
    from ...db import upgrade as upgrade_database

    url = _database(db)
    before, after = upgrade_database(url)
    what = f"schema {before or 'none'} to {after}"
    human = f"{shown(url)} is at schema {after} already" if before == after else f"{shown(url)}: {what}"
    show({"db": shown(url), "before": before, "after": after}, as_json, lambda: human)


@app.command("downgrade")
def downgrade(
    to: Annotated[str, typer.Option(help="The schema to go back to, such as 0004.")],
    yes: Yes = False,
    db: Db = None,
    as_json: AsJson = False,
) -> None:
    """Bring the database back to an older schema; what that one has no place for is lost. No server may
    use it meanwhile."""
    from ...db import check_downgrade
    from ...db import downgrade as downgrade_database

    url = _database(db)
    check_downgrade(url, to)  # nobody is asked about what cannot be
    confirm(yes, f"{shown(url)} loses what schema {to} has no place for; make a backup first. Go on?")
    before, after = downgrade_database(url, to)
    human = f"{shown(url)}: schema {before} to {after}"
    show({"db": shown(url), "before": before, "after": after}, as_json, lambda: human)


@app.command("backup")
def backup(
    to: Annotated[Path, typer.Argument(help="A new file; one that ends in .gz is compressed.")],
    portable: Annotated[
        bool, typer.Option("--portable", help="JSON lines, also of an SQLite database, for either kind.")
    ] = False,
    db: Db = None,
    as_json: AsJson = False,
) -> None:
    """Copy the database, as it is at one moment, into a new file. It may be in use."""
    from ...db import backup as back_up

    url = _database(db)
    copied = back_up(url, to, portable)
    human = f"{to}: {copied.rows} rows of {copied.tables} tables at schema {copied.schema}"
    show({"db": shown(url), "file": str(to), **asdict(copied)}, as_json, lambda: human)


@app.command("restore")
def restore(
    source: Annotated[Path, typer.Argument(help="A backup of either kind of database.")],
    replace: Annotated[
        bool, typer.Option("--replace", help="Remove first what the database holds, all of it.")
    ] = False,
    yes: Yes = False,
    db: Db = None,
    as_json: AsJson = False,
) -> None:
    """Read a backup into an empty database of either kind. No server may use it meanwhile."""
    from ...db import restore as restore_backup

    url = _database(db)
    if replace:
        confirm(yes, f"{shown(url)} loses all that it holds. Go on?")
    copied = restore_backup(source, url, replace)
    human = f"{shown(url)}: {copied.rows} rows of {copied.tables} tables from {source}"
    show({"db": shown(url), "file": str(source), **asdict(copied)}, as_json, lambda: human)


@app.command("check")
def check(db: Db = None, as_json: AsJson = False) -> None:
    """Look the database over; each problem by its rule. Ends with 1 where there is one."""
    from ...db import check as check_database
    from ..wiring import workload_key_of

    url = _database(db)
    problems = check_database(url, workload_key_of)
    lines = [f"{problem.rule}: {problem.where}" for problem in problems]
    human = lines or [f"{shown(url)} is in order"]
    show({"db": shown(url), "problems": [asdict(each) for each in problems]}, as_json, lambda: human)
    if problems:
        raise typer.Exit(Exit.FAILED)


@app.command("prune")
def prune(
    older_than: Annotated[str, typer.Option(help="Of jobs that ended longer ago than this, such as 90d.")],
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only say what would be forgotten.")] = False,
    yes: Yes = False,
    db: Db = None,
    as_json: AsJson = False,
) -> None:
    """Forget old trials and events on which nothing rests. The database may be in use."""
    from ...db import prune as prune_database

    try:
        seconds = seconds_of(older_than)
    except ValueError as error:
        raise CommandError(f"--older-than {error}", Exit.USAGE) from None
    url = _database(db)
    if not dry_run:
        confirm(yes, f"{shown(url)} forgets trials of jobs that ended more than {older_than} ago. Go on?")
    done = prune_database(url, seconds, dry_run)
    counts = asdict(done)
    listed = ", ".join(f"{count} {what}" for what, count in counts.items())
    human = f"{shown(url)}: {'would forget' if dry_run else 'forgot'} {listed}"
    show({"db": shown(url), "dry_run": dry_run, **counts}, as_json, lambda: human)


def _database(db: str | None) -> str:
    """The url that is meant. Raises CommandError where no SQL library is installed."""
    url = database_url(db)
    try:
        need_sql()
    except ModuleNotFoundError as error:
        raise CommandError(str(error)) from error
    return url
