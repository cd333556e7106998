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
    NameRetired,
    NotFound,
    QuotaExceeded,
    SchemaError,
    SettlementMismatch,
    StaleSearch,
    StoreError,
    StoreFull,
    StoreUnavailable,
    Superseded,
)
from .need import need_sql
from .queue import prepare_queue
from .store import Store
from .upkeep import backup, check, check_downgrade, downgrade, prune, restore, upgrade


def open_store(url: str, create: bool = True) -> Store:
    """The store at `sqlite:///relative/path`, `sqlite:////absolute/path` or
    `postgresql://user:password@host:port/database`; the caller closes it.

    With `create`, a missing or empty database gets the schema, once, however many processes start together.
    Raises InvalidValue for another kind of url, StoreUnavailable for a database that cannot be opened or is
    missing and not to be created, SchemaError for one whose schema is older (naming `tilewright db
    upgrade`), newer, or not tilewright's.
    """
    need_sql()
    from .sql.store import SqlStore

    return SqlStore.open(url, create=create)


__all__ = [
    "AlreadyComplete",
    "Conflict",
    "InvalidValue",
    "JobOver",
    "LeaseLost",
    "NameRetired",
    "NotFound",
    "QuotaExceeded",
    "SchemaError",
    "SettlementMismatch",
    "StaleSearch",
    "Store",
    "StoreError",
    "StoreFull",
    "StoreUnavailable",
    "Superseded",
    "backup",
    "check",
    "check_downgrade",
    "downgrade",
    "need_sql",
    "open_store",
    "prepare_queue",
    "prune",
    "restore",
    "shown",
    "upgrade",
]
