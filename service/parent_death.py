"""A child process that must not outlive its parent."""

from __future__ import annotations

import ctypes
import os
import signal
import sys
import threading
import time

_PR_SET_PDEATHSIG = 1
_LOOK_EVERY = 1.0


def die_with(parent: int) -> None:
    """Have this process killed when `parent` ends, even by SIGKILL.

    Linux does it for us. It tells of the death of the parent's *thread* that started this process, so that
    this thread must live as long as the parent. Elsewhere a thread looks every second.
    """
    if sys.platform == "linux":
        libc = ctypes.CDLL(None, use_errno=True)
        if libc.prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0) != 0:
            raise OSError(ctypes.get_errno(), "prctl(PR_SET_PDEATHSIG)")
    else:
        threading.Thread(target=_watch, args=(parent,), daemon=True, name="parent-watch").start()
    # It may have died before the call above.
    _leave_if_orphaned(parent)


def _watch(parent: int) -> None:
    while True:
        time.sleep(_LOOK_EVERY)
        _leave_if_orphaned(parent)


def _leave_if_orphaned(parent: int) -> None:
    if os.getppid() != parent:
        os._exit(1)
