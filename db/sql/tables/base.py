"""What all tables share: how their constraints are named, a number that counts up, an index of some rows."""

from typing import Any

from sqlalchemy import BigInteger, Column, Index, Integer, MetaData

metadata = MetaData(
    naming_convention={
        "pk": "pk_%(table_name)s",
        "fk": "fk_%(table_name)s_%(column_0_name)s",
        "uq": "uq_%(table_name)s_%(column_0_N_name)s",
        "ck": "ck_%(table_name)s_%(constraint_name)s",
    }
)

# SQLite counts up only an INTEGER primary key.
Counter = BigInteger().with_variant(Integer, "sqlite")


def index_known(name: str, column: Column[Any]) -> Index:
    """An index of the rows that have something there: what refers to a row is found by it, and the others
    neither make it longer nor let a plan believe that a value is as frequent as none."""
    known = column.is_not(None)
    return Index(name, column, sqlite_where=known, postgresql_where=known)
