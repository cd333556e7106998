"""Whether anything in a SQLite file has changed, by the version of its data that a connection sees."""

import secrets
import sqlite3
import threading
from collections.abc import Callable


class FileMarks:
    """Reads marks on a connection of its own, which writes nothing: each commit of another one changes what
    it sees. Safe to use from several threads."""

    def __init__(self, connect: Callable[[], sqlite3.Connection]) -> None:
        self._connect = connect
        self._lock = threading.Lock()
        self._connection: sqlite3.Connection | None = None
        self._connected = ""

    def read(self) -> str:
        """See `Store.mark`. Raises what the driver raises."""
        with self._lock:
            if self._connection is None:
                self._connection = self._connect()
                # The numbers of two connections have nothing to do with each other.
                self._connected = secrets.token_hex(4)
            (version,) = self._connection.execute("PRAGMA data_version").fetchone()
            return f"{self._connected} {version}"

    def close(self) -> None:
        with self._lock:
            if self._connection is not None:
                self._connection.close()
                self._connection = None
