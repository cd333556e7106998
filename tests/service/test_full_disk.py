"""A database whose disk is full: nothing is acknowledged that is not stored, and it goes on when there is
room."""

import contextlib
import functools
import os
import resource
import shutil
import subprocess
import sys
import time
from pathlib import Path

import httpx
import psycopg
import pytest
from service_harness import serving_at
from small_disks import ballast
from sqlalchemy.exc import OperationalError

from tilewright.db import open_store
from tilewright.service.retention import Retention


@pytest.fixture(params=["sqlite", "postgres"])
def store(request, tmp_path):
    """In the place of the one that other tests of the service are given."""
    in_file = f"sqlite:///{tmp_path}/tilewright.db"
    url = in_file if request.param == "sqlite" else request.getfixturevalue("postgres_url")
    with open_store(url) as opened:
        yield opened


@pytest.fixture
def full(store, monkeypatch):
    """Call it for a time in which the disk of the database is full."""
    database = store._database.inner

    @contextlib.contextmanager
    def limited_pages():
        with database.write() as conn:
            pages = conn.exec_driver_sql("PRAGMA page_count").scalar_one()
        with store._database.inner._writer.connect() as conn:
            conn.exec_driver_sql(f"PRAGMA max_page_count = {pages}")
        yield
        with store._database.inner._writer.connect() as conn:
            conn.exec_driver_sql("PRAGMA max_page_count = 1000000")

    @contextlib.contextmanager
    def refused_rows():
        from sqlalchemy import event

        def refuse(conn, cursor, statement, parameters, context, many):
            if statement.startswith("INSERT"):
                said = psycopg.errors.DiskFull("could not extend file")
                raise OperationalError(statement, {}, said)

        event.listen(database._engine, "before_cursor_execute", refuse)
        yield
        event.remove(database._engine, "before_cursor_execute", refuse)

    return limited_pages if hasattr(database, "path") else refused_rows


REQUEST = {
    "workload": {"op": "matmul", "m": 8, "n": 8, "k": 8, "pad": "x" * 100_000},
    "target": "llvm",
    "budget": {"trials": 4},
}


def test_a_job_that_cannot_be_stored_is_answered_507_and_is_not_there(api, full):
    with full():
        answer = api.http.post("/v1/jobs", json=REQUEST)
    said = answer.json()
    assert (answer.status_code, said["code"]) == (507, "store-full")
    assert answer.headers["content-type"] == "application/problem+json"
    assert said["detail"].endswith("the disk is full; nothing of this call was stored")
    assert api.store.jobs().items == ()


def test_once_there_is_room_jobs_are_taken_again(api, full):
    with full():
        api.http.post("/v1/jobs", json=REQUEST)
    answer = api.http.post("/v1/jobs", json=REQUEST | {"seed": 9})
    assert answer.status_code == 202
    assert api.http.get(f"/v1/jobs/{answer.json()['id']}").status_code == 200


def test_a_full_database_still_answers_lookups_and_lists(api, full):
    with full():
        assert api.http.get("/v1/jobs").status_code == 200
        assert api.http.get("/readyz").status_code in (200, 503)


def test_a_server_forgets_at_once_and_then_every_so_often(store):
    asked = []

    class Watched:
        def prune(self, older_than):
            asked.append(older_than)
            if len(asked) == 2:
                retention._stopping.set()
            return store.prune(older_than)

    retention = Retention(Watched(), days=2, every=0.01)
    retention.start()
    retention._thread.join()
    retention.stop()
    assert asked == [172_800.0, 172_800.0]


def posted(http, seed):
    return http.post("/v1/jobs", json=REQUEST | {"seed": seed})


def fills(http):
    """Jobs until the disk is full: those that were acknowledged, and the answer that was none."""
    taken = []
    for seed in range(1_000):
        answer = posted(http, seed)
        if answer.status_code != 202:
            return taken, answer
        taken.append(answer.json()["id"])
    raise AssertionError("the disk was never full")


def kept_and_goes_on(http, taken, answer, make_room):
    assert (answer.status_code, answer.json()["code"]) == (507, "store-full")
    known = http.get("/v1/jobs", params={"page_size": 500})
    assert known.status_code == 200
    assert sorted(job["id"] for job in known.json()["jobs"]) == sorted(taken)
    make_room()
    assert posted(http, 5_000).status_code == 202


@contextlib.contextmanager
def server_on(db, folder):
    """A server process with a client of it."""
    ready_file, program = folder / "url", Path(__file__).parent / "server_program.py"
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    process = subprocess.Popen([sys.executable, program, db, ready_file, folder / "starts"], env=environment)
    try:
        give_up = time.monotonic() + 60
        while not ready_file.exists():
            assert time.monotonic() < give_up and process.poll() is None, "the server did not start"
            time.sleep(0.05)
        with httpx.Client(base_url=ready_file.read_text().strip(), timeout=30, trust_env=False) as http:
            yield process, http
    finally:
        process.kill()
        process.wait()


def test_a_server_on_a_disk_that_is_really_full_says_507_and_goes_on_when_there_is_room(tmp_path, small_disk):
    disk = small_disk(tmp_path / "disk", 12)
    with server_on(f"sqlite:///{disk}/tilewright.db", tmp_path) as (_, http):
        file = ballast(disk, 1_000_000)
        kept_and_goes_on(http, *fills(http), file.unlink)


def test_a_server_whose_files_may_not_grow_says_507_and_goes_on_when_they_may(tmp_path):
    db = tmp_path / "tilewright.db"
    with server_on(f"sqlite:///{db}", tmp_path) as (process, http):
        unlimited = resource.prlimit(process.pid, resource.RLIMIT_FSIZE)
        most = max(each.stat().st_size for each in tmp_path.glob("tilewright.db*")) + 500_000
        resource.prlimit(process.pid, resource.RLIMIT_FSIZE, (most, unlimited[1]))
        taken, answer = fills(http)
        make_room = functools.partial(resource.prlimit, process.pid, resource.RLIMIT_FSIZE, unlimited)
        kept_and_goes_on(http, taken, answer, make_room)


def test_postgres_on_a_disk_that_is_really_full_says_507_and_goes_on(request, small_disk, shared_server):
    server = request.getfixturevalue("postgres")
    blank = request.getfixturevalue("postgres_blank")
    disk = small_disk(server.directory / f"small{os.getpid()}", 40)
    place = disk / "space"
    place.mkdir()
    place.chmod(0o777)
    if os.geteuid() == 0:
        shutil.chown(place, "nobody")
    server.run(f"CREATE TABLESPACE small LOCATION '{place}'")
    server.run(f"CREATE DATABASE on_small TEMPLATE {blank} TABLESPACE small")
    try:
        with open_store(server.url("on_small")) as store, serving_at(*shared_server, store) as api:
            file = ballast(disk, 500_000)
            kept_and_goes_on(api.http, *fills(api.http), file.unlink)
    finally:
        server.drop("on_small")
        server.run("DROP TABLESPACE small")
