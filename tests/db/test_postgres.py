"""What is PostgreSQL's own: servers that go away, calls that collide, and what its errors mean."""

import subprocess
import sys
import threading
import time

import psycopg
import pytest
from sqlalchemy import text
from sqlalchemy.exc import DBAPIError

from tilewright.db import Conflict, InvalidValue, StoreFull, StoreUnavailable, open_store
from tilewright.db.sql import postgres_database, retries
from tilewright.db.sql.postgres_database import refuse_old
from tilewright.db.sql.schema import SCHEMA


@pytest.fixture
def kind():
    return "postgres"


def shown(url):
    return url.replace(":secret@", ":***@")


def test_a_transaction_that_was_undone_for_another_is_made_again(store, monkeypatch):
    database, asked = store._database, []
    write = database.write

    def write_that_fails_twice():
        asked.append(1)
        if len(asked) < 3:
            raise retries.TryAgain("deadlock detected")
        return write()

    monkeypatch.setattr(database, "write", write_that_fails_twice)
    assert store.put_target("t", "{}") == store.target("t")
    assert len(asked) == 3


def test_two_calls_that_want_two_rows_in_opposite_orders_both_succeed(store):
    """The server finds the deadlock; the call that it undoes is made again, whole."""
    for key in ("a", "b"):
        store.put_hardware(key, "{}")
    both = threading.Barrier(2)

    def put(first, second, facts):
        once = []

        def call():
            with store._database.write() as conn:
                change = text("UPDATE hardware SET facts = :facts WHERE key = :key")
                conn.execute(change, {"facts": facts, "key": first})
                if not once:
                    once.append(1)
                    both.wait()
                conn.execute(change, {"facts": facts, "key": second})

        retries._again(call)()

    threads = [
        threading.Thread(target=put, args=("a", "b", "[1]")),
        threading.Thread(target=put, args=("b", "a", "[2]")),
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert store.hardware("a").facts == store.hardware("b").facts


def test_a_row_that_another_writer_was_first_with_is_a_conflict(store):
    row = text("INSERT INTO targets VALUES ('k', '{}', 0)")
    with pytest.raises(Conflict) as caught, store._database.write() as conn:
        conn.execute(row)
        conn.execute(row)
    assert str(caught.value) == (
        'another writer was first: duplicate key value violates unique constraint "pk_targets"'
    )


def test_a_reader_cannot_write_and_sees_one_state(store):
    with pytest.raises(StoreUnavailable, match="read-only transaction"), store._database.read() as conn:
        conn.execute(text("DELETE FROM targets"))
    count = text("SELECT count(*) FROM targets")
    with store._database.read() as conn:
        before = conn.execute(count).scalar_one()
        store.put_target("t", "{}")
        assert conn.execute(count).scalar_one() == before


@pytest.mark.parametrize(
    ("state", "kind_of_error", "message"),
    [
        ("53100", StoreFull, "the disk is full; nothing of this call was stored"),
        ("57014", StoreUnavailable, "did not get to this call in time (said so)"),
        ("55P03", StoreUnavailable, "did not get to this call in time (said so)"),
        ("53300", StoreUnavailable, "cannot be used (said so)"),
        ("57P01", StoreUnavailable, "cannot be used (said so)"),
        ("08006", StoreUnavailable, "cannot be used (said so)"),
        ("28P01", StoreUnavailable, "cannot be used (said so)"),
        ("42P01", StoreUnavailable, "its tables are not there any more (said so)"),
    ],
)
def test_what_the_server_says_is_told_in_the_words_of_a_store(store, url, state, kind_of_error, message):
    said = psycopg.errors.lookup(state)("said so\nand more")
    with pytest.raises(StoreUnavailable) as caught, store._database.write():
        raise DBAPIError("INSERT", {}, said)
    assert (type(caught.value), str(caught.value)) == (kind_of_error, f"{shown(url)}: {message}")


def test_a_real_disk_without_room_is_told_and_found_to_have_room_again(postgres, store, url):
    """temp_file_limit is the one real limit on room that a server sets without a disk of its own."""
    name = url.rsplit("/", 1)[1]
    postgres.run(f"ALTER DATABASE {name} SET temp_file_limit = '64kB'")
    postgres.run(f"ALTER DATABASE {name} SET work_mem = '64kB'")
    big = text("SELECT count(*) FROM (SELECT n FROM generate_series(1, 200000) n ORDER BY random()) AS x")
    with open_store(url) as limited:
        with pytest.raises(StoreFull), limited._database.write() as conn:
            conn.execute(big)
        assert limited.put_target("t", "{}") == limited.target("t")


@pytest.mark.parametrize("call", ["put_target", "target"])
def test_text_that_not_every_database_holds_is_refused(store, call):
    arguments = ("k\0", "{}") if call == "put_target" else ("k\0",)
    with pytest.raises(InvalidValue, match="holds a NUL character"):
        getattr(store, call)(*arguments)


def test_an_old_server_is_refused_by_name():
    with pytest.raises(StoreUnavailable) as refused:
        refuse_old("postgresql://host/db", 140012)
    assert str(refused.value) == "postgresql://host/db: is PostgreSQL 14.12; tilewright needs 15 or newer"
    refuse_old("postgresql://host/db", 150000)


@pytest.mark.parametrize("spelt", ["postgresql", "postgres", "postgresql+psycopg"])
def test_each_spelling_of_the_url_opens_the_database(url, spelt):
    with open_store(url.replace("postgresql", spelt)) as store:
        assert store.schema_version() == SCHEMA.head


@pytest.mark.parametrize(
    "spoil",
    [
        lambda url: url.replace(":secret@", ":wrongsecret@"),
        lambda url: f"{url}_not_there",
        lambda url: f"postgresql://postgres:secret@127.0.0.1:1/{url.rsplit('/', 1)[1]}",
        lambda url: url.replace("127.0.0.1:", "127.0.0.1:x"),
        lambda url: url.replace("//postgres:secret", "//nobody:hush"),
    ],
)
def test_what_cannot_be_opened_is_told_without_the_password(url, spoil):
    spoilt = spoil(url)
    with pytest.raises((StoreUnavailable, InvalidValue)) as refused:
        open_store(spoilt)
    told = str(refused.value) + repr(refused.value)
    assert ("secret" in told, "hush" in told) == (False, False)


def test_no_repr_shows_the_password(store):
    database = store._database.inner
    told = repr(vars(database)) + repr(database._engine) + repr(store)
    assert "secret" not in told


def test_a_database_that_was_made_anew_is_not_the_one_that_was_opened(postgres, store, url):
    store.put_target("t", "{}")
    name = url.rsplit("/", 1)[1]
    postgres.drop(name)
    postgres.run(f"CREATE DATABASE {name}")
    with pytest.raises(StoreUnavailable, match="the database that was opened is gone"):
        for _ in range(2):
            store.ping()


def test_a_lost_connection_is_made_anew(postgres, store, url):
    store.put_target("t", "{}")
    name = url.rsplit("/", 1)[1]
    postgres.run(f"SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = '{name}'")
    assert store.target("t").key == "t"


def test_a_row_that_stays_locked_is_unavailable_and_not_waited_for_forever(store, url, monkeypatch):
    monkeypatch.setattr(postgres_database, "_LOCK_MS", 50)
    store.put_hardware("h", "{}")
    with open_store(url) as other, store._database.write() as conn:
        conn.execute(text("SELECT * FROM hardware FOR UPDATE"))
        with pytest.raises(StoreUnavailable, match="did not get to this call in time"):
            other.put_hardware("h", "[]")


def test_several_servers_serve_one_database(store, url):
    with open_store(url) as second, store.serving("the first"), second.serving("the second"):
        pass


def test_a_missing_driver_is_named_with_what_to_install(url):
    code = (
        "import sys; sys.modules['psycopg'] = None\n"
        "from tilewright.db import open_store\n"
        "try: open_store('postgresql://h/db')\n"
        "except ModuleNotFoundError as e: print(e)"
    )
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert ran.stdout == (
        "PostgreSQL needs psycopg, which is not installed: pip install 'tilewright[postgres]'\n"
    )


@pytest.mark.slow
def test_a_server_that_is_killed_is_unavailable_within_a_bounded_time_and_loses_nothing():
    from postgres_server import PostgresServer

    with PostgresServer(durable=True) as server:
        url = server.url(server.database())
        with open_store(url) as store:
            store.put_target("t", "{}")
            server.kill()
            began = time.monotonic()
            with pytest.raises(StoreUnavailable, match=r"cannot be (reached|used)"):
                store.put_target("lost", "{}")
            assert time.monotonic() - began < 20
            server.start()
            assert store.target("t").key == "t"
            assert store.put_target("later", "{}").key == "later"
