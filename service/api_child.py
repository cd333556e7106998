"""One of several processes that serve the API: `python -m tilewright.service.api_child --socket FD --parent
PID`.

It reads its settings as JSON from stdin, takes connections from a listening socket that it inherited, says
`ready` on stdout once it does, ends on SIGTERM, and dies with its parent.
"""

from __future__ import annotations

import argparse
import json
import signal
import socket
import sys

from .parent_death import die_with


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="tilewright.service.api_child", description=__doc__)
    parser.add_argument("--socket", required=True, type=int, help="descriptor of the listening socket")
    parser.add_argument("--parent", required=True, type=int, help="id of the process to end with")
    parser.add_argument("--place", type=int, default=0, help="its number among them")
    said = parser.parse_args(arguments)
    die_with(said.parent)
    # Ctrl-C at the terminal is for the parent, which tells its children.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    from ..db import StoreError, open_store
    from .api_server import Elsewhere, serve_api
    from .logs import configure
    from .settings import Settings
    from .wiring import CompilerParser

    settings = Settings(**json.loads(sys.stdin.read()))
    configure(settings.log_format, settings.log_level)
    try:
        with socket.socket(fileno=said.socket) as listener, open_store(settings.db, create=False) as store:
            serve_api(store, settings, CompilerParser(), Elsewhere(), listener, _say_ready, said.place)
    except StoreError as error:
        print(error, file=sys.stderr, flush=True)
        return 1
    return 0


def _say_ready() -> None:
    print("ready", flush=True)


if __name__ == "__main__":
    sys.exit(main())
