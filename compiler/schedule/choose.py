"""Who decides between structures of a schedule while it is made."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol


class Chooser(Protocol):
    """Decides between alternatives that cannot be knobs."""

    def choose(self, labels: Sequence[str], what: str) -> int:
        """The position of the chosen alternative. `what` says what is chosen, for people."""


class First:
    """Takes the first alternative: what holds outside of a search."""

    def choose(self, labels: Sequence[str], what: str) -> int:
        return 0


class Enumeration:
    """Takes, run by run, every combination of alternatives: a run follows a path of decisions and takes the
    first alternative wherever the path ends."""

    def __init__(self, path: Sequence[int] = ()) -> None:
        self._path = tuple(path)
        self._taken: list[tuple[int, int, str]] = []

    def choose(self, labels: Sequence[str], what: str) -> int:
        n = len(self._taken)
        at = self._path[n] if n < len(self._path) else 0
        self._taken.append((at, len(labels), labels[at]))
        return at

    @property
    def labels(self) -> tuple[str, ...]:
        """What was chosen, for people."""
        return tuple(label for _, _, label in self._taken)

    @property
    def next_path(self) -> tuple[int, ...] | None:
        """The path of the next combination; None after the last."""
        taken = list(self._taken)
        while taken:
            at, count, _ = taken.pop()
            if at + 1 < count:
                return (*(a for a, _, _ in taken), at + 1)
        return None
