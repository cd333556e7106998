"""Who has the searches of a database run, where a server does it beside the API."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Protocol

from ..db.queue import is_postgres
from ..db.store import Store
from .child_dispatcher import ChildDispatcher
from .dispatch import Searching
from .search_process import Command
from .settings import Settings
from .shepherd import Shepherd
from .workloads import WorkloadParser


class Searcher(Searching, Protocol):
    """Searches beside the API, once it is started."""

    @property
    def crashed(self) -> bool: ...

    def start(self) -> None: ...

    def stop(self) -> None:
        """End all that it began. May be repeated."""


def searcher_of(
    store: Store,
    settings: Settings,
    parser: WorkloadParser,
    command: Command,
    on_crash: Callable[[], None],
) -> Searcher:
    """Children of this process for a database in a file; for one on a server, a search runner among any
    others. `on_crash` is called when it ends without having been stopped."""
    if is_postgres(settings.db):
        return _RunnerThread(store, settings, parser, command, on_crash)
    return Shepherd(
        store,
        parser,
        ChildDispatcher(store, command, settings.max_searches),
        restarts=settings.search_restarts,
        on_crash=on_crash,
    )


class _RunnerThread:
    """A search runner in a thread, which lives as long as the process or until it is stopped."""

    def __init__(
        self,
        store: Store,
        settings: Settings,
        parser: WorkloadParser,
        command: Command,
        on_crash: Callable[[], None],
    ) -> None:
        from .search_runner import SearchRunner

        self._runner = SearchRunner(store, settings, parser, command, settings.max_searches)
        self._on_crash = on_crash
        self._stopped = False
        self._ended_badly = False
        self._thread = threading.Thread(target=self._run, name="search-runner", daemon=True)

    @property
    def crashed(self) -> bool:
        return self._ended_badly

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        self._stopped = True
        self._runner.stop()
        if self._thread.is_alive():
            self._thread.join()

    def wake(self) -> None:
        self._runner.wake()

    def problem(self) -> str | None:
        if self._stopped:
            return "the server is stopping"
        if not self._thread.is_alive():
            return "the search runner is not running"
        return self._runner.problem()

    def _run(self) -> None:
        try:
            self._runner.run()
        finally:
            if not self._stopped:
                self._ended_badly = True
                self._on_crash()
