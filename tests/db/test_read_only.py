"""A database that this process may not write."""

import os

import pytest

from tilewright.db import StoreUnavailable, open_store
from tilewright.db.sql import sqlite_database

pytestmark = pytest.mark.parametrize("kind", ["sqlite"], indirect=True)  # about a file


@pytest.fixture
def read_only(scene, success, monkeypatch):
    """The url of a database with one best-known schedule, closed and then opened by who may only read."""
    scene.searched(1)
    lease = scene.claim(scene.worker())
    scene.store.settle(lease.id, [success(lease.items[0])])
    scene.store.close()
    # The tests may run as root, who may write everything.
    monkeypatch.setattr(sqlite_database, "_is_writable", lambda path: False)
    return scene.url


def test_a_read_only_database_serves_best_schedules(read_only):
    with open_store(read_only) as store:
        assert store.best("w", "t", "h").seconds == 0.5


def test_a_read_only_database_gets_no_file_beside_it(read_only, tmp_path):
    with open_store(read_only) as store:
        store.best("w", "t", "h")
        assert os.listdir(tmp_path) == ["tilewright.db"]


def test_a_read_only_database_takes_no_write_and_says_why(read_only, tmp_path):
    with open_store(read_only) as store, pytest.raises(StoreUnavailable) as refused:
        store.put_target("k", "{}")
    assert str(refused.value) == (
        f"{tmp_path}/tilewright.db: cannot be written, or no file beside it: it is read-only here"
    )


def test_a_read_only_database_cannot_be_served(read_only):
    refused = pytest.raises(StoreUnavailable, match="read-only")
    with open_store(read_only) as store, refused, store.serving("a server"):
        pass


def test_a_disk_that_keeps_no_log_is_named(kind, tmp_path, monkeypatch):
    """SQLite on a disk without shared memory, such as one in the network."""
    connect = sqlite_database._connect

    def without_shared_memory(address, *pragmas):
        return connect(f"file:{address}?vfs=unix-dotfile", *pragmas)

    monkeypatch.setattr(sqlite_database, "_connect", without_shared_memory)
    path = tmp_path / "t.db"
    with pytest.raises(StoreUnavailable) as refused:
        open_store(f"sqlite:///{path}")
    assert str(refused.value) == (
        f"{path}: SQLite cannot keep a write-ahead log here (journal mode delete); "
        "put the database on a local disk"
    )
