"""The server's own builder: `python -m tilewright.service.builder_child --db … --name … --parent …`.

It makes what devices without a compiler wait for, on the server's database, and dies with its parent.
"""

from __future__ import annotations

import argparse
import json
import sys

from .parent_death import die_with


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="tilewright.service.builder_child", description=__doc__)
    parser.add_argument("--db", required=True, help="URL of the database; - reads it from stdin")
    parser.add_argument("--name", required=True, help="who holds the builds")
    parser.add_argument("--settings", default="{}", help="the server's settings that matter here, as JSON")
    parser.add_argument("--parent", type=int, help="id of the process to end with")
    said = parser.parse_args(arguments)
    if said.parent is not None:
        die_with(said.parent)
    # After the line above: loading takes a second, in which the parent may die.
    from ..db import StoreError, open_store
    from ..measure.run_only.builder import run
    from ..measure.run_only.workbench import Workbench
    from .build_store_source import StoreBuilds
    from .settings import load

    db = sys.stdin.read() if said.db == "-" else said.db
    settings = load(json.loads(said.settings), {}).settings
    try:
        with open_store(db, create=False) as store, Workbench() as bench:
            return int(run(StoreBuilds(store, settings, said.name), bench))
    except StoreError as error:
        print(error, file=sys.stderr, flush=True)
        return 1


if __name__ == "__main__":
    sys.exit(main())
