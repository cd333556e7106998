"""Ctrl-C that is not lost."""

from __future__ import annotations

import contextlib
import signal
import threading
from collections.abc import Callable, Iterator
from types import FrameType

__all__ = ["heard"]


@contextlib.contextmanager
def heard() -> Iterator[Callable[[], bool]]:
    """Whether SIGINT has come since, which raises KeyboardInterrupt as ever.

    Where it comes in a destructor or in a callback from C, Python cannot raise: it prints the exception and
    goes on, and a search would go on to its end. Who asks from time to time, notices. Where this thread may
    set no handler, or somebody has set another, nothing is noticed.
    """
    came = False

    def handle(number: int, frame: FrameType | None) -> None:
        nonlocal came
        came = True
        signal.default_int_handler(number, frame)

    mine = threading.current_thread() is threading.main_thread()
    if not mine or signal.getsignal(signal.SIGINT) is not signal.default_int_handler:
        yield lambda: False
        return
    signal.signal(signal.SIGINT, handle)
    try:
        yield lambda: came
    finally:
        signal.signal(signal.SIGINT, signal.default_int_handler)
