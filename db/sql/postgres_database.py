"""A database on a server of PostgreSQL: its connections, and what their errors mean.

A write is READ COMMITTED and locks the rows that it decides by (see `locks`); a read sees one state of the
database. Nothing waits for ever: connecting, waiting for a lock, one statement and a server that fell silent
have their limits.
"""

import contextlib
import select
from collections.abc import Iterator, Sequence
from typing import Any

import psycopg
from sqlalchemy import URL, Connection, Engine, create_engine, event, text
from sqlalchemy.exc import DBAPIError, DisconnectionError, IntegrityError
from sqlalchemy.exc import TimeoutError as PoolTimeout

from ..disk_full import is_full
from ..errors import Conflict, InvalidValue, StoreError, StoreFull, StoreUnavailable
from ..leadership import Leadership
from ..mark import Mark
from .advisory_leadership import AdvisoryLeadership
from .database import Database, TryAgain, conflict_of, explained, refuse_bad_text
from .snapshot_marks import SnapshotMarks

OLDEST = 15
"""The oldest major version of PostgreSQL that is tested."""

_CONNECT_SECONDS = 5
_LOCK_MS = 10_000
_STATEMENT_MS = 30_000
_IDLE_MS = 60_000
_SILENT_MS = 15_000
_CONNECTIONS = 4
_MORE_CONNECTIONS = 16
_MIGRATING = 0x74696C65  # "tile": the advisory lock of who changes the schema
_AGAIN = {"40001", "40P01"}  # serialization_failure, deadlock_detected
_LATE = {"55P03", "57014"}  # lock_not_available, query_canceled
_AWAY = ("08", "57P", "53", "58", "28", "3D", "25006", "XX")

# What only servers and search runners keep open.
_SERVERS = text(
    "SELECT application_name FROM pg_stat_activity WHERE datname = current_database()"
    " AND application_name IN ('tilewright leader', 'tilewright marks', 'tilewright queue')"
)


class PostgresDatabase(Database):
    """Connections to one database of a server."""

    def __init__(self, url: URL) -> None:
        self._url = url.set(drivername="postgresql+psycopg")
        self.name = url.set(drivername="postgresql").render_as_string(hide_password=True)
        self._pinned: int | None = None
        self._marks = SnapshotMarks(self._address, self.name)
        self._engine = _engine(self._url)
        event.listen(self._engine, "connect", self._greet)
        self._reader = self._engine.execution_options(
            isolation_level="REPEATABLE READ", postgresql_readonly=True
        )

    @contextlib.contextmanager
    def write(self) -> Iterator[Connection]:
        with self.explained(), self._engine.connect() as conn, conn.begin():
            yield conn

    @contextlib.contextmanager
    def read(self) -> Iterator[Connection]:
        with self.explained(), self._reader.connect() as conn:
            yield conn

    @contextlib.contextmanager
    def migrate(self) -> Iterator[Connection]:
        with self.write() as conn:
            # Rows may have to be rewritten, and another process' migration to be waited for.
            self.take_time(conn)
            conn.exec_driver_sql("SET LOCAL lock_timeout = '5min'")
            conn.exec_driver_sql(f"SELECT pg_advisory_xact_lock({_MIGRATING})")
            yield conn

    def take_time(self, conn: Connection) -> None:
        conn.exec_driver_sql("SET LOCAL statement_timeout = 0")
        conn.exec_driver_sql("SET LOCAL idle_in_transaction_session_timeout = 0")

    def damages(self, conn: Connection) -> list[str]:
        """PostgreSQL holds its constraints by itself; those that a restore has left unproved are told."""
        unproved = "SELECT conrelid::regclass || '.' || conname FROM pg_constraint WHERE NOT convalidated"
        broken = "SELECT indexrelid::regclass::text FROM pg_index WHERE NOT indisvalid"
        names = [row[0] for query in (unproved, broken) for row in conn.exec_driver_sql(query)]
        return [f"{name} is not valid" for name in names]

    def prepare(self) -> None:
        with self.read() as conn:
            refuse_old(self.name, _version_of(conn))

    def pin(self) -> None:
        with self.read() as conn:
            self._pinned = _identity(conn.connection.dbapi_connection)

    def check(self) -> None:
        with self.read() as conn:
            self._refuse_other(_identity(conn.connection.dbapi_connection))

    @contextlib.contextmanager
    def serving(self, who: str) -> Iterator[None]:
        """Several servers share a database: what they do is kept apart by locks on rows."""
        yield

    @contextlib.contextmanager
    def unserved(self, who: str) -> Iterator[None]:
        with self.read() as conn:
            names: Sequence[str] = conn.execute(_SERVERS).scalars().all()
        if names:
            said = ", ".join(sorted(set(names)))
            raise Conflict(
                f"{self.name} is served: connections of servers are open ({said}); end the servers and "
                "search runners first"
            )
        yield

    def mark(self) -> Mark:
        return self._marks.read()

    def leadership(self, silence: float) -> Leadership:
        return AdvisoryLeadership(self._address, self.name, silence)

    @property
    def _address(self) -> str:
        """The url as the driver reads it."""
        return self._url.set(drivername="postgresql").render_as_string(hide_password=False)

    def close(self) -> None:
        self._marks.close()
        self._engine.dispose()

    def _greet(self, connection: Any, record: Any) -> None:
        """Each new connection, which may have been made after the database was dropped and made anew."""
        if self._pinned is not None:
            self._refuse_other(_identity(connection))
            connection.rollback()

    def _refuse_other(self, identity: int) -> None:
        if self._pinned not in (None, identity):
            raise StoreUnavailable(
                f"{self.name}: the database that was opened is gone: another one is in its place. "
                "Put it back, or restart on this one"
            )

    def explained(self) -> contextlib.AbstractContextManager[None]:
        return explained(self._explain, DBAPIError, PoolTimeout)

    def _explain(self, error: Exception) -> StoreError | None:
        """What an error of the driver means to a caller; None: a bug of this program."""
        if isinstance(error, PoolTimeout):
            return StoreUnavailable(
                f"{self.name}: all {_CONNECTIONS + _MORE_CONNECTIONS} connections of this process are in use"
            )
        if isinstance(error, IntegrityError):
            return conflict_of(error)
        assert isinstance(error, DBAPIError)
        state = getattr(error.orig, "sqlstate", None)
        said = _first_line(error)
        if state in _AGAIN:
            return TryAgain(f"{self.name}: too many calls want the same rows ({said})")
        if state in _LATE:
            return StoreUnavailable(f"{self.name}: did not get to this call in time ({said})")
        if is_full(error):
            return StoreFull(f"{self.name}: the disk is full; nothing of this call was stored")
        if state is None:
            return self._explain_driver(error, said)
        if state == "42P01":
            return StoreUnavailable(f"{self.name}: its tables are not there any more ({said})")
        if state.startswith("22"):
            return InvalidValue("value", f"cannot be stored: {said}")
        if state.startswith(_AWAY):
            return StoreUnavailable(f"{self.name}: cannot be used ({said})")
        return None

    def _explain_driver(self, error: DBAPIError, said: str) -> StoreError | None:
        """An error that the server has not said: it is not there, or a value is none that it knows."""
        kind = type(error.orig).__name__
        if kind in ("OperationalError", "InterfaceError", "ConnectionTimeout"):
            return StoreUnavailable(f"{self.name}: cannot be reached ({said})")
        return InvalidValue("value", f"cannot be stored: {said}") if kind == "DataError" else None


