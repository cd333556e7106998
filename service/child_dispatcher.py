"""Searches as child processes of this one."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass

from ..db.store import Store
from .dispatch import Dispatched, DispatchError
from .search_ends import Knew, report_end
from .search_process import Command, SearchProcess


@dataclass(frozen=True, slots=True)
class _Child:
    process: SearchProcess
    epoch: int
    begun: float
    knew: Knew


class ChildDispatcher:
    """A Dispatcher of at most `max_searches` children at a time, which end with this process.

    The thread that dispatches must live as long as the process: its end would end the children."""

    def __init__(self, store: Store, command: Command, max_searches: int = 4) -> None:
        self._store = store
        self._command = command
        self._max_searches = max_searches
        self._children: dict[str, _Child] = {}

    def full(self) -> str | None:
        if len(self._children) < self._max_searches:
            return None
        return f"waits for one of the {self._max_searches} searches that run at a time to end"

    def dispatch(self, job: str, epoch: int) -> None:
        known = self._children.get(job)
        if known is not None:
            if known.epoch == epoch:
                return
            self.withdraw(job)
        knew = Knew.of(self._store.job(job))
        try:
            process = SearchProcess(*self._command(job, epoch))
        except OSError as error:
            raise DispatchError(str(error)) from error
        self._children[job] = _Child(process, epoch, time.monotonic(), knew)

    def searches(self) -> Mapping[str, Dispatched]:
        for job, child in list(self._children.items()):
            status = child.process.ended()
            if status is not None:
                report_end(self._store, job, child.epoch, child.knew, status, child.process.last_line())
                del self._children[job]
        now = time.monotonic()
        return {job: Dispatched(child.epoch, now - child.begun) for job, child in self._children.items()}

    def withdraw(self, job: str) -> None:
        child = self._children.pop(job, None)
        if child is not None:
            child.process.close()

    def problem(self) -> str | None:
        return None

    def close(self) -> None:
        for job in list(self._children):
            self.withdraw(job)
