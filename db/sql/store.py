"""The store on one SQL database."""

from types import TracebackType
from typing import Self

from sqlalchemy import text

from ..errors import SchemaError, StoreUnavailable
from .catalog import CatalogPart
from .clock import now_of
from .database import Database, path_of
from .events import EventPart
from .history import HistoryPart
from .imports import ImportPart
from .job_control import JobControlPart
from .jobs import JobPart
from .leases import LeasePart
from .outside import OutsidePart
from .pins import PinPart
from .retimings import RetimingPart
from .schedules import SchedulePart
from .schema import SCHEMA, Schema
from .serving import ServingPart
from .tokens import TokenPart
from .trials import TrialPart
from .workers import WorkerPart


class SqlStore(
    CatalogPart,
    JobPart,
    JobControlPart,
    EventPart,
    TrialPart,
    HistoryPart,
    RetimingPart,
    OutsidePart,
    SchedulePart,
    PinPart,
    ImportPart,
    WorkerPart,
    LeasePart,
    TokenPart,
    ServingPart,
):
    """Implements `Store`. Safe to use from several threads and processes, not across a fork."""

    @classmethod
    def open(cls, url: str, create: bool = True, schema: Schema = SCHEMA) -> Self:
        """See `open_store`."""
        database = _opened(url, create)
        try:
            if schema.check(database) is None:
                if not create:
                    raise SchemaError(f"{database.path} is empty: run `tilewright db upgrade`")
                database.use_wal()
                schema.create(database)
                schema.check(database)
            else:
                database.use_wal()
            database.identity.pin()
        except BaseException:
            database.close()
            raise
        return cls(database)

    def ping(self) -> None:
        with self._database.read() as conn:
            conn.execute(text("SELECT 1"))
        self._database.identity.check_content()

    def schema_version(self) -> str:
        with self._database.read() as conn:
            return str(SCHEMA.version(self._database, conn))

    def now(self) -> float:
        with self._database.read() as conn:
            return now_of(conn)

    def close(self) -> None:
        self._database.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


def upgrade(url: str, schema: Schema = SCHEMA) -> tuple[str | None, str]:
    """See `tilewright.db.upgrade`."""
    database = _opened(url, create=True)
    try:
        database.use_wal()
        return schema.upgrade(database)
    finally:
        database.close()


def _opened(url: str, create: bool) -> Database:
    path = path_of(url)
    if not path.parent.is_dir():
        raise StoreUnavailable(f"{path}: there is no directory {path.parent}")
    if not create and not path.exists():
        raise StoreUnavailable(f"{path}: there is no such database")
    return Database(path)
