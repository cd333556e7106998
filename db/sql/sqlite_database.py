"""One SQLite file: an engine that writes, one that reads, and what their errors mean.

A write transaction takes the lock when it begins (BEGIN IMMEDIATE) and is short; a reader never takes it and
is never blocked by it (WAL). Acknowledged means on disk (synchronous=FULL).
"""

import contextlib
import os
import random
import sqlite3
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from sqlalchemy import Connection, Engine, create_engine, event
from sqlalchemy.exc import DBAPIError, IntegrityError
from sqlalchemy.pool import QueuePool

from ..disk_full import is_full
from ..errors import StoreError, StoreFull, StoreUnavailable
from ..leadership import Alone, Leadership
from ..mark import Mark
from .database import Database, conflict_of, explained, refuse_bad_text
from .file_identity import FileIdentity
from .file_marks import FileMarks
from .server_lock import server_lock

_SYNCHRONOUS = "FULL"  # a commit returns when it is on disk
_BESIDE = ("-journal", "-shm")
_BUSY_TIMEOUT_MS = 5_000
_LOCK_SECONDS = 30.0
_LOCKED = {sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED, sqlite3.SQLITE_PROTOCOL}
_NOT_A_DATABASE = {sqlite3.SQLITE_NOTADB, sqlite3.SQLITE_CORRUPT}
_UNUSABLE = {sqlite3.SQLITE_PERM, sqlite3.SQLITE_READONLY, sqlite3.SQLITE_IOERR, sqlite3.SQLITE_CANTOPEN}


class SqliteDatabase(Database):
    """Connections to one database file; `made`: one that this process has made for it.

    Once its `identity` is pinned, every transaction makes sure that it is still that file. A file that this
    process may not write, or not write beside, is `read_only`.
    """

    def __init__(self, path: Path, made: bool = False) -> None:
        self.path = path
        self._made = made
        self.name = str(path)
        self.identity = FileIdentity(path)
        self.read_only = path.exists() and not _is_writable(path)
        address = _read_only_address(path) if self.read_only else str(path.absolute())
        self._writer = _engine(address, "BEGIN IMMEDIATE")
        self._reader = _engine(address, "BEGIN", "PRAGMA query_only = ON")
        self._marks = FileMarks(lambda: _connect(address, "PRAGMA query_only = ON"))
        # Threads of one process take turns here; SQLite's own waiting sleeps up to 100 ms and is not fair.
        self._turn = threading.Lock()

    @contextlib.contextmanager
    def write(self) -> Iterator[Connection]:
        """A transaction that holds the write lock from its beginning; committed unless one raises."""
        self.refuse_read_only()
        self.identity.check_content()
        with self._turn, self.explained(), self._writer.connect() as conn:
            _patiently(conn.begin)
            yield conn
            self.identity.check()  # what is committed is acknowledged
            conn.commit()

    @contextlib.contextmanager
    def read(self) -> Iterator[Connection]:
        """A transaction that sees one state of the database and cannot write."""
        self.identity.check()
        with self.explained(), self._reader.connect() as conn:
            yield conn

    def migrate(self) -> contextlib.AbstractContextManager[Connection]:
        return self.write()  # there is one writer

    def take_time(self, conn: Connection) -> None:
        return  # no statement has a limit

    def damages(self, conn: Connection) -> list[str]:
        said = [row[0] for row in conn.exec_driver_sql("PRAGMA integrity_check") if row[0] != "ok"]
        lost = conn.exec_driver_sql("PRAGMA foreign_key_check").all()
        return said + [f"{row[0]} row {row[1]} refers to a row of {row[2]} that is not there" for row in lost]

    def prepare(self) -> None:
        self.use_wal()

    def pin(self) -> None:
        self.identity.pin()

    def check(self) -> None:
        with self.read() as conn:
            conn.exec_driver_sql("SELECT 1")
        self.identity.check_content()

    def serving(self, who: str) -> contextlib.AbstractContextManager[None]:
        self.refuse_read_only()
        return server_lock(self.path, who)

    def unserved(self, who: str) -> contextlib.AbstractContextManager[None]:
        return self.serving(who)

    def mark(self) -> Mark:
        self.identity.check()
        with self.explained():
            return Mark(self._marks.read())

    def leadership(self, silence: float) -> Leadership:
        return Alone()  # `serving` has made sure of it

    def use_wal(self) -> None:
        """Switch the file to write-ahead logging, which is kept in it; no effect where it is on, nor on a
        read-only file."""
        if self.read_only:
            return
        with self._turn, self.explained(), contextlib.closing(_connect(str(self.path))) as conn:
            mode = _patiently(lambda: conn.execute("PRAGMA journal_mode = WAL").fetchone()[0])
        if mode != "wal":
            raise StoreUnavailable(
                f"{self.path}: SQLite cannot keep a write-ahead log here (journal mode {mode}); "
                "put the database on a local disk"
            )

    def refuse_read_only(self) -> None:
        if self.read_only:
            raise StoreUnavailable(
                f"{self.path}: cannot be written, or no file beside it: it is read-only here"
            )

    def close(self) -> None:
        self._marks.close()
        self._writer.dispose()
        self._reader.dispose()

    def discard(self) -> None:
        self.close()
        if self._made and _is_empty(self.path):
            for each in (self.path, *(Path(f"{self.path}{end}") for end in _BESIDE)):
                each.unlink(missing_ok=True)

    def explained(self) -> contextlib.AbstractContextManager[None]:
        return explained(self._explain, DBAPIError, sqlite3.Error)

    def _explain(self, error: Exception) -> StoreError | None:
        """What an error of the driver means to a caller; None: a bug of this program."""
        if isinstance(error, IntegrityError):
            return conflict_of(error)
        code = _code(error)
        said = error.orig if isinstance(error, DBAPIError) else error
        if code in _LOCKED:
            return StoreUnavailable(f"{self.path}: stayed locked by other processes for {_LOCK_SECONDS:g} s")
        if code == sqlite3.SQLITE_FULL:
            return StoreFull(f"{self.path}: the disk is full; nothing of this call was stored")
        if is_full(error):
            return StoreFull(f"{self.path}: takes no more ({said}); nothing of this call was stored")
        if code in _NOT_A_DATABASE:
            return StoreUnavailable(f"{self.path}: is not an intact SQLite database ({said})")
        if code in _UNUSABLE:
            return StoreUnavailable(f"{self.path}: cannot be read and written, nor files beside it ({said})")
        return None


