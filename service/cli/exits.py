"""Exit codes of the command line, and which error ends a command with which."""

from __future__ import annotations

from enum import IntEnum

from ...db.errors import NoDatabase, NotFound, StoreError, StoreFull, StoreUnavailable
from ...measure.messages import NotATilewright, SourceUnreachable
from ..settings import SettingsError
from ..transport import ApiError, InsecureToken


class Exit(IntEnum):
    """Documented in `tilewright --help`. 2, 3, 5, 7 and 8 are those of a worker as well."""

    DONE = 0
    FAILED = 1
    UNREACHABLE = 2
    UNAUTHORIZED = 3
    REFUSED = 4
    SUPERSEDED = 5
    SETTINGS = 6
    VERSION_REFUSED = 7
    DEVICE_BUSY = 8
    USAGE = 64
    INTERRUPTED = 130


EXIT_CODES = (
    "Exit codes: 0 done · 1 what was asked for failed or is not there, or a disk is full · "
    "2 no tilewright server answers · "
    "3 the token is missing, wrong or not enough · 4 the server refused the request · "
    "5 superseded by a newer session · 6 a setting is wrong · 7 the server does not speak this version · "
    "8 another worker has the device · 64 wrong usage · 130 interrupted"
)


class CommandError(Exception):
    """What a command was asked for cannot be done; the message is for a person."""

    def __init__(self, message: str, code: Exit = Exit.FAILED) -> None:
        super().__init__(message, code)
        self.message = message
        self.code = code

    def __str__(self) -> str:
        return self.message


_TABLE: tuple[tuple[type[Exception], Exit], ...] = (
    (SettingsError, Exit.SETTINGS),
    (InsecureToken, Exit.UNAUTHORIZED),
    (NotATilewright, Exit.UNREACHABLE),
    (SourceUnreachable, Exit.UNREACHABLE),
    (NoDatabase, Exit.FAILED),
    (StoreFull, Exit.FAILED),
    (StoreUnavailable, Exit.UNREACHABLE),
    (NotFound, Exit.FAILED),
    (StoreError, Exit.FAILED),
)
KNOWN_ERRORS: tuple[type[Exception], ...] = (CommandError, ApiError, *(kind for kind, _ in _TABLE))


def exit_code(error: Exception) -> Exit:
    """The exit code of one of KNOWN_ERRORS."""
    if isinstance(error, CommandError):
        return error.code
    if isinstance(error, ApiError):
        if error.status in (401, 403):
            return Exit.UNAUTHORIZED
        return Exit.FAILED if error.status == 404 else Exit.REFUSED
    return next(code for kind, code in _TABLE if isinstance(error, kind))
