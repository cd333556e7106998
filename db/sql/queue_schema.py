"""The tables of the queue of searches: procrastinate's own SQL, in a schema of its own."""

from importlib import resources
from typing import Any

from sqlalchemy import Connection, text

from ..errors import SchemaError
from ..queue import QUEUE_SCHEMA
from .database import Database
from .databases import database_of

_APPLIED = "applied_migrations"


def prepare(url: str, upgrade: bool) -> None:
    """See `prepare_queue`."""
    database = database_of(url, create=False)
    try:
        prepare_in(database, upgrade)
    finally:
        database.close()


def prepare_in(database: Database, upgrade: bool) -> None:
    """The same, of an open database. All or nothing, and one process at a time."""
    with database.migrate() as conn:
        known = _known_migrations()
        if not _exists(conn):
            conn.execute(text(f"CREATE SCHEMA {QUEUE_SCHEMA}"))
            _use(conn)
            _run(conn, _sql("schema.sql"))
            conn.execute(text(f"CREATE TABLE {_APPLIED} (name text PRIMARY KEY)"))
            _note(conn, known)
            return
        _use(conn)
        applied = set(conn.execute(text(f"SELECT name FROM {_APPLIED}")).scalars())
        if foreign := applied - set(known):
            raise SchemaError(
                f"{database.name}: its queue of searches was made by a newer procrastinate "
                f"({max(foreign)}): install that one"
            )
        missing = [name for name in known if name not in applied]
        if missing and not upgrade:
            raise SchemaError(
                f"{database.name}: its queue of searches is older than the procrastinate that is installed: "
                "run `tilewright db upgrade`"
            )
        for name in missing:
            _run(conn, _sql(f"migrations/{name}"))
        _note(conn, missing)


def _exists(conn: Connection) -> bool:
    query = text("SELECT count(*) FROM information_schema.schemata WHERE schema_name = :name")
    return bool(conn.execute(query, {"name": QUEUE_SCHEMA}).scalar_one())


def _use(conn: Connection) -> None:
    """Names without a schema mean the queue's until the transaction ends: the library's SQL has none."""
    conn.execute(text(f"SET LOCAL search_path = {QUEUE_SCHEMA}"))


def _run(conn: Connection, script: str) -> None:
    """Many statements at once, which only the driver itself takes."""
    driver: Any = conn.connection.driver_connection
    driver.execute(script)


def _note(conn: Connection, names: list[str]) -> None:
    if names:
        conn.execute(text(f"INSERT INTO {_APPLIED} VALUES (:name)"), [{"name": name} for name in names])


def _known_migrations() -> list[str]:
    """The library's, in the order in which they are applied."""
    folder = resources.files("procrastinate.sql") / "migrations"
    return sorted(entry.name for entry in folder.iterdir() if entry.name.endswith(".sql"))


def _sql(name: str) -> str:
    return (resources.files("procrastinate.sql") / name).read_text("utf-8")
