"""A server as a process of its own, with the small parser of the tests and children that only sleep.

`server_program.py DB READY_FILE STARTS`: each start of a search is a line `job epoch pid` in the file STARTS.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path

from service_harness import FakeParser

from tilewright.db import open_store
from tilewright.service.search_process import Invocation
from tilewright.service.server import serve
from tilewright.service.settings import Settings

CHILD = """
import os, sys, time
from tilewright.service.parent_death import die_with
die_with(int(sys.argv[1]))
with open(sys.argv[2], "a") as starts:
    starts.write(f"{sys.argv[3]} {sys.argv[4]} {os.getpid()}\\n")
time.sleep(60)
"""


def main(db: str, ready_file: str, starts: str) -> int:
    def command(job: str, epoch: int) -> Invocation:
        return Invocation((sys.executable, "-c", CHILD, str(os.getpid()), starts, job, str(epoch)))

    with open_store(db) as store:
        settings = Settings(db=db, port=0, drain_seconds=float(os.environ.get("DRAIN", "0")))
        return serve(store, settings, FakeParser(), print, Path(ready_file), command)


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
