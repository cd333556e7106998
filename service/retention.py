"""Forgetting what is old, while a server runs."""

from __future__ import annotations

import logging
import threading

from ..db.errors import StoreError
from ..db.store import Store

log = logging.getLogger("tilewright.retention")

_EVERY = 3600.0
_DAY = 86_400.0


class Retention:
    """Prunes a store every hour, in a thread of its own; with `days` of 0 it does nothing.

    Several servers of one database may do so at once: what one has forgotten is not there for the next.
    """

    def __init__(self, store: Store, days: float, every: float = _EVERY) -> None:
        self._store = store
        self._days = days
        self._every = every
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._run, name="retention", daemon=True)

    def start(self) -> None:
        if self._days > 0:
            self._thread.start()

    def stop(self) -> None:
        """May be repeated, and without a start."""
        self._stopping.set()
        if self._thread.is_alive():
            self._thread.join()

    def prune(self) -> None:
        """Once, in this thread; a store that cannot is told in the log."""
        if self._days <= 0:
            return
        try:
            forgotten = self._store.prune(self._days * _DAY)
            if forgotten.trials or forgotten.jobs:
                log.info("forgot %d trials and %d jobs", forgotten.trials, forgotten.jobs)
        except StoreError as error:
            log.warning("nothing was forgotten: %s", error)

    def _run(self) -> None:
        while not self._stopping.is_set():
            self.prune()
            self._stopping.wait(self._every)
