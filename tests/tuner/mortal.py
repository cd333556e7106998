"""A store whose process can be killed between any two of its writes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from lab import Killed

from tilewright.db import Store

WRITES = (
    "create_job", "begin_search", "resume_local", "put_warm_start", "add_event", "add_trials", "settle_local",
    "time_again", "crown", "retire", "decide", "confirm", "finish_job", "pause_job",
)  # fmt: skip


class Mortal:
    """Dead after so many writes: from then on, whoever still holds it can write no more."""

    def __init__(self, store: Store, writes: int) -> None:
        self._store = store
        self.left = writes
        self.wrote: list[str] = []

    def __getattr__(self, name: str) -> Any:
        call = getattr(self._store, name)
        return self._mortally(name, call) if name in WRITES else call

    def _mortally(self, name: str, call: Callable[..., Any]) -> Callable[..., Any]:
        def write(*arguments: Any, **named: Any) -> Any:
            if self.left == 0:
                raise Killed
            self.left -= 1
            self.wrote.append(name)
            return call(*arguments, **named)

        return write
