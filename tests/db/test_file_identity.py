"""A database whose file is deleted, replaced or overwritten while it is open."""

import os
import shutil
from pathlib import Path

import pytest

from tilewright.db import StoreUnavailable

pytestmark = pytest.mark.parametrize("kind", ["sqlite"], indirect=True)  # about a file

GONE = "it is not there any more (No such file or directory)"
REPLACED = "another file is in its place"
OVERWRITTEN = "it was overwritten and is no database any more"


def _delete(path: Path) -> None:
    path.rename(path.with_suffix(".away"))


def _replace(path: Path) -> None:
    shutil.copy(path, path.with_suffix(".copy"))
    path.with_suffix(".copy").replace(path)


def _overwrite(path: Path) -> None:
    path.write_text("no database")


def _spoil(path: Path) -> None:
    """Of the same length: only what is in it tells."""
    with path.open("r+b") as file:
        file.write(b"x" * 100)


@pytest.fixture
def path(tmp_path):
    return tmp_path / "tilewright.db"


@pytest.mark.parametrize(
    ("harm", "how"),
    [
        (_delete, GONE),
        (_replace, REPLACED),
        (_overwrite, OVERWRITTEN),
        (_spoil, f"{OVERWRITTEN} (file is not a database)"),
    ],
)
@pytest.mark.parametrize("call", ["write", "ping"])
def test_a_database_that_is_no_longer_the_one_that_was_opened_takes_no_write_and_no_ping(
    store, path, harm, how, call
):
    harm(path)
    with pytest.raises(StoreUnavailable) as refused:
        store.ping() if call == "ping" else store.put_target("k", "{}")
    assert str(refused.value) == (
        f"{path}: the database that was opened is gone: {how}. Put the file back, or restart on another "
        "database"
    )


@pytest.mark.parametrize("harm", [_delete, _replace, _overwrite])
def test_a_database_that_is_no_longer_the_one_that_was_opened_is_not_read(store, path, harm):
    store.put_target("k", "{}")
    harm(path)
    with pytest.raises(StoreUnavailable, match="the database that was opened is gone"):
        store.target("k")


def test_a_refused_call_makes_no_new_file(store, path):
    path.rename(path.with_suffix(".away"))
    with pytest.raises(StoreUnavailable):
        store.put_target("k", "{}")
    assert not path.exists()


def test_a_database_that_is_put_back_serves_again(store, path):
    store.put_target("k", "{}")
    path.rename(path.with_suffix(".away"))
    with pytest.raises(StoreUnavailable):
        store.ping()
    path.with_suffix(".away").rename(path)
    store.ping()
    assert store.target("k").description == "{}"


def test_looking_at_the_file_leaves_no_descriptor_open(store):
    store.put_target("k", "{}")
    store.ping()
    before = len(os.listdir("/proc/self/fd"))
    for _ in range(20):
        store.ping()
    assert len(os.listdir("/proc/self/fd")) == before