def _is_empty(path: Path) -> bool:
    """Whether the file is there and no table was ever stored in it, nor is another process at it.

    Nothing is written: there may be no room for a file beside it.
    """
    if Path(f"{path}-wal").exists():  # the last connection to it would have removed it
        return False
    try:
        address = f"{path.absolute().as_uri()}?mode=ro&immutable=1"
        with contextlib.closing(sqlite3.connect(address, uri=True)) as conn:
            return conn.execute("SELECT 1 FROM sqlite_master").fetchone() is None
    except sqlite3.Error:
        return False


def _is_writable(path: Path) -> bool:
    """Whether SQLite can write the file, and its log beside it."""
    return os.access(path, os.W_OK) and os.access(path.parent, os.W_OK)


def _read_only_address(path: Path) -> str:
    """Without a log nobody writes the file here, and SQLite needs no file beside it to read it."""
    log = path.with_name(path.name + "-wal")
    alone = "" if log.exists() and log.stat().st_size else "&immutable=1"
    return f"{path.absolute().as_uri()}?mode=ro{alone}"


def _engine(address: str, begin: str, *pragmas: str) -> Engine:
    engine = create_engine(
        "sqlite://",
        creator=lambda: _connect(address, *pragmas),
        poolclass=QueuePool,
        pool_size=8,
        max_overflow=64,
    )

    refuse_bad_text(engine)

    @event.listens_for(engine, "begin")
    def _(conn: Connection) -> None:
        conn.exec_driver_sql(begin)

    return engine


def _connect(address: str, *pragmas: str) -> sqlite3.Connection:
    # isolation_level None: the driver begins nothing by itself; the events of the engine do.
    conn = sqlite3.connect(
        address,
        timeout=_BUSY_TIMEOUT_MS / 1000,
        isolation_level=None,
        check_same_thread=False,
        uri=address.startswith("file:"),
    )
    try:
        for pragma in ("PRAGMA foreign_keys = ON", f"PRAGMA synchronous = {_SYNCHRONOUS}", *pragmas):
            _patiently(lambda statement=pragma: conn.execute(statement))
    except BaseException:
        conn.close()
        raise
    return conn


def _patiently(attempt: Any) -> Any:
    """Call until the database is not locked, for at most _LOCK_SECONDS.

    SQLite does not wait by itself where waiting could deadlock, as when processes switch to WAL at once.
    """
    deadline = time.monotonic() + _LOCK_SECONDS
    while True:
        try:
            return attempt()
        except (DBAPIError, sqlite3.Error) as e:
            if _code(e) not in _LOCKED or time.monotonic() > deadline:
                raise
            time.sleep(random.uniform(0.002, 0.02))


def _code(error: Exception) -> int | None:
    """SQLite's primary result code."""
    orig = error.orig if isinstance(error, DBAPIError) else error
    code = getattr(orig, "sqlite_errorcode", None)
    return None if code is None else code & 0xFF
