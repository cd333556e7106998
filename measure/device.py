"""What a worker measures on: the processors of this machine, all of them or some."""

from __future__ import annotations

import os
import re
from dataclasses import dataclass
from typing import Self

from .processors import allowed

__all__ = ["Device", "DeviceError"]

_RANGE = re.compile(r"(\d{1,5})(?:-(\d{1,5}))?", re.ASCII)


class DeviceError(ValueError):
    """There is no such device; the message says what there is."""


@dataclass(frozen=True, slots=True)
class Device:
    """A set of processors, which a worker keeps to itself. `name` is empty where it is all that there are."""

    processors: frozenset[int]
    name: str = ""

    @classmethod
    def parse(cls, text: str) -> Self:
        """Of "cpu" (all processors that this process may use), or "cpu:0-3,8" (these). Raises DeviceError."""
        kind, colon, said = text.partition(":")
        if kind != "cpu" or (colon and not said):
            raise DeviceError(
                f"{text!r} is no device; expected cpu, or some processors of it, such as cpu:0-3,8"
            )
        here = allowed() or frozenset(range(os.cpu_count() or 1))
        if not colon:
            return cls(here)
        processors = _processors(text, said)
        if missing := sorted(processors - here):
            raise DeviceError(
                f"{text!r} names the processors {_ranges(missing)}, and this process may use "
                f"{_ranges(sorted(here))}"
            )
        return cls(processors, f"cpu{_ranges(sorted(processors))}")

    def pin(self) -> None:
        """Keeps this process, and those that it starts, on the device's processors."""
        if self.name and hasattr(os, "sched_setaffinity"):
            os.sched_setaffinity(0, self.processors)

    def __str__(self) -> str:
        return f"cpu:{_ranges(sorted(self.processors))}"


def _processors(text: str, said: str) -> frozenset[int]:
    found: set[int] = set()
    for word in said.split(","):
        match = _RANGE.fullmatch(word)
        low, high = (int(match[1]), int(match[2] or match[1])) if match else (1, 0)
        if low > high:
            raise DeviceError(
                f"{text!r}: {word!r} is neither a processor's number nor a range of them, such as 0-3"
            )
        found.update(range(low, high + 1))
    return frozenset(found)


def _ranges(numbers: list[int]) -> str:
    """As the system writes lists of processors: 0-3,8."""
    words: list[str] = []
    for start in (n for n in numbers if n - 1 not in numbers):
        end = start
        while end + 1 in numbers:
            end += 1
        words.append(f"{start}" if start == end else f"{start}-{end}")
    return ",".join(words)
