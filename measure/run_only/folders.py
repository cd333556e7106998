"""Temporary folders that are cleaned up even when their owner was killed: by the next one who makes one."""

from __future__ import annotations

import contextlib
import fcntl
import os
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

_YOUNG_SECONDS = 60.0


@contextlib.contextmanager
def folder_of(prefix: str, where: Path | None = None) -> Iterator[Path]:
    """A new folder, locked while this process lives; those of its prefix that nobody holds are removed."""
    parent = Path(tempfile.gettempdir()) if where is None else where
    folder = Path(tempfile.mkdtemp(prefix=prefix, dir=parent))
    try:
        with (folder / "lock").open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            now = folder.stat().st_mtime  # by the clock of the file system, with which the others are dated
            for other in parent.glob(f"{prefix}*"):
                if other != folder and _is_left(other / "lock", now):
                    shutil.rmtree(other, ignore_errors=True)
            yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _is_left(lock: Path, now: float) -> bool:
    """Whether its owner has ended. One without a lock may be about to take it."""
    try:
        with lock.open() as file:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        return True
    except FileNotFoundError:
        with contextlib.suppress(OSError):
            return now - os.stat(lock.parent).st_mtime > _YOUNG_SECONDS
        return False
    except OSError:
        return False
