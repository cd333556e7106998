"""The database's clock, the only one that decides what has expired."""

from typing import Any

from sqlalchemy import Connection, Double, select
from sqlalchemy.ext.compiler import compiles
from sqlalchemy.sql.functions import FunctionElement


class epoch_now(FunctionElement[float]):
    """Seconds since 1970-01-01 UTC, with fractions, by the database's clock."""

    type = Double()
    inherit_cache = True


class epoch_began(epoch_now):
    """The same of the moment when the transaction began: an index is looked up by it."""

    inherit_cache = True


@compiles(epoch_now, "sqlite")
def _sqlite(element: epoch_now, compiler: Any, **options: Any) -> str:
    # unixepoch('subsec') needs SQLite 3.42; 2440587.5 is the Julian day of 1970-01-01.
    return "((julianday('now') - 2440587.5) * 86400.0)"


@compiles(epoch_now, "postgresql")
def _postgresql(element: epoch_now, compiler: Any, **options: Any) -> str:
    # now() stands still within a transaction.
    return "extract(epoch FROM clock_timestamp())::double precision"


@compiles(epoch_began, "postgresql")
def _postgresql_began(element: epoch_began, compiler: Any, **options: Any) -> str:
    return "extract(epoch FROM now())::double precision"


_NOW = select(epoch_now())


def now_of(conn: Connection) -> float:
    return float(conn.execute(_NOW).scalar_one())
