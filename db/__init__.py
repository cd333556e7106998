"""The store: jobs, trials, leases, workers, tokens and best-known schedules in a SQL database.

Importing this package loads no SQL library; `open_store` and `upgrade` do.
"""

from .address import shown
from .errors import (
    AlreadyComplete,
    Conflict,
    InvalidValue,
    JobOver,
    LeaseLost,
    NotFound,
    SchemaError,
    SettlementMismatch,
    StaleSearch,
    StoreError,
    StoreFull,
    StoreUnavailable,
    Superseded,
)
from .queue import is_postgres, prepare_queue
from .store import Store


def open_store(url: str, create: bool = True) -> Store:
    """The store at `sqlite:///relative/path`, `sqlite:////absolute/path` or
    `postgresql://user:password@host:port/database`; the caller closes it.

    With `create`, a missing or empty database gets the schema, once, however many processes start together.
    Raises InvalidValue for another kind of url, StoreUnavailable for a database that cannot be opened or is
    missing and not to be created, SchemaError for one whose schema is older (naming `tilewright db
    upgrade`), newer, or not tilewright's.
    """
    _need_sql()
    from .sql.store import SqlStore

    return SqlStore.open(url, create=create)


def upgrade(url: str) -> tuple[str | None, str]:
    """Bring a database to this program's schema, in one transaction; returns the versions before and after.

    Before is None for a database that was empty. Without effect on one that is current.
    """
    _need_sql()
    from .sql.store import upgrade as upgrade_sql

    versions = upgrade_sql(url)
    if is_postgres(url):
        prepare_queue(url, upgrade=True)
    return versions


def _need_sql() -> None:
    try:
        import alembic
        import sqlalchemy
    except ModuleNotFoundError as e:
        raise ModuleNotFoundError(
            f"a database needs {e.name}, which is not installed: pip install 'tilewright[store]'", name=e.name
        ) from None
    del alembic, sqlalchemy


__all__ = [
    "AlreadyComplete",
    "Conflict",
    "InvalidValue",
    "JobOver",
    "LeaseLost",
    "NotFound",
    "SchemaError",
    "SettlementMismatch",
    "StaleSearch",
    "Store",
    "StoreError",
    "StoreFull",
    "StoreUnavailable",
    "Superseded",
    "open_store",
    "prepare_queue",
    "shown",
    "upgrade",
]
