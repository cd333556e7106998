from concurrent.futures import ThreadPoolExecutor

import psycopg
import pytest

from tilewright.db import SchemaError, open_store, prepare_queue, upgrade
from tilewright.db.sql import queue_schema


def tables(url):
    with psycopg.connect(url) as conn:
        rows = conn.execute(
            "SELECT table_name FROM information_schema.tables"
            " WHERE table_schema = 'tilewright_queue' ORDER BY table_name"
        )
        return [name for (name,) in rows]


def applied(url):
    with psycopg.connect(url) as conn:
        return conn.execute("SELECT count(*) FROM tilewright_queue.applied_migrations").fetchone()[0]


def test_the_queue_is_made_once_however_many_begin_together(postgres_url):
    with ThreadPoolExecutor(4) as pool:
        list(pool.map(prepare_queue, [postgres_url] * 4))
    assert tables(postgres_url) == [
        "applied_migrations",
        "procrastinate_events",
        "procrastinate_jobs",
        "procrastinate_periodic_defers",
        "procrastinate_workers",
    ]


def test_an_upgrade_makes_the_queue_beside_the_store_which_does_not_mind(empty_postgres_url):
    upgrade(empty_postgres_url)
    assert "procrastinate_jobs" in tables(empty_postgres_url)
    with open_store(empty_postgres_url, create=False) as store:
        store.ping()


def test_an_older_queue_is_refused_naming_the_command_and_upgraded_by_it(postgres_url, monkeypatch):
    prepare_queue(postgres_url)
    whole = applied(postgres_url)
    later = "03.99.00_01_pre_a_later_step.sql"
    scripts = {f"migrations/{later}": "CREATE TABLE later (id int)"}
    known, read = queue_schema._known_migrations(), queue_schema._sql
    monkeypatch.setattr(queue_schema, "_known_migrations", lambda: [*known, later])
    monkeypatch.setattr(queue_schema, "_sql", lambda name: scripts.get(name) or read(name))
    with pytest.raises(SchemaError, match=r"older than the procrastinate.*run `tilewright db upgrade`"):
        prepare_queue(postgres_url)
    assert applied(postgres_url) == whole
    for _ in range(2):
        prepare_queue(postgres_url, upgrade=True)
    assert (applied(postgres_url), "later" in tables(postgres_url)) == (whole + 1, True)


def test_a_queue_of_a_newer_library_is_refused(postgres_url):
    prepare_queue(postgres_url)
    with psycopg.connect(postgres_url) as conn:
        conn.execute("INSERT INTO tilewright_queue.applied_migrations VALUES ('99.00.00_01_later.sql')")
    for bring in (False, True):
        with pytest.raises(SchemaError, match=r"made by a newer procrastinate \(99\.00\.00_01_later\.sql\)"):
            prepare_queue(postgres_url, bring)


def test_a_database_in_a_file_is_no_place_for_a_queue():
    from tilewright.db.queue import driver_address, is_postgres

    assert not is_postgres("sqlite:///x.db")
    with pytest.raises(ValueError, match="no url of a PostgreSQL database"):
        driver_address("sqlite:///x.db")
    assert driver_address("postgresql+psycopg://u@h/d") == "postgresql://u@h/d"
