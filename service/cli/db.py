"""`tilewright db`: the database itself."""

from __future__ import annotations

import typer

from .exits import CommandError
from .options import AsJson, Db, settings_of
from .output import show

app = typer.Typer(name="db", help="The database.", no_args_is_help=True)


@app.command("upgrade")
def upgrade(db: Db = None, as_json: AsJson = False) -> None:
    """Bring the database to this program's schema."""
    from ...db import upgrade as upgrade_database

    url = settings_of(db=db).db
    try:
        before, after = upgrade_database(url)
    except ModuleNotFoundError as error:
        raise CommandError(str(error)) from error

    def human() -> str:
        if before == after:
            return f"{url} is at schema {after} already"
        return f"{url}: schema {before or 'none'} to {after}"

    show({"db": url, "before": before, "after": after}, as_json, human)
