"""What people do to a whole database. Nothing here loads a SQL library before it is called."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from .need import need_sql
from .queue import is_postgres, prepare_queue


@dataclass(frozen=True, slots=True)
class Copied:
    """What a backup or a restore has copied: its schema, and how many rows of how many tables."""

    schema: str
    tables: int
    rows: int


@dataclass(frozen=True, slots=True)
class Problem:
    """Something that must never be in a database: which rule, and where it is broken."""

    rule: str
    where: str


@dataclass(frozen=True, slots=True)
class Pruned:
    """What was forgotten, or would be."""

    jobs: int
    trials: int
    events: int
    leases: int


def upgrade(url: str) -> tuple[str | None, str]:
    """Bring a database to this program's schema, in one transaction; returns the versions before and after.

    Before is None for a database that was empty. Without effect on one that is current.
    """
    need_sql()
    from .sql.store import upgrade as upgrade_sql

    versions = upgrade_sql(url)
    if is_postgres(url):
        prepare_queue(url, upgrade=True)
    return versions


def check_downgrade(url: str, to: str) -> None:
    """Raises InvalidValue where `downgrade` would, for a version that is not there or newer; SchemaError,
    StoreUnavailable. Changes nothing."""
    need_sql()
    from .sql.store import check_downgrade as check_sql

    check_sql(url, to)


def downgrade(url: str, to: str) -> tuple[str, str]:
    """Bring a database back to an older schema, in one transaction; the versions before and after.

    What the older schema has no place for is lost. InvalidValue for a version that is not there or newer,
    Conflict where servers use the database.
    """
    need_sql()
    from .sql.store import downgrade as downgrade_sql

    return downgrade_sql(url, to)


def backup(url: str, to: Path, portable: bool = False) -> Copied:
    """Copy a database, as it is at one moment, into a new file, while others use it.

    SQLite's copy is a database again, unless `portable`; else it is JSON lines, which `restore` reads into
    either kind. The file is its owner's alone. Conflict where it is there already.
    """
    need_sql()
    from .sql.upkeep.backup import backup as backup_sql

    return backup_sql(url, to, portable)


def restore(source: Path, url: str, replace: bool = False) -> Copied:
    """Read a backup of either form into a database of either kind, whose schema becomes this program's.

    All or nothing. Conflict where the database holds rows, unless they are to be replaced, or where servers
    use it; InvalidValue for a file that is no whole backup, SchemaError for one of a newer program.
    """
    need_sql()
    from .sql.upkeep.restore import restore as restore_sql

    return restore_sql(source, url, replace)


def check(url: str, key_of: Callable[[str], str] | None = None) -> list[Problem]:
    """Look a database over; empty where nothing is wrong. `key_of` computes a workload's key of its program,
    and raises ValueError for one that is none."""
    need_sql()
    from .sql.upkeep.check import check as check_sql

    return check_sql(url, key_of)


def prune(url: str, older_than: float, dry_run: bool = False) -> Pruned:
    """Forget what ended more than `older_than` seconds ago and nothing rests on; see `Store.prune`."""
    need_sql()
    from .sql.store import SqlStore

    with SqlStore.open(url, create=False) as store:
        return store.prune(older_than, dry_run)
