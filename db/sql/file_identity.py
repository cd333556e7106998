"""Whether the file at a database's path is still the one that was opened.

SQLite goes on writing into a file that was deleted or replaced: everything after that would be acknowledged
and lost.
"""

import contextlib
import os
import sqlite3
from pathlib import Path

from ..errors import StoreUnavailable

# SQLite's smallest page; the length of a database file is a multiple of it.
_SMALLEST_PAGE = 512


class FileIdentity:
    """The file at `path`, by device and inode, from `pin` on. Safe to use from several threads."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._pinned: tuple[int, int] | None = None

    def pin(self) -> None:
        """From now on the file that is there is the right one."""
        status = os.stat(self._path)
        self._pinned = (status.st_dev, status.st_ino)

    def check(self) -> None:
        """One call to the system. StoreUnavailable unless the pinned file is there and may be a database."""
        if self._pinned is None:
            return
        try:
            status = os.stat(self._path)
        except OSError as error:
            raise self._lost(f"it is not there any more ({error.strerror})") from None
        if (status.st_dev, status.st_ino) != self._pinned:
            raise self._lost("another file is in its place")
        if status.st_size == 0 or status.st_size % _SMALLEST_PAGE:
            raise self._lost("it was overwritten and is no database any more")

    def check_content(self) -> None:
        """`check`, and that the file still begins as a database does, whatever the write-ahead log holds."""
        if self._pinned is None:
            return
        self.check()
        # By SQLite itself: to open and close the file beside it would drop the locks of this process.
        address = f"{self._path.absolute().as_uri()}?mode=ro&immutable=1"
        try:
            with contextlib.closing(sqlite3.connect(address, uri=True)) as connection:
                connection.execute("PRAGMA schema_version").fetchone()
        except sqlite3.Error as error:
            # A checkpoint at this moment may make the rest look malformed, but never the header.
            if error.sqlite_errorname == "SQLITE_NOTADB":
                raise self._lost(f"it was overwritten and is no database any more ({error})") from None

    def _lost(self, how: str) -> StoreUnavailable:
        return StoreUnavailable(
            f"{self._path}: the database that was opened is gone: {how}. "
            "Put the file back, or restart on another database"
        )
