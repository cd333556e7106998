"""Which database a url names."""

import os
from pathlib import Path

from sqlalchemy import URL, make_url
from sqlalchemy.exc import ArgumentError

from ..address import shown
from ..errors import InvalidValue, NoDatabase
from .database import Database
from .sqlite_database import SqliteDatabase

_POSTGRES_DRIVERS = ("postgresql", "postgresql+psycopg", "postgres")


def database_of(url: str, create: bool) -> Database:
    """The database at a url; InvalidValue for another kind of url.

    NoDatabase where it is missing and not to be made, or its folder is missing. A server of PostgreSQL is not
    asked yet.
    """
    parsed = _parsed(url)
    if parsed.drivername in _POSTGRES_DRIVERS:
        if not parsed.database:
            raise InvalidValue(
                "url", f"{shown(url)!r} names no database; use postgresql://user:password@host:port/database"
            )
        return _postgres(parsed)
    if parsed.drivername != "sqlite":
        raise InvalidValue(
            "url",
            f"{parsed.drivername} is not supported; use sqlite:///path or "
            "postgresql://user:password@host:port/database",
        )
    if not parsed.database or parsed.database == ":memory:" or parsed.query:
        raise InvalidValue("url", f"{url!r} names no file; use sqlite:///relative or sqlite:////absolute")
    path, made = Path(parsed.database), False
    if not path.parent.is_dir():
        raise NoDatabase(f"{path}: there is no directory {path.parent}")
    if not path.exists():
        if not create:
            raise NoDatabase(f"{path}: there is no such database")
        made = _make_private(path)
    return SqliteDatabase(path, made)


def _make_private(path: Path) -> bool:
    """An empty file that is its owner's alone, for it will hold digests of tokens; SQLite gives the files
    beside it the same mode. What stands in the way of it, SQLite tells; whether it was made."""
    try:
        os.close(os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600))
    except OSError:
        return False
    return True


def _postgres(url: URL) -> Database:
    try:
        from .postgres_database import PostgresDatabase

        return PostgresDatabase(url)
    except ModuleNotFoundError as e:
        raise ModuleNotFoundError(
            f"PostgreSQL needs {e.name}, which is not installed: pip install 'tilewright[postgres]'",
            name=e.name,
        ) from None


def _parsed(url: str) -> URL:
    try:
        return make_url(url)
    except (ArgumentError, ValueError):
        raise InvalidValue(
            "url",
            f"{shown(url)!r} is no database url; one looks like sqlite:///tilewright.db or "
            "postgresql://user:password@host:port/database",
        ) from None
