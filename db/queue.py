"""Where a database keeps its queue of searches, and how the queue's own library is told of it."""

from __future__ import annotations

QUEUE_SCHEMA = "tilewright_queue"
"""PostgreSQL's name for the tables of the queue, apart from those of the store."""

_PREFIXES = ("postgresql+psycopg://", "postgresql://", "postgres://")


def is_postgres(url: str) -> bool:
    """Whether a database is on a server of PostgreSQL, and can have a queue."""
    return url.startswith(_PREFIXES)


def driver_address(url: str) -> str:
    """The url of a PostgreSQL database as its driver reads it."""
    for prefix in _PREFIXES:
        if url.startswith(prefix):
            return "postgresql://" + url.removeprefix(prefix)
    raise ValueError("this is no url of a PostgreSQL database")


def prepare_queue(url: str, upgrade: bool = False) -> None:
    """Make the tables of the queue where there are none, once, however many processes start together.

    With `upgrade`, bring older ones to the installed library; without, SchemaError for older ones, which
    names `tilewright db upgrade`, and always for newer ones. StoreUnavailable.
    """
    from .sql.queue_schema import prepare

    prepare(url, upgrade)
