import contextlib
import re
import shutil
import sqlite3
import subprocess
import sys
from pathlib import Path

import pytest
from alembic.autogenerate import compare_metadata
from alembic.migration import MigrationContext
from alembic.script import ScriptDirectory
from sqlalchemy import create_engine, event

from tilewright.db import InvalidValue, SchemaError, StoreUnavailable, open_store, upgrade
from tilewright.db.sql.schema import SCHEMA, VERSION_TABLE, Schema
from tilewright.db.sql.store import SqlStore
from tilewright.db.sql.store import upgrade as upgrade_to
from tilewright.db.sql.tables import metadata

AHEAD = f"{int(SCHEMA.head) + 1:04d}"

NEXT = f"""
from alembic import op
revision = "{AHEAD}"
down_revision = "{SCHEMA.head}"
def upgrade():
    op.execute("CREATE TABLE notes (text TEXT)")
def downgrade():
    op.execute("DROP TABLE notes")
"""


@pytest.fixture
def path(tmp_path):
    return tmp_path / "tilewright.db"


@pytest.fixture
def next_schema(tmp_path):
    """The schema of a program that is one version ahead."""
    directory = tmp_path / "migrations"
    shutil.copytree(SCHEMA.directory, directory, ignore=shutil.ignore_patterns("__pycache__"))
    (directory / "versions" / f"v{AHEAD}_notes.py").write_text(NEXT)
    return Schema(directory, AHEAD)


def execute(path, *statements):
    with contextlib.closing(sqlite3.connect(path)) as conn:
        for statement in statements:
            conn.execute(statement)
        conn.commit()


def tables_of(path):
    with contextlib.closing(sqlite3.connect(path)) as conn:
        return sorted(name for (name,) in conn.execute("SELECT name FROM sqlite_master WHERE type = 'table'"))


def test_a_missing_database_is_created_at_this_programs_schema(path):
    with open_store(f"sqlite:///{path}") as store:
        assert store.schema_version() == SCHEMA.head


def test_an_empty_file_gets_the_schema(path):
    path.touch()
    with open_store(f"sqlite:///{path}") as store:
        assert store.jobs().items == ()


def test_a_closed_store_leaves_one_file(path):
    open_store(f"sqlite:///{path}").close()
    assert [each.name for each in path.parent.iterdir()] == ["tilewright.db"]


def test_the_schema_names_the_newest_migration():
    assert ScriptDirectory(str(SCHEMA.directory)).get_heads() == [SCHEMA.head]


def test_the_migrations_make_the_tables_that_the_program_uses(path):
    open_store(f"sqlite:///{path}").close()
    engine = create_engine(f"sqlite:///{path}")
    with engine.connect() as conn:
        options = {"version_table": VERSION_TABLE, "compare_type": True}
        differences = compare_metadata(MigrationContext.configure(conn, opts=options), metadata)
    engine.dispose()
    assert differences == []


def test_the_migrated_tables_have_the_sql_of_the_tables_that_the_program_uses(path, tmp_path):
    open_store(f"sqlite:///{path}").close()
    engine = create_engine(f"sqlite:///{tmp_path / 'declared.db'}")
    metadata.create_all(engine)
    engine.dispose()
    assert sql_of(path) == sql_of(tmp_path / "declared.db")


def sql_of(path):
    """Each table's and index's SQL, clause by clause, in any order: what a later migration has added stands
    behind the constraints, and the order of constraints means nothing."""
    with contextlib.closing(sqlite3.connect(path)) as conn:
        query = "SELECT name, sql FROM sqlite_master WHERE sql IS NOT NULL AND name != ?"
        return {name: _clauses(sql) for name, sql in conn.execute(query, [VERSION_TABLE])}


def _clauses(sql):
    stripped = (clause.strip(" )\t") for clause in re.split(r"[\n,] *|\((?=\n)", sql))
    return sorted(clause for clause in stripped if clause)


def migrate(path, to):
    """Bring a database up or down to a schema, with foreign keys held as the store holds them."""
    from alembic import command
    from alembic.config import Config

    config = Config()
    config.set_main_option("script_location", str(SCHEMA.directory))
    engine = create_engine(f"sqlite:///{path}")
    event.listen(engine, "connect", lambda conn, _: conn.execute("PRAGMA foreign_keys = ON"))
    with engine.begin() as conn:
        config.attributes |= {"connection": conn, "version_table": VERSION_TABLE}
        known = MigrationContext.configure(conn, opts={"version_table": VERSION_TABLE}).get_current_revision()
        (command.upgrade if (known or "") < to and to != "base" else command.downgrade)(config, to)
    engine.dispose()


def test_the_migrations_can_be_undone(path):
    open_store(f"sqlite:///{path}").close()
    migrate(path, "base")
    assert tables_of(path) == ["sqlite_sequence", VERSION_TABLE]


