"""How an operating system and the drivers of databases say that a disk takes no more."""

import errno
import sqlite3

from .errors import StoreFull

_OF_SYSTEM = {errno.ENOSPC, errno.EDQUOT, errno.EFBIG}
_OF_SQLITE = {
    sqlite3.SQLITE_FULL,
    sqlite3.SQLITE_IOERR_WRITE,  # a quota, or a limit of the process
    sqlite3.SQLITE_IOERR_SHMSIZE,  # no room for the file that its processes share
}
_OF_POSTGRES = {"53100", "53400"}  # disk_full, configuration_limit_exceeded (temporary files)


def is_full(error: BaseException | None) -> bool:
    """Whether the error says that a disk is full, a quota used up, or that files may not grow further.

    It may be an OSError, an error of a driver, or one of SQLAlchemy's around it. No driver is loaded for it.
    """
    if isinstance(error, OSError):
        return isinstance(error, StoreFull) or error.errno in _OF_SYSTEM
    said = getattr(error, "orig", None) or error
    if getattr(said, "sqlstate", None) in _OF_POSTGRES:
        return True
    return getattr(said, "sqlite_errorcode", None) in _OF_SQLITE
