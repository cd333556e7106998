"""Leadership by an advisory lock of PostgreSQL, which lasts as long as its connection."""

import contextlib

import psycopg

from ..errors import StoreUnavailable

_LEADER = 0x74776C64  # "twld": the advisory lock of who leads
_SILENT_SECONDS = 5
_LEAST_SILENCE = 2.0  # who stands for election asks once a second


class AdvisoryLeadership:
    """A Leadership of a database; a connection of its own holds the lock.

    The server lets go of the lock when the connection ends, finds out within seconds where the machine of
    the process is gone, and ends the connection of a process that asked nothing for `silence` seconds (2 at
    the least): the machine of one that stands still answers for it, so that nothing else would tell."""

    def __init__(self, address: str, name: str, silence: float) -> None:
        self._address = address
        self._name = name
        self._silence = max(silence, _LEAST_SILENCE)
        self._connection: psycopg.Connection[tuple[bool]] | None = None
        self._leads = False

    def leads(self) -> bool:
        try:
            connection = self._connection or self._connect()
            if self._leads:
                connection.execute("SELECT 1")
            else:
                row = connection.execute(f"SELECT pg_try_advisory_lock({_LEADER})").fetchone()
                assert row is not None
                self._leads = row[0]
        except psycopg.errors.IdleSessionTimeout:
            self.close()  # another may lead by now; the next call stands for election
            return False
        except psycopg.Error as error:
            self.close()
            said = str(error).strip().splitlines()
            raise StoreUnavailable(
                f"{self._name}: cannot be reached ({said[0] if said else type(error).__name__})"
            ) from error
        return self._leads

    def close(self) -> None:
        if self._connection is not None:
            with contextlib.suppress(psycopg.Error):
                if self._leads:
                    # Said, since the server takes a moment to notice that a connection was closed.
                    self._connection.execute(f"SELECT pg_advisory_unlock({_LEADER})")
            with contextlib.suppress(psycopg.Error):
                self._connection.close()
        self._connection, self._leads = None, False

    def _connect(self) -> psycopg.Connection[tuple[bool]]:
        alive = "idle", "interval"
        options = " ".join(f"-c tcp_keepalives_{name}={_SILENT_SECONDS}" for name in alive)
        self._connection = psycopg.connect(
            self._address,
            autocommit=True,
            connect_timeout=_SILENT_SECONDS,
            application_name="tilewright leader",
            tcp_user_timeout=_SILENT_SECONDS * 1000,
            options=f"{options} -c tcp_keepalives_count=2 -c statement_timeout={_SILENT_SECONDS}s"
            f" -c idle_session_timeout={self._silence * 1000:.0f}",
        )
        return self._connection
