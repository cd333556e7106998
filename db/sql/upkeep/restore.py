"""Reading a backup into a database."""

import contextlib
import os
import sqlite3
from collections.abc import Callable, Iterator
from itertools import islice
from pathlib import Path

from sqlalchemy import Connection, MetaData, Table, func, inspect, select, text

from ...errors import Conflict, InvalidValue, SchemaError
from ...upkeep import Copied
from ..database import Database
from ..databases import database_of
from ..schema import SCHEMA, VERSION_TABLE
from .lines import BackupLines, TableLines

_SQLITE = b"SQLite format 3\0"
_AT_ONCE = 500


def restore(source: Path, url: str, replace: bool) -> Copied:
    """See `tilewright.db.restore`."""
    with contextlib.ExitStack() as stack:
        schema, tables = stack.enter_context(_opened(source))
        if schema > SCHEMA.head:
            raise SchemaError(
                f"{source} has schema {schema}, newer than this program's {SCHEMA.head}: install a "
                f"tilewright that knows schema {schema}"
            )
        database = database_of(url, create=True)
        stack.callback(database.close)
        stack.push(_discarding(database))
        database.prepare()
        with database.migrate() as conn:
            version = SCHEMA.version(database, conn)
            if version is not None:
                stack.enter_context(database.unserved(f"process {os.getpid()}, a restore"))
                _make_empty(conn, database.name, replace)
                SCHEMA.move(conn, version, "base")
            SCHEMA.move(conn, None, schema)
            counts = [_fill(conn, table) for table in tables]
            SCHEMA.move(conn, schema, SCHEMA.head)
        return Copied(schema, len(counts), sum(counts))


def _discarding(database: Database) -> Callable[..., None]:
    """An exit of a context: where it fails, a file that was made for it goes again."""

    def leave(kind: type[BaseException] | None, *_: object) -> None:
        if kind is not None:
            database.discard()

    return leave


def _make_empty(conn: Connection, name: str, replace: bool) -> None:
    tables = _reflected(conn)
    held = [table.name for table in tables if conn.execute(select(table).limit(1)).first() is not None]
    if held and not replace:
        raise Conflict(
            f"{name} holds rows already (in {', '.join(sorted(held))}): name an empty database, or remove "
            "them first by --replace"
        )
    for table in reversed(tables):
        conn.execute(table.delete())


def _fill(conn: Connection, lines: TableLines) -> int:
    """Insert the rows of one table of a backup; how many they were."""
    if lines.name not in inspect(conn).get_table_names():
        raise InvalidValue("backup", f"holds a table {lines.name!r}, which its schema does not have")
    table = Table(lines.name, MetaData(), autoload_with=conn, resolve_fks=False)
    if strange := [name for name in lines.columns if name not in table.c]:
        raise InvalidValue("backup", f"holds a column {strange[0]!r} in {lines.name}, which has none")
    count = 0
    while rows := list(islice(lines.rows, _AT_ONCE)):
        conn.execute(table.insert(), [dict(zip(lines.columns, row, strict=True)) for row in rows])
        count += len(rows)
    if conn.dialect.name == "postgresql":
        _count_on(conn, table)
    return count


def _count_on(conn: Connection, table: Table) -> None:
    """A column that counts up goes on behind the rows that were inserted with their numbers."""
    for column in table.primary_key.columns:
        sequence = conn.execute(
            text("SELECT pg_get_serial_sequence(:table, :column)"),
            {"table": table.name, "column": column.name},
        ).scalar_one()
        highest = conn.execute(select(func.max(column))).scalar_one() if sequence else None
        if highest is not None:
            conn.execute(text("SELECT setval(:sequence, :last)"), {"sequence": sequence, "last": highest})


def _reflected(conn: Connection) -> list[Table]:
    there = MetaData()
    there.reflect(conn, only=lambda name, _: name != VERSION_TABLE)
    return there.sorted_tables


@contextlib.contextmanager
def _opened(source: Path) -> Iterator[tuple[str, Iterator[TableLines]]]:
    try:
        with source.open("rb") as file:
            is_database = file.read(len(_SQLITE)) == _SQLITE
    except OSError as error:
        raise InvalidValue("backup", f"{source} cannot be read: {error.strerror}") from None
    if is_database:
        with _database_lines(source) as opened:
            yield opened
        return
    lines = BackupLines(source)
    try:
        yield lines.schema, lines.tables()
    finally:
        lines.close()


@contextlib.contextmanager
def _database_lines(source: Path) -> Iterator[tuple[str, Iterator[TableLines]]]:
    """The tables of a SQLite database that is a backup, or of one that is in use."""
    database = database_of(f"sqlite:///{source}", create=False)
    try:
        with database.read() as conn:
            schema = SCHEMA.version(database, conn)
            if schema is None:
                raise InvalidValue("backup", f"{source} is an empty database")
            yield schema, (_lines_of(conn, table) for table in _reflected(conn))
    except sqlite3.Error as error:
        raise InvalidValue("backup", f"{source} cannot be read: {error}") from None
    finally:
        database.close()


def _lines_of(conn: Connection, table: Table) -> TableLines:
    rows = (list(row) for row in conn.execute(select(table), execution_options={"yield_per": _AT_ONCE}))
    return TableLines(table.name, tuple(table.columns.keys()), rows)
