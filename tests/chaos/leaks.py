"""What a run may have left behind: processes, files, locks."""

from __future__ import annotations

import contextlib
import ctypes
import fcntl
import os
import signal
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import psutil

_PR_SET_CHILD_SUBREAPER = 36
_PATIENCE = 5.0


def adopt_orphans() -> None:
    """What loses its parent becomes a child of this process, so that it is found however well it hides."""
    if sys.platform == "linux":
        ctypes.CDLL(None, use_errno=True).prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)


def processes_left(known: set[int]) -> Iterator[str]:
    """Descendants of this process but those `known`, after a moment; they are ended."""
    deadline = time.monotonic() + _PATIENCE
    while (left := _descendants(known)) and time.monotonic() < deadline:
        time.sleep(0.1)
    for process in left:
        with contextlib.suppress(psutil.NoSuchProcess):
            yield f"process {process.pid} is left: {' '.join(process.cmdline())} ({process.status()})"
            process.send_signal(signal.SIGKILL)


def _descendants(known: set[int]) -> list[psutil.Process]:
    found = []
    for process in psutil.Process().children(recursive=True):
        with contextlib.suppress(psutil.NoSuchProcess):
            if process.pid not in known and process.status() != psutil.STATUS_ZOMBIE:
                found.append(process)
    return found


def files_left(temporary: Path) -> Iterator[str]:
    """Everything below a folder that was taken for the machine's temporary one."""
    for path in sorted(temporary.rglob("*")) if temporary.is_dir() else ():
        yield f"{path} is left"


def locks_held(files: list[Path]) -> Iterator[str]:
    """Of locks of the operating system."""
    for path in files:
        descriptor = os.open(path, os.O_RDWR)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            yield f"{path} is still locked"
        finally:
            os.close(descriptor)
