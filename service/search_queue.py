"""The queue of searches in PostgreSQL: what its tasks are called, and how the queue is opened.

procrastinate keeps it, in a schema of its own (`tilewright.db.prepare_queue` makes it). It takes the end of a
task from whoever says so, whoever the task was given to since: what a search writes carries its epoch, by
which the store tells the one that counts.
"""

from __future__ import annotations

from typing import Any

from procrastinate import App, PsycopgConnector

from ..db.queue import QUEUE_SCHEMA, driver_address

SEARCHES = "searches"
HOUSEKEEPING = "housekeeping"
RUN_SEARCH = "run_search"
SWEEP = "sweep"
RETENTION = "retention"

_CONNECTIONS = 4
_SILENT_SECONDS = 15


def queue_of(db: str) -> App:
    """The queue of the PostgreSQL database at `db`, not opened yet."""
    connection: dict[str, Any] = {
        "options": f"-c search_path={QUEUE_SCHEMA} -c statement_timeout={_SILENT_SECONDS}s",
        "application_name": "tilewright queue",
        "connect_timeout": 5,
        "keepalives_idle": _SILENT_SECONDS,
        "keepalives_interval": 3,
        "keepalives_count": 3,
        "tcp_user_timeout": _SILENT_SECONDS * 1000,
    }
    connector = PsycopgConnector(
        conninfo=driver_address(db), kwargs=connection, min_size=1, max_size=_CONNECTIONS, timeout=5.0
    )
    return App(connector=connector)
