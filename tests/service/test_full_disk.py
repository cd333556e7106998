"""A database whose disk is full: nothing is acknowledged that is not stored, and it goes on when there is
room."""

import contextlib

import psycopg
import pytest
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
