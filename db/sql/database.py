"""What the store asks of the database beneath it; one implementation for each kind."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from typing import Any

from sqlalchemy import Connection, Engine, event
from sqlalchemy.exc import IntegrityError

from ..errors import Conflict, InvalidValue, StoreError, StoreUnavailable
from ..leadership import Leadership
from ..mark import Mark


class TryAgain(StoreUnavailable):
    """The database undid a transaction for the sake of another one; the same call may succeed now."""


class Database(ABC):
    """Connections to one database. Safe to use from several threads, not across a fork.

    Whatever the driver raises within `write` and `read` is told as StoreUnavailable, StoreFull, Conflict or
    InvalidValue, of which TryAgain is met by calling again; anything else is a bug of this program.
    """

    name: str
    """How messages call it; without a password."""

    @abstractmethod
    def write(self) -> AbstractContextManager[Connection]:
        """A transaction that may change rows; committed unless one raises."""

    @abstractmethod
    def read(self) -> AbstractContextManager[Connection]:
        """A transaction that sees one state of the database and cannot write."""

    @abstractmethod
    def explained(self) -> AbstractContextManager[None]:
        """Tells within it what the driver raises as `write` and `read` do."""

    @abstractmethod
    def migrate(self) -> AbstractContextManager[Connection]:
        """A `write` beside which no other process migrates."""

    @abstractmethod
    def take_time(self, conn: Connection) -> None:
        """Let the statements of a transaction take as long as they need."""

    @abstractmethod
    def damages(self, conn: Connection) -> list[str]:
        """What the database itself finds wrong with what it keeps."""

    @abstractmethod
    def prepare(self) -> None:
        """What has to be so before tables are made or used; no effect where it is so."""

    @abstractmethod
    def pin(self) -> None:
        """From now on, only the database that is there now is the right one."""

    @abstractmethod
    def check(self) -> None:
        """StoreUnavailable unless the database answers and is the one that was pinned."""

    @abstractmethod
    def serving(self, who: str) -> AbstractContextManager[None]:
        """See `Store.serving`."""

    @abstractmethod
    def unserved(self, who: str) -> AbstractContextManager[None]:
        """While no server uses it: a file is locked meanwhile, a server of PostgreSQL is asked once. Raises
        Conflict that names those that do."""

    @abstractmethod
    def mark(self) -> Mark:
        """See `Store.mark`."""

    @abstractmethod
    def leadership(self, silence: float) -> Leadership:
        """See `Store.leadership`."""

    def discard(self) -> None:
        """`close`, after what failed to fill the database: a file that this process has made for it, and in
        which nothing was stored, is gone."""
        self.close()

    @abstractmethod
    def close(self) -> None:
        """Give up all connections. May be repeated."""


@contextmanager
def explained(explain: Callable[[Exception], StoreError | None], *kinds: type[Exception]) -> Iterator[None]:
    """Raise what `explain` makes of an error of these kinds, or the error itself where that is None."""
    try:
        yield
    except kinds as error:
        said = explain(error)
        if said is None:
            raise
        raise said from error


def conflict_of(error: IntegrityError) -> Conflict:
    said = str(error.orig).splitlines() or [""]
    return Conflict(f"another writer was first: {said[0]}")


def refuse_bad_text(engine: Engine) -> None:
    """Let no text reach the driver that not every database holds, so that all of them answer alike."""

    @event.listens_for(engine, "before_cursor_execute")
    def _(conn: Connection, cursor: Any, statement: str, parameters: Any, context: Any, many: bool) -> None:
        for row in parameters if many else (parameters,):
            _check_row(row)


def _check_row(row: Mapping[str, Any] | Sequence[Any]) -> None:
    for value in row.values() if isinstance(row, Mapping) else row:
        if not isinstance(value, str):
            continue
        if "\0" in value:
            raise InvalidValue("text", "holds a NUL character")
        if not value.isascii():
            try:
                value.encode()
            except UnicodeEncodeError:
                raise InvalidValue("text", "holds half of a surrogate pair and is no Unicode text") from None
