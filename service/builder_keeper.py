"""Keeps a builder of the server's own running while a device that only runs is attached."""

from __future__ import annotations

import json
import logging
import os
import secrets
import sys
import threading
import time
from collections.abc import Callable, Sequence

from ..db.errors import StoreUnavailable
from ..db.store import Store
from ..db.words import PRESENT_STATES
from .search_process import SearchProcess
from .settings import Settings

log = logging.getLogger("tilewright.builder")

BuilderCommand = Callable[[str], Sequence[str]]
"""The command line of a builder of this name."""

_PASSED_ON = ("build_seconds", "run_seconds", "memory_bytes", "max_artifact_bytes", "artifact_store_bytes")


def builder_command(settings: Settings) -> BuilderCommand:
    """The command that builds on the database whose url it reads from stdin."""
    passed = json.dumps({name: getattr(settings, name) for name in _PASSED_ON})

    def command(name: str) -> Sequence[str]:
        return (
            sys.executable,
            "-m",
            "tilewright.service.builder_child",
            *("--db", "-", "--name", name, "--settings", passed, "--parent", str(os.getpid())),
        )

    return command


class BuilderKeeper:
    """`start` begins a thread that looks every `interval` seconds; `stop` ends it and the builder. A builder
    reads what is `said` from its stdin. One that died is started again after longer and longer pauses, and
    its builds go back at once; one that nobody needed for `idle_seconds` is ended."""

    def __init__(
        self,
        store: Store,
        command: BuilderCommand,
        *,
        said: str = "",
        interval: float = 0.5,
        idle_seconds: float = 60.0,
    ) -> None:
        self._store = store
        self._command = command
        self._said = said
        self._interval = interval
        self._idle_seconds = idle_seconds
        self._process: SearchProcess | None = None
        self._name = ""
        self._deaths = 0
        self._again_at = 0.0
        self._needed_at = float("-inf")
        self._stopping = threading.Event()
        # The builder dies with the thread that started it: this one lives until it has ended it.
        self._thread = threading.Thread(target=self._run, name="builder-keeper", daemon=True)

    @property
    def pid(self) -> int | None:
        """The builder's process, while there is one."""
        process = self._process
        return None if process is None else process.pid

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        """End the thread and the builder. May be repeated."""
        self._stopping.set()
        if self._thread.is_alive():
            self._thread.join()

    def _run(self) -> None:
        trouble = ""
        while not self._stopping.is_set():
            said = ""
            try:
                self._round()
            except StoreUnavailable as error:
                said = str(error)
            if said != trouble:
                log.warning("the database: %s", said or "answers again")
            trouble = said
            self._stopping.wait(self._interval)
        if self._process is not None:
            self._process.close()
            self._process = None

    def _round(self) -> None:
        if self._process is not None and self._process.ended() is not None:
            self._bury(self._process)
        now = time.monotonic()
        if any(w.run_only and w.state in PRESENT_STATES for w in self._store.workers()):
            self._needed_at = now
        if now - self._needed_at > self._idle_seconds:
            if self._process is not None:
                self._process.close()
                self._process, self._deaths = None, 0
                self._store.release_builds(self._name)
        elif self._process is None and now >= self._again_at:
            self._name = f"server-{secrets.token_hex(8)}"
            self._process = SearchProcess(self._command(self._name), self._said)
            log.info("a builder runs as process %d", self._process.pid)

    def _bury(self, process: SearchProcess) -> None:
        log.warning("the builder ended with status %s: %s", process.ended(), process.last_line())
        process.close()
        self._process = None
        self._deaths += 1
        self._again_at = time.monotonic() + min(30.0, 0.2 * 2**self._deaths)
        self._store.release_builds(self._name)
