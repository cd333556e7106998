"""Where the user wrote a thing."""

from __future__ import annotations

import os
import sys
from dataclasses import dataclass
from itertools import islice
from types import FrameType

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
    frame = _user_frame()
    return None if frame is None else Span(frame.f_code.co_filename, frame.f_lineno)


def user_lines() -> tuple[Span, Span] | None:
    """The first and the last line of the expression that the user's frame is evaluating; None where Python
    does not tell."""
    frame = _user_frame()
    if frame is None:
        return None
    first, last, *_ = next(islice(frame.f_code.co_positions(), frame.f_lasti // 2, None), (None, None))
    if first is None or last is None:
        return None
    return Span(frame.f_code.co_filename, first), Span(frame.f_code.co_filename, last)


def _user_frame() -> FrameType | None:
    frame: FrameType | None = sys._getframe(2)
    while frame is not None:
        name = frame.f_code.co_filename
        if not name.startswith(_INTERNAL) and not name.startswith(_LINKED):
            return None if name.startswith("<frozen") else frame
        back = frame.f_back
        if back is None:
            return None
        frame = back
    return None
