"""Calls of one thread that are stored together or not at all."""

import contextlib
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager

from sqlalchemy import Connection, NestedTransaction
from sqlalchemy.exc import DBAPIError

from ..errors import StoreUnavailable
from ..leadership import Leadership
from ..mark import Mark
from .database import Database

Observer = Callable[[str, float], None]
"""Told of each transaction: `read` or `write`, and the seconds from asking for it to its end."""


class UnitDatabase(Database):
    """Another database, of which the calls of a thread may share a transaction, and which can be watched."""

    def __init__(self, inner: Database) -> None:
        self.inner = inner
        self.name = inner.name
        self.observer: Observer | None = None
        self._local = threading.local()

    @contextlib.contextmanager
    def together(self) -> Iterator[None]:
        """What this thread writes within is one transaction, which begins with its first write.

        One within another is part of it."""
        if self._unit() is not None:
            yield
            return
        with contextlib.ExitStack() as stack:
            self._local.unit = _Unit(stack, self._watched_write)
            try:
                yield
            finally:
                self._local.unit = None

    @contextlib.contextmanager
    def write(self) -> Iterator[Connection]:
        unit = self._unit()
        if unit is None:
            with self._watched_write() as conn:
                yield conn
            return
        conn = unit.begun()
        # A savepoint: where the caller goes on after an error, nothing of the call that failed is stored.
        with self.inner.explained():
            savepoint = conn.begin_nested()
            try:
                yield conn
            except BaseException:
                unit.undo(savepoint)
                raise
            savepoint.commit()

    @contextlib.contextmanager
    def read(self) -> Iterator[Connection]:
        unit = self._unit()
        if unit is not None and unit.conn is not None:
            with self.inner.explained():
                yield unit.conn
            return
        with self._watched("read"), self.inner.read() as conn:
            yield conn

    def explained(self) -> AbstractContextManager[None]:
        return self.inner.explained()

    def mark(self) -> Mark:
        return self.inner.mark()

    def migrate(self) -> AbstractContextManager[Connection]:
        return self.inner.migrate()

    def take_time(self, conn: Connection) -> None:
        self.inner.take_time(conn)

    def damages(self, conn: Connection) -> list[str]:
        return self.inner.damages(conn)

    def prepare(self) -> None:
        self.inner.prepare()

    def pin(self) -> None:
        self.inner.pin()

    def check(self) -> None:
        self.inner.check()

    def serving(self, who: str) -> AbstractContextManager[None]:
        return self.inner.serving(who)

    def unserved(self, who: str) -> AbstractContextManager[None]:
        return self.inner.unserved(who)

    def leadership(self, silence: float) -> Leadership:
        return self.inner.leadership(silence)

    def close(self) -> None:
        self.inner.close()

    @contextlib.contextmanager
    def _watched_write(self) -> Iterator[Connection]:
        with self._watched("write"), self.inner.write() as conn:
            yield conn

    @contextlib.contextmanager
    def _watched(self, kind: str) -> Iterator[None]:
        if self.observer is None:
            yield
            return
        begun = time.perf_counter()
        try:
            yield
        finally:
            self.observer(kind, time.perf_counter() - begun)

    def _unit(self) -> "_Unit | None":
        return getattr(self._local, "unit", None)


class _Unit:
    def __init__(
        self, stack: contextlib.ExitStack, begin: Callable[[], AbstractContextManager[Connection]]
    ) -> None:
        self._stack = stack
        self._begin = begin
        self._undone = False
        self.conn: Connection | None = None

    def undo(self, savepoint: NestedTransaction) -> None:
        """Go back to a savepoint. A database whose disk is full may have undone the whole transaction, with
        the savepoint; then nothing more can be part of the unit."""
        try:
            savepoint.rollback()
        except DBAPIError:
            self._undone = True

    def begun(self) -> Connection:
        if self._undone:
            raise StoreUnavailable("what was to be stored together was undone by the database: begin anew")
        if self.conn is None:
            self.conn = self._stack.enter_context(self._begin())
        return self.conn
