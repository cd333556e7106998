"""The store on one SQL database."""

import os
from types import TracebackType
from typing import Self

from ..errors import SchemaError
from ..mark import Mark
from .builds import BuildPart
from .catalog import CatalogPart
from .clock import now_of
from .databases import database_of
from .events import EventPart
from .health import HealthPart
from .history import HistoryPart
from .imports import ImportPart
from .job_control import JobControlPart
from .jobs import JobPart
from .leases import LeasePart
from .outside import OutsidePart
from .pins import PinPart
from .pruning import PruningPart
from .retimings import RetimingPart
from .retries import tried_again
from .schedules import SchedulePart
from .schema import SCHEMA, Schema
from .service import ServicePart
from .serving import ServingPart
from .summaries import SummaryPart
from .tokens import TokenPart
from .trials import TrialPart
from .worker_control import WorkerControlPart
from .workers import WorkerPart


@tried_again
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
    WorkerControlPart,
    LeasePart,
    HealthPart,
    TokenPart,
    PruningPart,
    ServicePart,
    ServingPart,
    BuildPart,
    SummaryPart,
):
    """Implements `Store`. Safe to use from several threads and processes, not across a fork."""

    @classmethod
    def open(cls, url: str, create: bool = True, schema: Schema = SCHEMA) -> Self:
        """See `open_store`."""
        database = database_of(url, create)
        try:
            if schema.check(database) is None:
                if not create:
                    raise SchemaError(f"{database.name} is empty: run `tilewright db upgrade`")
                database.prepare()
                schema.create(database)
                schema.check(database)
            else:
                database.prepare()
            database.pin()
        except BaseException:
            database.discard()
            raise
        return cls(database)

    def ping(self) -> None:
        self._database.check()

    def mark(self) -> Mark:
        return self._database.mark()

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
    database = database_of(url, create=True)
    try:
        database.prepare()
        return schema.upgrade(database)
    except BaseException:
        database.discard()
        raise
    finally:
        database.close()


def check_downgrade(url: str, to: str, schema: Schema = SCHEMA) -> None:
    """See `tilewright.db.check_downgrade`."""
    database = database_of(url, create=False)
    try:
        schema.check_downgrade(database, to)
    finally:
        database.close()


def downgrade(url: str, to: str, schema: Schema = SCHEMA) -> tuple[str, str]:
    """See `tilewright.db.downgrade`."""
    database = database_of(url, create=False)
    try:
        database.prepare()
        with database.unserved(f"process {os.getpid()}, a downgrade to {to[:64]}"):
            return schema.downgrade(database, to)
    finally:
        database.close()
