"""A shepherd at work, with children that search for nothing."""

from __future__ import annotations

import contextlib
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

import psutil
from own_processes import own_children
from service_harness import FakeParser

from tilewright.db import Store
from tilewright.service.child_dispatcher import ChildDispatcher
from tilewright.service.search_process import Invocation
from tilewright.service.shepherd import Shepherd

SLEEP = "import time; time.sleep(60)"
DIE = "import sys; print('Traceback (most recent call last):', file=sys.stderr); sys.exit('out of ideas')"


@dataclass
class Children:
    """Starts what `script` says in the search's place, and remembers each start as (job, epoch)."""

    script: str = SLEEP
    started: list[tuple[str, int]] = field(default_factory=list)
    executable: str = sys.executable

    def __call__(self, job: str, epoch: int) -> Invocation:
        self.started.append((job, epoch))
        return Invocation((self.executable, "-c", self.script))


@contextlib.contextmanager
def supervised(store: Store, children: Children, max_searches: int = 4, **more: object) -> Iterator[Shepherd]:
    dispatcher = ChildDispatcher(store, children, max_searches)
    shepherd = Shepherd(store, FakeParser(), dispatcher, interval=0.02, **more)  # type: ignore[arg-type]
    shepherd.start()
    try:
        yield shepherd
    finally:
        shepherd.stop()


def until(holds: Callable[[], bool], seconds: float = 8.0) -> None:
    deadline = time.monotonic() + seconds
    while not holds():
        assert time.monotonic() < deadline, "it did not come to pass"
        time.sleep(0.02)


def processes() -> list[psutil.Process]:
    return own_children(recursive=True)
