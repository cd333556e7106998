"""Calls of one thread that are stored together or not at all."""

import contextlib
import threading
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager

from sqlalchemy import Connection

Begin = Callable[[], AbstractContextManager[Connection]]
"""Makes a transaction that commits at its end."""


class Units:
    """Which transaction, if any, the calls of each thread share.

    It begins with the first call that writes, so that nothing is locked before."""

    def __init__(self) -> None:
        self._local = threading.local()

    @contextlib.contextmanager
    def open(self, begin: Begin) -> Iterator[None]:
        """What this thread writes within is one transaction. One within another is part of it."""
        if self._unit() is not None:
            yield
            return
        with contextlib.ExitStack() as stack:
            self._local.unit = _Unit(stack, begin)
            try:
                yield
            finally:
                self._local.unit = None

    def writing(self) -> Connection | None:
        """The shared transaction, begun now if it was not; None outside of one."""
        unit = self._unit()
        return None if unit is None else unit.begun()

    def reading(self) -> Connection | None:
        """The shared transaction where it has begun: its own writes are to be seen."""
        unit = self._unit()
        return None if unit is None else unit.conn

    def _unit(self) -> "_Unit | None":
        return getattr(self._local, "unit", None)


class _Unit:
    def __init__(self, stack: contextlib.ExitStack, begin: Begin) -> None:
        self._stack = stack
        self._begin = begin
        self.conn: Connection | None = None

    def begun(self) -> Connection:
        if self.conn is None:
            self.conn = self._stack.enter_context(self._begin())
        return self.conn
