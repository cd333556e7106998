"""The child process that searches for one job: `python -m tilewright.service.search_child --db … --job …
--epoch …`.

It ends with 0 when the job has ended or is no longer its to search, with 75 when it waits for its first
worker, with a line on stderr and 69 when the database is out of reach or full, 1 when it fails otherwise, and
dies with its parent.
"""

from __future__ import annotations

import argparse
import sys

from .parent_death import die_with
from .search_process import WAITS


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="tilewright.service.search_child", description=__doc__)
    parser.add_argument("--db", required=True, help="URL of the database; - reads it from stdin")
    parser.add_argument("--job", required=True)
    parser.add_argument("--epoch", required=True, type=int, help="the search_epoch of this search's writes")
    parser.add_argument("--parent", type=int, help="id of the process to end with")
    said = parser.parse_args(arguments)
    if said.parent is not None:
        die_with(said.parent)
    # After the line above: loading the search takes a second, in which the parent may die.
    from ..db import JobOver, StaleSearch, StoreError, StoreUnavailable, open_store
    from ..tuner.run import run_search
    from .search_ends import DATABASE_AWAY

    db = sys.stdin.read() if said.db == "-" else said.db
    try:
        with open_store(db, create=False) as store:
            job = run_search(store.job(said.job), store, said.epoch)
            if job.state == "waiting":
                return WAITS
    except (StaleSearch, JobOver):
        return 0  # another search has begun, or somebody ended the job: nothing is left to do here
    except StoreError as error:
        # The last line is what the job's owner reads.
        print(error, file=sys.stderr, flush=True)
        return DATABASE_AWAY if isinstance(error, StoreUnavailable) else 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
