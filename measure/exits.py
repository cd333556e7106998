"""How a worker ends."""

from __future__ import annotations

from enum import IntEnum

from .device_lock import DeviceBusy
from .errors import MeasureError
from .messages import NameRetired, NotATilewright, SourceUnreachable, Superseded, Unauthorized, VersionRefused


class Exit(IntEnum):
    """The exit codes of a worker."""

    DRAINED = 0
    FAILED = 1
    UNREACHABLE = 2
    UNAUTHORIZED = 3
    SUPERSEDED = 5
    SETTINGS = 6
    VERSION_REFUSED = 7
    DEVICE_BUSY = 8


_EXITS: tuple[tuple[type[Exception], Exit], ...] = (
    (NotATilewright, Exit.UNREACHABLE),
    (SourceUnreachable, Exit.UNREACHABLE),
    (Unauthorized, Exit.UNAUTHORIZED),
    (Superseded, Exit.SUPERSEDED),
    (NameRetired, Exit.SETTINGS),
    (VersionRefused, Exit.VERSION_REFUSED),
    (DeviceBusy, Exit.DEVICE_BUSY),
    (MeasureError, Exit.FAILED),
)
FATAL = tuple(kind for kind, _ in _EXITS)
"""What ends a worker at once: nothing that it could wait for heals it."""


def exit_of(error: Exception) -> Exit:
    """The code that one of FATAL ends a worker with."""
    return next(code for kind, code in _EXITS if isinstance(error, kind))
