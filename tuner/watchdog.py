"""A limit of time for thinking, which has no loop of its own to look at a clock in."""

from __future__ import annotations

import contextlib
import signal
import threading
import time
from collections.abc import Iterator
from types import FrameType

from .errors import TookTooLong

__all__ = ["THINKING_SECONDS", "in_time"]

THINKING_SECONDS = 300.0
"""The longest that the search of a job without a limit of seconds thinks at one go: to make the space of a
usual operator, or to propose a batch, takes a second at most."""

_AGAIN_SECONDS = 1.0
_LEAST_SECONDS = 1e-3


@contextlib.contextmanager
def in_time(doing: str, seconds: float | None, elapsed: float = 0.0, *, grace: float = 0.0) -> Iterator[None]:
    """Raises TookTooLong, out of whatever runs then, once a job of `seconds`, of which `elapsed` are over,
    has used them up, and `grace` seconds more; a job without a limit has THINKING_SECONDS for this.

    Works in the main thread, whose alarm it borrows and gives back; elsewhere nothing is limited. What is
    limited must not write to the store: it may be left at any point.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return

    def ring(number: int, frame: FrameType | None) -> None:
        raise TookTooLong(doing, *((THINKING_SECONDS, False) if seconds is None else (seconds, True)))

    limit = THINKING_SECONDS if seconds is None else seconds - elapsed + grace
    begun = time.monotonic()
    handler = signal.signal(signal.SIGALRM, ring)
    # Again and again: an exception that is raised inside of a finalizer is lost.
    left, interval = signal.setitimer(signal.ITIMER_REAL, max(limit, _LEAST_SECONDS), _AGAIN_SECONDS)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0.0)
        signal.signal(signal.SIGALRM, handler)
        if left:
            rest = max(left - (time.monotonic() - begun), _LEAST_SECONDS)
            signal.setitimer(signal.ITIMER_REAL, rest, interval)
