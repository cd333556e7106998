"""One server for each database."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

import tilewright
from tilewright.db import Conflict, open_store

pytestmark = pytest.mark.parametrize("kind", ["sqlite"], indirect=True)  # about a file

HOLD = """
import sys
from tilewright.db import open_store
with open_store(sys.argv[1]) as store, store.serving("process 7 at http://a:1"):
    print("held", flush=True)
    sys.stdin.read()
"""


def test_a_second_server_of_a_database_is_refused_naming_the_first(store, url, tmp_path):
    with open_store(url) as second, store.serving("process 7 at http://a:1"):
        with pytest.raises(Conflict) as refused, second.serving("process 8 at http://b:1"):
            pass
        assert str(refused.value) == (
            f"{tmp_path}/tilewright.db is served already, by process 7 at http://a:1: stop that server, or "
            "name another database"
        )


@pytest.mark.parametrize("mode", [0o600, 0o640])
def test_the_lock_of_a_database_has_its_mode(store, tmp_path, mode):
    (tmp_path / "tilewright.db").chmod(mode)
    with store.serving("process 7 at http://a:1"):
        assert (tmp_path / "tilewright.db.server").stat().st_mode & 0o777 == mode


def test_a_second_server_by_another_name_of_the_file_is_refused(store, tmp_path):
    (tmp_path / "link.db").symlink_to(tmp_path / "tilewright.db")
    with (
        open_store(f"sqlite:///{tmp_path}/link.db") as second,
        store.serving("the first"),
        pytest.raises(Conflict),
        second.serving("the second"),
    ):
        pass


def test_once_a_server_has_ended_another_may_serve(store, url):
    with open_store(url) as second:
        with store.serving("the first"):
            pass
        with second.serving("the second"):
            pass


def test_a_server_that_was_killed_holds_nothing(store, url):
    environment = {**os.environ, "PYTHONPATH": str(Path(tilewright.__file__).parents[1])}
    holder = subprocess.Popen(
        [sys.executable, "-c", HOLD, url], env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE
    )
    with holder:
        assert holder.stdout.readline() == b"held\n"
        with pytest.raises(Conflict, match="process 7 at http://a:1"), store.serving("the second"):
            pass
        holder.kill()
    with store.serving("the second"):
        pass


def test_databases_beside_each_other_are_served_at_the_same_time(store, tmp_path):
    with (
        open_store(f"sqlite:///{tmp_path}/other.db") as other,
        store.serving("the first"),
        other.serving("the second"),
    ):
        pass
