"""A server that kills itself at its first change: `dying_server.py DB READY_FILE before|after`.

`before`: within the transaction of the change, just before it is stored; `after`: once it is stored, before
the answer is sent.
"""

from __future__ import annotations

import os
import signal
import sys
from pathlib import Path
from typing import Any

import uvicorn
from service_harness import FakeDispatcher, FakeParser

from tilewright.db import open_store
from tilewright.service.app import create_app
from tilewright.service.server import bind, url_of
from tilewright.service.settings import Settings


def _die(*_: Any) -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def main(db: str, ready_file: str, when: str) -> None:
    listener = bind("127.0.0.1", 0)
    with open_store(db) as store:
        if when == "before":
            store.add_audit = _die  # type: ignore[method-assign]
        app = create_app(store, Settings(), FakeDispatcher(), FakeParser())

        async def dying(scope: Any, receive: Any, send: Any) -> None:
            async def last(message: Any) -> None:
                if when == "after" and scope["method"] == "POST":
                    _die()
                await send(message)

            await app(scope, receive, last)

        Path(ready_file + ".partial").write_text(url_of("127.0.0.1", listener))
        Path(ready_file + ".partial").rename(ready_file)
        config = uvicorn.Config(dying, log_level="critical", lifespan="off", ws="none")
        uvicorn.Server(config).run(sockets=[listener])


if __name__ == "__main__":
    main(*sys.argv[1:])
