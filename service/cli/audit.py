"""`tilewright audit`: who changed what, read where the database is."""

from __future__ import annotations

import getpass
import platform
from dataclasses import asdict
from datetime import UTC, datetime
from typing import Annotated, Any

import typer

from ...db.service_records import AuditEntry, NewAudit
from .exits import CommandError
from .options import AsJson, Db, database_url
from .output import show, table

app = typer.Typer(name="audit", help="Who changed what.", no_args_is_help=True)

COMMAND_LINE = "command line"


@app.command("list")
def list_entries(
    actor: Annotated[
        str | None,
        typer.Option(help=f"A token's id, anonymous, or '{COMMAND_LINE}'.", show_default=False),
    ] = None,
    limit: Annotated[int, typer.Option(min=1, max=10_000, help="The newest so many.")] = 50,
    db: Db = None,
    as_json: AsJson = False,
) -> None:
    """Changes over HTTP and by commands, the newest first: when, who, what, on what, from where, and what
    came of it."""
    from ...db import open_store

    try:
        store = open_store(database_url(db), create=False)
    except ModuleNotFoundError as error:
        raise CommandError(str(error)) from error
    with store:
        entries = store.audit(actor, None, limit).items

    def human() -> list[str]:
        columns = ["when", "who", "", "what", "on what", "from", "outcome"]
        return table(columns, [_row(entry) for entry in entries])

    show([asdict(entry) for entry in entries], as_json, human)


def by_command(verb: str, subject: str) -> NewAudit:
    """The entry of a change by a command on this machine."""
    return NewAudit(COMMAND_LINE, _user(), platform.node(), verb, subject, "done")


def _row(entry: AuditEntry) -> list[str]:
    when = datetime.fromtimestamp(entry.at, UTC).strftime("%Y-%m-%d %H:%M:%SZ")
    said: list[Any] = [when, entry.actor, entry.name, entry.verb, entry.subject, entry.address, entry.outcome]
    return said


def _user() -> str:
    try:
        return getpass.getuser()
    except (OSError, KeyError):  # a user without a name
        return ""
