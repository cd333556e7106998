"""Text that people read in a failure, cut to what a message may carry."""

from __future__ import annotations

from .messages import MAX_LAST_WORDS, MAX_MESSAGE


def clip(text: str) -> str:
    """The beginning of `text`, short enough for a failure's message."""
    text = _printable(text)
    return text if len(text) <= MAX_MESSAGE else text[: MAX_MESSAGE - 1] + "…"


def tail_of(text: str) -> str:
    """The end of `text`, short enough for a failure's last words."""
    return _printable(text)[-MAX_LAST_WORDS:].strip()


class Tail:
    """Keeps the end of a byte stream of any length."""

    def __init__(self) -> None:
        self._data = b""

    def feed(self, data: bytes) -> None:
        # A character of UTF-8 takes up to four bytes.
        self._data = (self._data + data)[-4 * MAX_LAST_WORDS :]

    @property
    def text(self) -> str:
        return tail_of(self._data.decode(errors="replace"))

    @property
    def last_line(self) -> str:
        return self.text.rpartition("\n")[2]


def _printable(text: str) -> str:
    # Databases refuse NUL in text; a lone surrogate does not encode.
    return text.replace("\0", "\ufffd").encode(errors="replace").decode()


def duration_of(seconds: float) -> str:
    """A duration as a person says it."""
    for unit, factor in (("s", 1.0), ("ms", 1e-3), ("µs", 1e-6)):
        if seconds >= factor:
            return f"{seconds / factor:.4g} {unit}"
    return f"{seconds * 1e9:.4g} ns"


def size_of(count: int) -> str:
    """A number of bytes as a person says it."""
    for unit, factor in (("GiB", 1 << 30), ("MiB", 1 << 20), ("KiB", 1 << 10)):
        if count >= factor:
            return f"{count / factor:.4g} {unit}"
    return f"{count} bytes"