OF_THE_FIRST_SCHEMA = (
    "INSERT INTO workloads VALUES ('w', 'matmul', '{}', '', 1.0)",
    "INSERT INTO targets VALUES ('t', '{}', 1.0)",
    "INSERT INTO hardware VALUES ('h', '{}', 1.0)",
    "INSERT INTO jobs VALUES (1, 'job_1', 'running', '', 'w', 't', 'h', 8, NULL, 3, 'random', 600.0, 'http',"
    " '{}', 2, 1, 1.0, 2.0, NULL, NULL, 3.0)",
    "INSERT INTO trials VALUES ('job_1.0', 'job_1', 0, 0, 'c0', 's', '{}', x'00', 1, 3, 'ok', 1, NULL, 0.5,"
    " '[0.5]', 0, 0.25, NULL, '', '{}', 0.1, 0.2, 'g', NULL, 1.0, 2.0, 3.0)",
    "INSERT INTO attempts VALUES ('job_1.0', 1, NULL, NULL, 'settled', 'd', 1.0, 1.0, 2.0)",
    "INSERT INTO schedules VALUES ('w', 't', 'h', 'job_1.0', 0.5, 3.0)",
)


@pytest.fixture
def first_schema(path):
    """A database as the first schema's program has left it, with a job, a trial and a best-known schedule."""
    migrate(path, "0001")
    execute(path, *OF_THE_FIRST_SCHEMA)
    return path


def rows_of(path, *tables):
    with contextlib.closing(sqlite3.connect(path)) as conn:
        return {table: conn.execute(f"SELECT * FROM {table}").fetchall() for table in tables}


def test_a_database_of_the_first_schema_is_refused_with_the_command_that_helps(first_schema):
    with pytest.raises(SchemaError) as caught:
        open_store(f"sqlite:///{first_schema}")
    assert str(caught.value) == (
        f"{first_schema} has schema 0001, older than this program's {SCHEMA.head}: "
        "run `tilewright db upgrade`"
    )


def test_jobs_and_trials_of_the_first_schema_are_kept_and_get_the_defaults(first_schema):
    assert upgrade(f"sqlite:///{first_schema}") == ("0001", SCHEMA.head)
    with open_store(f"sqlite:///{first_schema}") as store:
        job, trial, best = store.job("job_1"), store.trial("job_1.0"), store.best("w", "t", "h")
    assert (job.state, job.trials, job.epoch, job.done) == ("running", 8, 2, 1)
    assert (job.target_seconds, job.patience, job.history) == (None, None, "use")
    assert (job.paused_at, job.paused_seconds, job.process) == (None, 0.0, "")
    assert (trial.seconds, trial.samples, trial.error) == (0.5, (0.5,), 0.25)
    assert (trial.predicted, trial.origin, trial.disturbed) == (None, "", False)
    assert (trial.first_seconds, trial.first_samples) == (None, None)
    assert (best.trial, best.seconds) == ("job_1.0", 0.5)


def test_going_back_to_the_first_schema_keeps_what_it_knew(first_schema, tmp_path):
    tables = ("workloads", "jobs", "trials", "attempts", "schedules")
    before = rows_of(first_schema, *tables), sql_of(first_schema)
    upgrade(f"sqlite:///{first_schema}")
    migrate(first_schema, "0001")
    assert (rows_of(first_schema, *tables), sql_of(first_schema)) == before


def test_an_older_schema_is_refused_with_the_command_that_helps(path, next_schema):
    open_store(f"sqlite:///{path}").close()
    with pytest.raises(SchemaError) as caught:
        SqlStore.open(f"sqlite:///{path}", schema=next_schema)
    assert str(caught.value) == (
        f"{path} has schema {SCHEMA.head}, older than this program's {AHEAD}: run `tilewright db upgrade`"
    )


def test_a_newer_schema_is_refused_naming_both(path, next_schema):
    SqlStore.open(f"sqlite:///{path}", schema=next_schema).close()
    with pytest.raises(SchemaError) as caught:
        open_store(f"sqlite:///{path}")
    assert str(caught.value) == (
        f"{path} has schema {AHEAD}, newer than this program's {SCHEMA.head}: "
        f"install a tilewright that knows schema {AHEAD}"
    )


def test_a_newer_schema_is_not_downgraded_by_an_upgrade(path, next_schema):
    SqlStore.open(f"sqlite:///{path}", schema=next_schema).close()
    with pytest.raises(SchemaError, match=f"has schema {AHEAD}, newer than this program's {SCHEMA.head}"):
        upgrade(f"sqlite:///{path}")


