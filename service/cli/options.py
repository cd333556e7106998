"""Options that several commands share, and what they open."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated, Any

import typer

from ..client import Client
from ..settings import Settings, load
from .exits import CommandError, Exit

NO_TOKEN = ("token",)
"""What a command does not use that asks no server."""

FINITE = sys.float_info.max
"""The most that an option in seconds takes: JSON has no infinity, and a limit that never ends is none."""

AsJson = Annotated[bool, typer.Option("--json", help="JSON on stdout.")]
Url = Annotated[str | None, typer.Option("--url", help="The server. [TILEWRIGHT_URL]", show_default=False)]
Db = Annotated[
    str | None,
    typer.Option("--db", help="The database, sqlite:///file.db. [TILEWRIGHT_DB]", show_default=False),
]
TokenFile = Annotated[
    Path | None,
    typer.Option("--token-file", help="File with the token. [TILEWRIGHT_TOKEN_FILE]", show_default=False),
]
LogFormat = Annotated[
    str | None, typer.Option(help="json or text, on stderr. [TILEWRIGHT_LOG_FORMAT]", show_default=False)
]
LogLevel = Annotated[
    str | None,
    typer.Option(help="debug, info, warning or error. [TILEWRIGHT_LOG_LEVEL]", show_default=False),
]
InsecureHttp = Annotated[
    bool, typer.Option("--insecure-http", help="Send the token over http to another machine.")
]


def settings_of(
    *,
    url: str | None = None,
    db: str | None = None,
    token_file: Path | None = None,
    insecure_http: bool = False,
    **more: Any,
) -> Settings:
    """The settings under these flags; `more` are settings by their names, None for those not given. Raises
    SettingsError, CommandError for a token file that is not readable."""
    flags = flags_of(url=url, db=db, token_file=token_file, insecure_http=insecure_http, **more)
    return load(flags).settings


def database_url(db: str | None) -> str:
    """The url of the database that is meant by --db and the settings. No token is needed for it."""
    return load({"db": db}, unused=NO_TOKEN).settings.db


def flags_of(
    *,
    url: str | None = None,
    db: str | None = None,
    token_file: Path | None = None,
    insecure_http: bool = False,
    **more: Any,
) -> dict[str, Any]:
    """What was said on the command line, as settings. Raises CommandError for a token file that is not
    readable."""
    return {
        "url": url,
        "db": db,
        "token": None if token_file is None else _read(token_file),
        "insecure_http": insecure_http or None,
        **more,
    }


def open_client(settings: Settings) -> Client:
    """A client of the server that the settings name."""
    token = settings.token
    try:
        return Client(
            settings.url,
            None if token is None else token.get_secret_value(),
            insecure_http=settings.insecure_http,
            timeout=settings.timeout,
        )
    except ValueError as error:
        raise CommandError(str(error), Exit.SETTINGS) from error


def _read(path: Path) -> str:
    try:
        return path.read_text("utf-8").strip()
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "it is not text"
        raise CommandError(f"the token file {path} cannot be read: {reason}", Exit.SETTINGS) from error
