"""One server for each database file, kept so by a lock of the operating system beside it."""

import contextlib
import os
import sys
from collections.abc import Iterator
from pathlib import Path

from ..errors import Conflict, StoreUnavailable

_LONGEST = 4096


@contextlib.contextmanager
def server_lock(path: Path, who: str) -> Iterator[None]:
    """Be the only server of this file: see `Store.serving`."""
    # By its real name, so that two links to one database are one database.
    lock = Path(f"{os.path.realpath(path)}.server")
    try:
        # Whoever may not read the database has no business with its lock.
        descriptor = os.open(lock, os.O_RDWR | os.O_CREAT, os.stat(path).st_mode & 0o777)
    except OSError as error:
        raise StoreUnavailable(f"{lock} cannot be written: {error.strerror}") from None
    try:
        if not _locked(descriptor):
            os.lseek(descriptor, 0, os.SEEK_SET)
            holder = os.read(descriptor, _LONGEST).decode("utf-8", "replace").strip()
            raise Conflict(
                f"{path} is served already, by {holder or 'another process'}: stop that server, or name "
                "another database"
            )
        # The file stays when the lock ends: to remove it would let two servers lock two files.
        os.ftruncate(descriptor, 0)
        os.lseek(descriptor, 0, os.SEEK_SET)
        os.write(descriptor, f"{who}\n".encode())
        yield
        os.ftruncate(descriptor, 0)
    finally:
        os.close(descriptor)


if sys.platform == "win32":
    import msvcrt

    def _locked(descriptor: int) -> bool:
        """Whether the lock is this process' now; it ends with the descriptor, however the process ends."""
        os.lseek(descriptor, 1 << 30, os.SEEK_SET)  # what is locked cannot be read
        try:
            msvcrt.locking(descriptor, msvcrt.LK_NBLCK, 1)
        except OSError:
            return False
        return True

else:
    import fcntl

    def _locked(descriptor: int) -> bool:
        """Whether the lock is this process' now; it ends with the descriptor, however the process ends."""
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            return False
        return True
