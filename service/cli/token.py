"""`tilewright token`: bearer tokens, made where the database is."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Annotated, Any

import typer

from ...db.records import Token, TokenLimits
from ...db.words import SCOPES
from ..durations import LONGEST_TOKEN_LIFE, seconds_of, shortened
from .audit import by_command
from .exits import CommandError, Exit
from .new_file import new_file, settle
from .options import AsJson, Db, database_url
from .output import say, show, show_json, table

app = typer.Typer(name="token", help="Bearer tokens of a database.", no_args_is_help=True)


@app.command("create")
def create(
    scope: Annotated[
        list[str], typer.Option(help=f"What it allows: {', '.join(SCOPES)}. May be given several times.")
    ],
    name: Annotated[str, typer.Option(help="Whose it is, for people.")] = "cli",
    pool: Annotated[str | None, typer.Option(help="The pool of workers it is for.")] = None,
    expires: Annotated[
        str | None, typer.Option(help="Life time such as 24h or 7d; without it the token does not expire.")
    ] = None,
    max_jobs: Annotated[
        int | None, typer.Option(min=0, help="Unfinished jobs that it may have.", show_default=False)
    ] = None,
    max_trials: Annotated[
        int | None, typer.Option(min=0, help="Trials without a result of those.", show_default=False)
    ] = None,
    rate: Annotated[
        float | None, typer.Option(min=0.001, help="Requests a second that it may make.", show_default=False)
    ] = None,
    out: Annotated[
        Path | None,
        typer.Option(help="Write the value into this new file, readable by its owner alone, and print none."),
    ] = None,
    db: Db = None,
    as_json: AsJson = False,
) -> None:
    """Make a token and print its value, this once: only its SHA-256 is stored."""
    scopes = [known for known in SCOPES if known in scope]
    if unknown := [s for s in scope if s not in SCOPES]:
        raise CommandError(f"unknown scope {unknown[0]!r}; scopes are {', '.join(SCOPES)}", Exit.USAGE)
    life = None if expires is None else _life(expires)
    limits = TokenLimits(max_jobs, max_trials, rate)
    with _written(out) as write, _store(db, create=True) as store:
        with store.together():
            token, value = store.create_token(name, scopes, pool, life, limits)
            store.add_audit(by_command("create_token", token.id))
            write(value)  # a token whose value cannot be kept is not made
        if out is None:
            shown = {"token": _plain(token), "value": value}
            with _revoked_where_it_fails(store, token.id):
                show(shown, as_json, lambda: value)
    if not as_json:
        until = "does not expire" if expires is None else f"expires in {expires}"
        where = "this is the only time it is shown" if out is None else f"its value is in {out}"
        say(f"token {token.id} of {name!r}, {', '.join(scopes)}, {until}; {where}")
    if out is not None and as_json:
        show_json({"token": _plain(token), "file": str(out)})


@app.command("list")
def list_tokens(db: Db = None, as_json: AsJson = False) -> None:
    """All tokens, without their values."""
    with _store(db) as store:
        tokens = store.tokens()

    def human() -> list[str]:
        rows = [
            [t.id, t.name, " ".join(t.scopes), t.pool or "", "revoked" if t.revoked_at is not None else ""]
            for t in tokens
        ]
        return table(["token", "name", "scopes", "pool", ""], rows)

    show([_plain(token) for token in tokens], as_json, human)


@app.command("revoke")
def revoke(
    token: Annotated[str, typer.Argument(help="A token's id, not its value.")],
    db: Db = None,
    as_json: AsJson = False,
) -> None:
    """From now on the token opens nothing."""
    with _store(db) as store, store.together():
        revoked = store.revoke_token(token)
        store.add_audit(by_command("revoke_token", token))
    show(_plain(revoked), as_json, lambda: f"{revoked.id} is revoked")


@contextlib.contextmanager
def _written(out: Path | None) -> Iterator[Callable[[str], None]]:
    """Takes the value for the file, which is there before the token is made and gone if that fails."""
    if out is None:
        yield lambda value: None
        return
    with new_file(out, 0o600) as file:

        def write(value: str) -> None:
            print(value, file=file)
            settle(file)

        yield write


@contextlib.contextmanager
def _revoked_where_it_fails(store: Any, token: str) -> Iterator[None]:
    """A value that could not be printed is nobody's."""
    try:
        yield
    except OSError:
        with store.together():
            store.revoke_token(token)
            store.add_audit(by_command("revoke_token", token))
        raise


def _store(db: str | None, *, create: bool = False) -> Any:
    from ...db import open_store

    try:
        return open_store(database_url(db), create=create)
    except ModuleNotFoundError as error:
        raise CommandError(str(error)) from error


def _life(expires: str) -> float:
    try:
        seconds = seconds_of(expires)
    except ValueError:
        seconds = 0.0
    if not 0 < seconds <= LONGEST_TOKEN_LIFE:
        most = f"{LONGEST_TOKEN_LIFE / 86_400:g}d"
        raise CommandError(
            f"--expires must be a life time such as 24h or 7d, at most {most}, got {shortened(expires)}",
            Exit.USAGE,
        )
    return seconds


def _plain(token: Token) -> dict[str, Any]:
    return {
        "id": token.id,
        "name": token.name,
        "scopes": list(token.scopes),
        "pool": token.pool,
        "created_at": token.created_at,
        "expires_at": token.expires_at,
        "revoked_at": token.revoked_at,
        "max_jobs": token.max_jobs,
        "max_trials": token.max_trials,
        "rate": token.rate,
    }
