"""The port between the API and whatever runs the searches of its jobs."""

from __future__ import annotations

from typing import Protocol


class Dispatcher(Protocol):
    """Runs the search of every unfinished job of the store. The store is the truth; a call is only a hint."""

    def wake(self) -> None:
        """Jobs or workers have changed: look now instead of at the next round."""

    def problem(self) -> str | None:
        """Why searches are not being run, or None."""
