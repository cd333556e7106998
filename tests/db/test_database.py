import pickle
import sqlite3
import threading
import time

import pytest
from sqlalchemy import text
from sqlalchemy.exc import OperationalError

from tilewright.db import (
    Conflict,
    InvalidValue,
    NotFound,
    SettlementMismatch,
    StoreFull,
    StoreUnavailable,
    errors,
    open_store,
)
from tilewright.db.sql import sqlite_database as database_module
from tilewright.db.sql.sqlite_database import SqliteDatabase


@pytest.fixture
def path(tmp_path):
    return tmp_path / "tilewright.db"


@pytest.fixture
def database(path):
    open_store(f"sqlite:///{path}").close()
    opened = SqliteDatabase(path)
    yield opened
    opened.close()


@pytest.fixture
def holder(path, database):
    """Another connection that holds the write lock."""
    conn = sqlite3.connect(path, isolation_level=None, check_same_thread=False)
    conn.execute("BEGIN IMMEDIATE")
    yield conn
    conn.close()


@pytest.mark.parametrize("side", ["write", "read"])
def test_every_connection_keeps_the_rules(database, side):
    pragmas = ("journal_mode", "foreign_keys", "synchronous", "busy_timeout")
    with getattr(database, side)() as conn:
        values = [conn.exec_driver_sql(f"PRAGMA {pragma}").scalar_one() for pragma in pragmas]
    assert values == ["wal", 1, 2, 5000]


def test_an_open_reader_does_not_block_a_writer(database):
    with database.read() as reader:
        reader.execute(text("SELECT count(*) FROM tokens")).scalar_one()
        with database.write() as writer:
            writer.execute(text("INSERT INTO targets VALUES ('k', '{}', 0)"))
        assert reader.execute(text("SELECT count(*) FROM targets")).scalar_one() == 0


def test_a_reader_cannot_write(database):
    with pytest.raises(StoreUnavailable, match="readonly"), database.read() as conn:
        conn.execute(text("DELETE FROM targets"))


def test_an_exception_undoes_the_transaction(database):
    with pytest.raises(KeyError), database.write() as conn:
        conn.execute(text("INSERT INTO targets VALUES ('k', '{}', 0)"))
        raise KeyError
    with database.read() as conn:
        assert conn.execute(text("SELECT count(*) FROM targets")).scalar_one() == 0


def test_a_row_that_another_writer_was_first_with_is_a_conflict(database):
    row = text("INSERT INTO targets VALUES ('k', '{}', 0)")
    with pytest.raises(Conflict) as caught, database.write() as conn:
        conn.execute(row)
        conn.execute(row)
    assert str(caught.value) == "another writer was first: UNIQUE constraint failed: targets.key"


@pytest.mark.parametrize(
    "twin",
    [
        "INSERT INTO leases SELECT 'twin', worker, session, hardware, 'g1', 1, 0, 1, NULL, NULL FROM leases",
        "UPDATE attempts SET state = 'started'",
        "UPDATE trials SET number = 0",
        "UPDATE trials SET candidate_key = 'c0'",
        "UPDATE trials SET outcome = 'ok'",
        "UPDATE trials SET lease = 'nobody'",
    ],
)
def test_the_tables_themselves_refuse_what_must_never_be(scene, twin):
    scene.searched(2)
    scene.claim(scene.worker())
    with pytest.raises(Conflict), scene.store._database.write() as conn:
        conn.execute(text(twin))


def test_a_writer_waits_for_another_to_end(database, holder):
    threading.Timer(0.2, lambda: holder.execute("COMMIT")).start()
    with database.write() as conn:
        conn.execute(text("INSERT INTO targets VALUES ('k', '{}', 0)"))
    with database.read() as conn:
        assert conn.execute(text("SELECT count(*) FROM targets")).scalar_one() == 1


def test_a_database_that_stays_locked_is_unavailable(path, holder, monkeypatch):
    monkeypatch.setattr(database_module, "_BUSY_TIMEOUT_MS", 20)
    monkeypatch.setattr(database_module, "_LOCK_SECONDS", 0.1)
    with open_store(f"sqlite:///{path}") as store, pytest.raises(StoreUnavailable) as caught:
        store.put_target("t", "{}")
    assert str(caught.value) == f"{path}: stayed locked by other processes for 0.1 s"


def test_a_locked_database_can_still_be_read(path, holder):
    with open_store(f"sqlite:///{path}") as store:
        store.ping()
        assert store.best("w", "t", "h") is None


def test_a_full_disk_stores_nothing_and_says_so(path):
    with open_store(f"sqlite:///{path}") as store:
        database = store._database
        with database.write() as conn:
            pages = conn.exec_driver_sql("PRAGMA page_count").scalar_one()
            conn.exec_driver_sql(f"PRAGMA max_page_count = {pages + 8}")
        with pytest.raises(StoreFull) as caught:
            store.put_workload("w", "large", '"' + "x" * 100_000 + '"', "")
        assert str(caught.value) == f"{path}: the disk is full; nothing of this call was stored"
        with pytest.raises(NotFound):
            store.workload("w")
        assert store.put_target("t", "{}") == store.target("t")


def test_a_path_that_is_a_directory_is_named(tmp_path):
    with pytest.raises(StoreUnavailable, match=f"{tmp_path}: cannot be read and written"):
        open_store(f"sqlite:///{tmp_path}")


def test_a_wrong_statement_is_a_bug_and_stays_one(database):
    with pytest.raises(OperationalError, match="syntax error"), database.write() as conn:
        conn.execute(text("SELECT FROM WHERE"))


def test_the_clock_is_that_of_the_database_in_seconds(store):
    assert store.now() == pytest.approx(time.time(), abs=5.0)


def test_threads_of_one_process_write_together(store):
    def put(name):
        for n in range(10):
            store.put_target(f"{name}{n}", "{}")

    threads = [threading.Thread(target=put, args=[name]) for name in "abcd"]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    keys = {f"{name}{n}" for name in "abcd" for n in range(10)}
    assert {store.target(key).key for key in keys} == keys


def test_an_unreachable_store_is_a_connection_error():
    assert issubclass(StoreUnavailable, ConnectionError)


@pytest.mark.parametrize(
    "error",
    [
        NotFound("job", "job_0"),
        InvalidValue("trials", "must be at least 1, not 0"),
        SettlementMismatch("job_0.1", 2),
        errors.LeaseLost("lease lease_0 has expired"),
        StoreFull("a.db: the disk is full"),
    ],
)
def test_errors_survive_pickling(error):
    copy = pickle.loads(pickle.dumps(error))
    assert (type(copy), str(copy), copy.args) == (type(error), str(error), error.args)
