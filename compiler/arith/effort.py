"""How much arithmetic somebody else's program may cause: proofs about indices can take exponential time."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from contextvars import ContextVar

__all__ = ["TooHard", "limited", "spend"]

_left: ContextVar[list[int] | None] = ContextVar("left", default=None)


class TooHard(ArithmeticError):
    """More terms were bounded than `limited` allows."""


@contextlib.contextmanager
def limited(terms: int) -> Iterator[None]:
    """Lets what is done inside, in this thread, bound so many terms of polynomials; inside of another limit
    that one holds. Proofs that are remembered cost nothing, so that the limit must be far beyond what is
    needed."""
    if _left.get() is not None:
        yield
        return
    token = _left.set([terms])
    try:
        yield
    finally:
        _left.reset(token)


def spend(terms: int) -> None:
    """Raises TooHard where a limit is set and reached."""
    left = _left.get()
    if left is None:
        return
    left[0] -= terms
    if left[0] < 0:
        raise TooHard
