"""What the parts of the SQL store share."""

import secrets

from sqlalchemy import Connection, Table
from sqlalchemy.dialects import postgresql, sqlite

from .database import Database
from .units import UnitDatabase


class Part:
    """One noun of the store; the store is all of them on one database."""

    def __init__(self, database: Database) -> None:
        self._database = UnitDatabase(database)


def new_id(prefix: str) -> str:
    return f"{prefix}_{secrets.token_hex(6)}"


def upsert(conn: Connection, table: Table) -> sqlite.Insert | postgresql.Insert:
    """An INSERT that knows ON CONFLICT, which is spelt alike in both dialects but not shared by them."""
    return postgresql.insert(table) if conn.dialect.name == "postgresql" else sqlite.insert(table)
