"""Which schema a database has, and how it gets the one of this program."""

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from sqlalchemy import Connection, inspect, text

from ..errors import InvalidValue, SchemaError
from .database import Database

if TYPE_CHECKING:
    from alembic.config import Config

VERSION_TABLE = "tilewright_schema"


@dataclass(frozen=True, slots=True)
class Schema:
    """Alembic's scripts in `directory`, up to `head`. Revisions are numbers of four digits."""

    directory: Path
    head: str

    def version(self, database: Database, conn: Connection) -> str | None:
        """The database's version; None for an empty one. SchemaError where the tables are somebody else's."""
        tables = inspect(conn).get_table_names()
        if not tables:
            return None
        version = None
        if VERSION_TABLE in tables:
            version = conn.execute(text(f"SELECT version_num FROM {VERSION_TABLE}")).scalar_one_or_none()
        if version is None or not version.isdigit():
            raise SchemaError(
                f"{database.name} holds tables that are not tilewright's; name another database"
            )
        return str(version)

    def check(self, database: Database) -> str | None:
        """None for an empty database, the version where it is current, else SchemaError."""
        with database.read() as conn:
            version = self.version(database, conn)
        if version is not None and version != self.head:
            raise SchemaError(self._advice(database, version))
        return version

    def create(self, database: Database) -> None:
        """Make the tables in an empty database. Of several processes one does it, the others wait and see."""
        with database.migrate() as conn:
            if self.version(database, conn) is None:
                self._run(conn)

    def upgrade(self, database: Database) -> tuple[str | None, str]:
        """The versions before and after; SchemaError where it is newer. All or nothing."""
        with database.migrate() as conn:
            version = self.version(database, conn)
            if version is not None and version > self.head:
                raise SchemaError(self._advice(database, version))
            if version != self.head:
                self._run(conn)
        return version, self.head

    def downgrade(self, database: Database, to: str) -> tuple[str, str]:
        """The versions before and after; InvalidValue for one that is not before. All or nothing."""
        with database.migrate() as conn:
            version = self._version_before(database, conn, to)
            self.move(conn, version, to)
        return version, to

    def check_downgrade(self, database: Database, to: str) -> None:
        """Raises what `downgrade` would raise, and changes nothing."""
        with database.read() as conn:
            self._version_before(database, conn, to)

    def _version_before(self, database: Database, conn: Connection, to: str) -> str:
        version = self.version(database, conn)
        if version is None:
            raise SchemaError(f"{database.name} is empty: it has no schema to go back from")
        if version > self.head:
            raise SchemaError(self._advice(database, version))
        if not (to.isdigit() and len(to) == len(self.head) and "0001" <= to <= version):
            raise InvalidValue("to", f"must be a schema between 0001 and {version}, not {to!r}")
        return version

    def move(self, conn: Connection, version: str | None, to: str) -> None:
        """From one version (None: no tables) to another, of which `base` has no tables."""
        from alembic import command

        if to == "base" or (version is not None and to < version):
            command.downgrade(self._config(conn), to)
        elif version != to:
            command.upgrade(self._config(conn), to)

    def _run(self, conn: Connection) -> None:
        from alembic import command

        command.upgrade(self._config(conn), self.head)

    def _config(self, conn: Connection) -> "Config":
        from alembic.config import Config

        config = Config()
        config.set_main_option("script_location", str(self.directory).replace("%", "%%"))
        config.attributes["connection"] = conn
        config.attributes["version_table"] = VERSION_TABLE
        return config

    def _advice(self, database: Database, version: str) -> str:
        if version < self.head:
            return (
                f"{database.name} has schema {version}, older than this program's {self.head}: run "
                f"`tilewright db upgrade`"
            )
        return (
            f"{database.name} has schema {version}, newer than this program's {self.head}: install a "
            f"tilewright that knows schema {version}"
        )


SCHEMA = Schema(directory=Path(__file__).parent.parent / "migrations", head="0010")
