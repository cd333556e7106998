"""Which schema a database has, and how it gets the one of this program."""

from dataclasses import dataclass
from pathlib import Path

from sqlalchemy import Connection, inspect, text

from ..errors import SchemaError
from .database import Database

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

    def _run(self, conn: Connection) -> None:
        from alembic import command
        from alembic.config import Config

        config = Config()
        config.set_main_option("script_location", str(self.directory).replace("%", "%%"))
        config.attributes["connection"] = conn
        config.attributes["version_table"] = VERSION_TABLE
        command.upgrade(config, self.head)

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


SCHEMA = Schema(directory=Path(__file__).parent.parent / "migrations", head="0009")
