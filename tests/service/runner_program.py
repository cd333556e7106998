"""What runs searches, as a process of its own, with the small parser of the tests.

`runner_program.py ROLE DB STARTS SCRIPT LIMIT RESTARTS PATIENCE SILENCE` until SIGTERM.
"""

from __future__ import annotations

import logging
import signal
import sys
import threading
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))  # where what tests of several folders share stands

from dispatching import writing_starts
from service_harness import FakeParser

from tilewright.db import open_store
from tilewright.service.child_dispatcher import ChildDispatcher
from tilewright.service.settings import Settings
from tilewright.service.shepherd import Shepherd


def main(
    role: str, db: str, starts: str, script: str, limit: str, restarts: str, patience: str, silence: str
) -> int:
    logging.basicConfig(level=logging.WARNING)
    command = writing_starts(Path(starts), script)
    told = threading.Event()
    with open_store(db) as store:
        if role == "embedded":
            signal.signal(signal.SIGTERM, lambda *_: told.set())
            shepherd = Shepherd(
                store,
                FakeParser(),
                ChildDispatcher(store, command, int(limit)),
                restarts=int(restarts),
                patience=float(patience),
                interval=0.05,
            )
            shepherd.start()
            while not told.wait(0.1):
                pass
            shepherd.stop()
            return 0
        from tilewright.service.search_runner import SearchRunner

        settings = Settings(
            db=db, max_searches=int(limit), search_restarts=int(restarts), runner_silence=float(silence)
        )
        runner = SearchRunner(
            store, settings, FakeParser(), command, int(limit), interval=0.05, patience=float(patience)
        )
        signal.signal(signal.SIGTERM, lambda *_: runner.stop())
        return runner.run()


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
