"""Whether anything in a PostgreSQL database has changed, by its snapshots.

A snapshot names the transactions that it sees (PostgreSQL's documentation, "Transaction ID and Snapshot
Information Functions"): two that are equal see the same rows.
"""

import contextlib
import secrets
import threading

import psycopg

from ..errors import StoreUnavailable
from ..mark import Mark

_SECONDS = 5
# Tokens are made, and revoked once; no row of theirs goes or changes otherwise.
_LOOK = (
    "SELECT pg_current_snapshot()::text,"
    " (SELECT concat_ws(' ', count(*), max(seq), count(revoked_at)) FROM tokens)"
)


class SnapshotMarks:
    """Reads marks on a connection of its own. Safe to use from several threads."""

    def __init__(self, address: str, name: str) -> None:
        self._address = address
        self._name = name
        self._lock = threading.Lock()
        self._connection: psycopg.Connection[tuple[str, str]] | None = None
        self._connected = ""

    def read(self) -> Mark:
        """See `Store.mark`; StoreUnavailable."""
        with self._lock:
            # Once more, where the connection broke since it was used.
            for last in (self._connection is None, True):
                try:
                    return self._read()
                except psycopg.Error as error:
                    self._drop()
                    if last:
                        said = str(error).strip().splitlines()
                        raise StoreUnavailable(
                            f"{self._name}: cannot be reached ({said[0] if said else type(error).__name__})"
                        ) from error
        raise AssertionError("the last try answers or raises")

    def close(self) -> None:
        with self._lock:
            self._drop()

    def _read(self) -> Mark:
        if self._connection is None:
            self._connection = psycopg.connect(
                self._address,
                autocommit=True,
                connect_timeout=_SECONDS,
                application_name="tilewright marks",
                tcp_user_timeout=_SECONDS * 1000,
                options=f"-c statement_timeout={_SECONDS}s",
            )
            # Numbers of transactions may come again after a crash of the server, on another connection.
            self._connected = secrets.token_hex(4)
        row = self._connection.execute(_LOOK).fetchone()
        assert row is not None
        return Mark(f"{self._connected} {row[0]}", f"{self._connected} {row[1]}")

    def _drop(self) -> None:
        if self._connection is not None:
            with contextlib.suppress(psycopg.Error):
                self._connection.close()
            self._connection = None