def test_an_upgrade_keeps_what_is_stored(path, next_schema):
    with open_store(f"sqlite:///{path}") as store:
        stored = store.put_target("t", "{}")
    assert upgrade_to(f"sqlite:///{path}", next_schema) == (SCHEMA.head, AHEAD)
    with SqlStore.open(f"sqlite:///{path}", schema=next_schema) as store:
        assert store.target("t") == stored


def test_upgrading_twice_is_no_different_from_once(path):
    assert upgrade(f"sqlite:///{path}") == (None, SCHEMA.head)
    assert upgrade(f"sqlite:///{path}") == (SCHEMA.head, SCHEMA.head)


def test_an_upgrade_that_fails_changes_nothing(path, next_schema):
    open_store(f"sqlite:///{path}").close()
    before = tables_of(path)
    broken = NEXT.replace("def downgrade", "    raise RuntimeError('half way')\ndef downgrade")
    (next_schema.directory / "versions" / f"v{AHEAD}_notes.py").write_text(broken)
    with pytest.raises(RuntimeError, match="half way"):
        upgrade_to(f"sqlite:///{path}", next_schema)
    assert tables_of(path) == before


def test_a_database_that_is_made_is_its_owners_alone_with_the_files_beside_it(path):
    with open_store(f"sqlite:///{path}") as store:
        store.put_target("t", "{}")
        modes = {each.name: oct(each.stat().st_mode & 0o777) for each in path.parent.iterdir()}
    assert modes == {path.name: "0o600", f"{path.name}-wal": "0o600", f"{path.name}-shm": "0o600"}


def test_a_database_that_was_there_keeps_its_mode(path):
    path.touch(0o660)
    path.chmod(0o660)
    open_store(f"sqlite:///{path}").close()
    assert oct(path.stat().st_mode & 0o777) == "0o660"


def test_a_missing_database_is_not_made_where_it_must_exist(path):
    with pytest.raises(StoreUnavailable) as caught:
        open_store(f"sqlite:///{path}", create=False)
    assert (str(caught.value), path.exists()) == (f"{path}: there is no such database", False)


def test_an_empty_database_is_not_filled_where_it_must_exist(path):
    path.touch()
    with pytest.raises(SchemaError) as caught:
        open_store(f"sqlite:///{path}", create=False)
    assert str(caught.value) == f"{path} is empty: run `tilewright db upgrade`"


def test_a_database_of_another_program_is_left_alone(path):
    execute(path, "CREATE TABLE invoices (id INTEGER)")
    with pytest.raises(SchemaError) as caught:
        open_store(f"sqlite:///{path}")
    assert str(caught.value) == f"{path} holds tables that are not tilewright's; name another database"
    assert tables_of(path) == ["invoices"]


def test_a_file_that_is_no_database_is_named(path):
    path.write_text("these are notes, and not a database at all\n" * 100)
    with pytest.raises(StoreUnavailable, match=f"{path}: is not an intact SQLite database"):
        open_store(f"sqlite:///{path}")


def test_a_missing_directory_is_named(tmp_path):
    with pytest.raises(StoreUnavailable) as caught:
        open_store(f"sqlite:///{tmp_path}/nowhere/tilewright.db")
    assert str(caught.value) == f"{tmp_path}/nowhere/tilewright.db: there is no directory {tmp_path}/nowhere"


@pytest.mark.parametrize(
    ("url", "message"),
    [
        (
            "tilewright.db",
            "url: 'tilewright.db' is no database url; one looks like sqlite:///tilewright.db or "
            "postgresql://user:password@host:port/database",
        ),
        (
            "mysql://me:secret@host/db",
            "url: mysql is not supported; use sqlite:///path or postgresql://user:password@host:port/database",
        ),
        (
            "postgresql://me:secret@host:five/db",
            "url: 'postgresql://me:***@host:five/db' is no database url; one looks like "
            "sqlite:///tilewright.db or postgresql://user:password@host:port/database",
        ),
        (
            "postgresql://me:secret@host",
            "url: 'postgresql://me:***@host' names no database; use "
            "postgresql://user:password@host:port/database",
        ),
        ("sqlite://", "url: 'sqlite://' names no file; use sqlite:///relative or sqlite:////absolute"),
        (
            "sqlite:///:memory:",
            "url: 'sqlite:///:memory:' names no file; use sqlite:///relative or sqlite:////absolute",
        ),
    ],
)
def test_a_url_that_cannot_be_a_store_is_refused(url, message):
    with pytest.raises(InvalidValue) as caught:
        open_store(url)
    assert str(caught.value) == message


def test_importing_the_package_loads_no_sql_library():
    code = "import sys, tilewright.db; print({'sqlalchemy', 'alembic'} & set(sys.modules))"
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert ran.stdout == "set()\n"


def test_the_migrations_are_shipped_inside_the_package():
    import tilewright.db

    assert (Path(tilewright.db.__file__).parent / "migrations" / "env.py").is_file()
