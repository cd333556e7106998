"""The database's clock, the only one that decides what has expired."""

from typing import Any

from sqlalchemy import Connection, Double, select
from sqlalchemy.ext.compiler import compiles
from sqlalchemy.sql.functions import FunctionElement


class epoch_now(FunctionElement[float]):
    """Seconds since 1970-01-01 UTC, with fractions, by the database's clock."""

    type = Double()
    inherit_cache = True


@compiles(epoch_now, "sqlite")
def _sqlite(element: epoch_now, compiler: Any, **options: Any) -> str:
    # unixepoch('subsec') needs SQLite 3.42; 2440587.5 is the Julian day of 1970-01-01.
    return "((julianday('now') - 2440587.5) * 86400.0)"


@compiles(epoch_now, "postgresql")
def _postgresql(element: epoch_now, compiler: Any, **options: Any) -> str:
    # now() stands still within a transaction.
    return "extract(epoch FROM clock_timestamp())::double precision"


def now_of(conn: Connection) -> float:
    return float(conn.execute(select(epoch_now())).scalar_one())
