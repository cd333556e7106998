"""Copying a database into a file."""

import contextlib
import gzip
import os
import sqlite3
from collections.abc import Iterator
from pathlib import Path
from typing import IO, cast

from sqlalchemy import Connection, Table, func, inspect, select

from ...disk_full import is_full
from ...errors import Conflict, SchemaError, StoreFull, StoreUnavailable
from ...upkeep import Copied
from ..database import Database
from ..databases import database_of
from ..schema import SCHEMA
from ..sqlite_database import SqliteDatabase
from ..tables import metadata
from .lines import TableLines, write_lines

_AT_ONCE = 1_000


def backup(url: str, to: Path, portable: bool) -> Copied:
    """See `tilewright.db.backup`."""
    database = database_of(url, create=False)
    try:
        if SCHEMA.check(database) is None:
            raise SchemaError(f"{database.name} is empty: there is nothing to back up")
        with _new_file(to) as partial:
            if isinstance(database, SqliteDatabase) and not portable:
                return _copy_file(database, partial)
            return _copy_rows(database, partial, packed=to.suffix == ".gz")
    finally:
        database.close()


def _copy_file(database: SqliteDatabase, to: Path) -> Copied:
    """By SQLite's own way to copy a database that is written meanwhile."""
    with (
        contextlib.closing(
            sqlite3.connect(f"{database.path.absolute().as_uri()}?mode=ro", uri=True)
        ) as source,
        contextlib.closing(sqlite3.connect(to)) as copy,
    ):
        source.backup(copy, pages=-1)
        copy.execute("PRAGMA journal_mode = DELETE")  # one file, which needs none beside it
    copied = SqliteDatabase(to)
    try:
        with copied.read() as conn:
            rows = [conn.execute(select(func.count()).select_from(table)).scalar_one() for table in _tables()]
            return Copied(str(SCHEMA.version(copied, conn)), len(rows), sum(rows))
    finally:
        copied.close()


def _copy_rows(database: Database, to: Path, packed: bool) -> Copied:
    with database.read() as conn, _writer(to, packed) as file:
        database.take_time(conn)
        there = set(inspect(conn).get_table_names())
        tables = (_lines(conn, table) for table in _tables() if table.name in there)
        schema = str(SCHEMA.version(database, conn))
        return Copied(schema, *write_lines(file, schema, tables))


def _lines(conn: Connection, table: Table) -> TableLines:
    result = conn.execute(
        select(table).order_by(*table.primary_key.columns), execution_options={"yield_per": _AT_ONCE}
    )
    rows = (list(row) for row in result)
    return TableLines(table.name, tuple(table.columns.keys()), rows)


def _tables() -> list[Table]:
    """Each after those that it refers to."""
    return metadata.sorted_tables


@contextlib.contextmanager
def _writer(path: Path, packed: bool) -> Iterator[IO[bytes]]:
    with path.open("wb") as raw:
        if packed:
            with gzip.open(raw, "wb") as file:
                yield cast(IO[bytes], file)
        else:
            yield raw
        raw.flush()
        os.fsync(raw.fileno())


@contextlib.contextmanager
def _new_file(path: Path) -> Iterator[Path]:
    """A file beside `path` that takes its name once it is whole."""
    if path.exists():
        raise Conflict(f"{path} is there already: name a new file")
    partial = path.with_name(f"{path.name}.{os.getpid()}.partial")
    try:
        os.close(os.open(partial, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600))
        yield partial
        try:
            os.link(partial, path)  # fails where the name was taken meanwhile
        except FileExistsError:
            raise Conflict(f"{path} is there already: name a new file") from None
    except StoreUnavailable:  # which is an OSError, too
        raise
    except (OSError, sqlite3.Error) as error:
        if is_full(error):
            raise StoreFull(f"{path}: the disk is full; nothing was kept") from None
        if isinstance(error, sqlite3.Error):
            raise
        raise StoreUnavailable(f"{path} cannot be written: {error.strerror}") from None
    finally:
        for end in ("", "-journal", "-wal", "-shm"):
            Path(f"{partial}{end}").unlink(missing_ok=True)