def refuse_old(name: str, version: int) -> None:
    """StoreUnavailable for a server that is too old; `version` as PostgreSQL tells it, such as 150004."""
    if version // 10_000 < OLDEST:
        found = f"{version // 10_000}.{version % 10_000}"
        raise StoreUnavailable(f"{name}: is PostgreSQL {found}; tilewright needs {OLDEST} or newer")


def _engine(url: URL) -> Engine:
    engine = create_engine(
        url,
        pool_size=_CONNECTIONS,
        max_overflow=_MORE_CONNECTIONS,
        pool_timeout=_CONNECT_SECONDS,
        hide_parameters=True,
        connect_args={
            "connect_timeout": _CONNECT_SECONDS,
            "application_name": "tilewright",
            "keepalives_idle": _SILENT_MS // 1000,
            "keepalives_interval": 3,
            "keepalives_count": 3,
            "tcp_user_timeout": _SILENT_MS,
            "options": f"-c statement_timeout={_STATEMENT_MS} -c lock_timeout={_LOCK_MS} "
            f"-c idle_in_transaction_session_timeout={_IDLE_MS}",
        },
    )
    refuse_bad_text(engine)
    event.listen(engine, "checkout", _replace_broken)
    return engine


def _replace_broken(connection: Any, record: Any, proxy: Any) -> None:
    """Let the pool make another connection in the place of one that has ended since it was used, by a look at
    its socket: a server that has nothing to say on an idle one has not ended it. Asking it each time would
    cost as much as a statement."""
    try:
        socket = select.poll()  # select() knows no number above 1023
        socket.register(connection.fileno(), select.POLLIN)
        quiet = not socket.poll(0)
        if not quiet:
            connection.execute("SELECT 1")
            connection.rollback()
    except (OSError, psycopg.Error) as error:
        raise DisconnectionError("the connection has ended") from error


def _version_of(conn: Connection) -> int:
    return int(conn.exec_driver_sql("SHOW server_version_num").scalar_one())


def _identity(connection: Any) -> int:
    """A number that a database keeps as long as it is not dropped."""
    row = connection.execute("SELECT oid FROM pg_database WHERE datname = current_database()").fetchone()
    return int(row[0])


def _first_line(error: DBAPIError) -> str:
    lines = str(error.orig).strip().splitlines()
    return lines[0].strip() if lines else type(error.orig).__name__
