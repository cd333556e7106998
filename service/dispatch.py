"""The ports between the API, whoever decides which searches run, and whatever runs them.

The store is the truth: what is asked of a port is a hint or a wish, and what became of a search is told to
the store (`search_ends`), never to its caller.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Protocol


class Searching(Protocol):
    """What the API asks of those who search, wherever they are."""

    def wake(self) -> None:
        """Jobs or workers have changed: look now instead of at the next round."""

    def problem(self) -> str | None:
        """Why searches are not being run, or None."""


@dataclass(frozen=True, slots=True)
class Dispatched:
    """A search that waits for a process or has one; `age` is that process' in seconds, None before it
    began."""

    epoch: int
    age: float | None


class DispatchError(Exception):
    """A search cannot be started, for the reason in the message."""


class Dispatcher(Protocol):
    """Runs searches, each in a process of its own that can be killed, at most one for each job.

    A search that ends while its job goes on is told to the store, once. One that is gone without that (its
    machine is lost, the program that dispatched it was killed) is not among `searches` any more after a
    bounded time, and may be dispatched again under a newer epoch, by which the store refuses the old one's
    writes. Not safe to use from several threads.
    """

    def full(self) -> str | None:
        """Why no further search could begin now, or None."""

    def dispatch(self, job: str, epoch: int) -> None:
        """Have the search of a job begin; without effect where it was dispatched under this epoch already.

        Raises DispatchError.
        """

    def searches(self) -> Mapping[str, Dispatched]:
        """The search of each job that was dispatched, by whatever process, and has not ended."""

    def withdraw(self, job: str) -> None:
        """End the search of a job, whatever it does; it is no death, and nothing is told of it."""

    def problem(self) -> str | None:
        """Why nothing that is dispatched would run, or None."""

    def close(self) -> None:
        """End what this process began, and leave nothing of it."""
