"""A list of jobs is answered with as many queries as one job."""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import Any

import pytest
from service_harness import HARDWARE, Api, FakeParser, attach, searched, settle, stored_job
from sqlalchemy import Engine, event

from tilewright.db.errors import NotFound
from tilewright.service.presenter import Presenter
from tilewright.service.remembered import Remembered


@pytest.fixture
def statements() -> Iterator[list[str]]:
    """The statements of all stores from now on."""
    said: list[str] = []

    def listen(conn: Any, cursor: Any, statement: str, *_: Any) -> None:
        if statement != "BEGIN":
            said.append(statement)

    event.listen(Engine, "before_cursor_execute", listen)
    yield said
    event.remove(Engine, "before_cursor_execute", listen)


def lab(api: Api, count: int) -> None:
    """So many jobs that ended with a best, and as many that wait for a worker."""
    for _ in range(count):
        job = searched(api.store, 1)
        settle(api.store, [1e-5], attach(api.store))
        api.store.finish_job(job.id, None, "completed", "")
    for _ in range(count):
        searched(api.store, 1)


def test_a_page_takes_as_many_statements_whatever_its_length(api: Api, statements: list[str]) -> None:
    lab(api, 10)
    time.sleep(0.05)
    taken = []
    for size in (20, 2):
        presenter = Presenter(api.store, FakeParser(), 0.02)
        statements.clear()
        views = presenter.jobs(api.store.jobs(limit=size).items)
        taken.append(len(statements))
        assert (len(views), views[0].stalled is None, views[-1].best is None) == (size, False, size == 2)
    statements.clear()
    shown = api.http.get("/v1/jobs", params={"page_size": 20}).json()["jobs"]
    taken.append(len(statements))
    assert [job["id"] for job in shown] == [job.id for job in api.store.jobs(limit=20).items]
    assert (taken[0] == taken[1] + 1, taken[0] < 12, taken[2] < 12) == (True, True, True)  # the bests


def test_a_job_is_the_same_in_a_list(api: Api) -> None:
    lab(api, 1)
    stored_job(api.store, hardware=None)
    for job in api.http.get("/v1/jobs").json()["jobs"]:
        alone = api.http.get(f"/v1/jobs/{job['id']}").json()
        for said in (job, alone):  # these are by the clock
            said["progress"] |= {"elapsed_seconds": None, "eta_seconds": None}
        assert job == alone


def test_a_job_that_was_removed_since_is_left_out_of_a_list(api: Api) -> None:
    gone, here = stored_job(api.store), stored_job(api.store)
    api.store.finish_job(gone.id, None, "failed", "")
    api.store.prune(0.0)
    presenter = Presenter(api.store, FakeParser())
    assert [view.id for view in presenter.jobs([gone, here])] == [here.id]
    with pytest.raises(NotFound, match=gone.id):
        presenter.job(gone)


def test_a_list_of_workers_takes_as_many_statements_whatever_its_length(
    api: Api, statements: list[str]
) -> None:
    taken, admin = [], api.token("admin")
    for count in (1, 20):
        for number in range(count):
            attach(api.store, f"rig{number}")
        statements.clear()
        (kind,) = {
            worker["hardware"] for worker in api.http.get("/v1/workers", headers=admin).json()["workers"]
        }
        taken.append(len(statements))
        assert kind == HARDWARE
    assert taken[0] == taken[1]


def test_what_was_asked_for_longest_ago_is_forgotten_first() -> None:
    read: list[list[str]] = []

    def look(keys: Any) -> dict[str, str]:
        read.append(list(keys))
        return {key: key.upper() for key in keys if key != "none"}

    known = Remembered(look, 2)
    assert known.of(["b", "a", "none"]) == {"a": "A", "b": "B"}
    assert (known.of(["a"]), known.of(["c"]), known.of(["a", "b"])) == (
        {"a": "A"},
        {"c": "C"},
        {"a": "A", "b": "B"},
    )
    assert read == [["a", "b", "none"], ["c"], ["b"]]
