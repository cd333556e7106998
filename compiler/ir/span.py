"""Where the user wrote a thing."""

from __future__ import annotations

import os
import sys
from dataclasses import dataclass

_PACKAGE = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
_INTERNAL = tuple(
    os.path.join(_PACKAGE, part) + os.sep for part in ("compiler", "tuner", "measure", "db", "service")
)
_LINKED = tuple(
    os.path.join(_PACKAGE, "src", "tilewright", part) + os.sep
    for part in ("compiler", "tuner", "measure", "db", "service")
)


@dataclass(frozen=True, slots=True)
class Span:
    """A file and a line of the user's program."""

    file: str
    line: int

    def __str__(self) -> str:
        return f"{os.path.basename(self.file)}:{self.line}"


def user_span() -> Span | None:
    """The innermost frame outside of the compiler's own files; None when there is none."""
    frame = sys._getframe(1)
    while frame is not None:
        name = frame.f_code.co_filename
        if not name.startswith(_INTERNAL) and not name.startswith(_LINKED):
            return None if name.startswith("<frozen") else Span(name, frame.f_lineno)
        back = frame.f_back
        if back is None:
            return None
        frame = back
    return None
