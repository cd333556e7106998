"""A worker that says it ends."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from service_harness import FACTS, HARDWARE, Api, attach, problem

from tilewright.measure.messages import Superseded, WorkerHello
from tilewright.service.client import Client
from tilewright.service.worker_client import WorkerClient

SESSION = "5" * 32
HELLO = WorkerHello(1, "w1", SESSION, HARDWARE, FACTS, {"codegen": "7"})


@pytest.fixture
def source(api: Api) -> Iterator[WorkerClient]:
    """A worker's source of work, with a token for it."""
    with Client(api.url, api.store.create_token("t", ["worker"])[1]) as opened:
        yield WorkerClient(opened.transport)


def test_a_worker_that_leaves_is_offline_at_once(api: Api, source: WorkerClient) -> None:
    worker = source.register(HELLO).worker
    source.leave()
    assert api.store.worker(worker).state == "offline"


def test_leaving_without_having_attached_asks_nothing(api: Api, source: WorkerClient) -> None:
    source.leave()
    assert api.store.workers() == []


def test_leaving_wakes_the_dispatcher(api: Api, source: WorkerClient) -> None:
    source.register(HELLO)
    before = api.dispatcher.woken
    source.leave()
    assert api.dispatcher.woken == before + 1


def test_a_superseded_worker_that_leaves_is_told(api: Api, source: WorkerClient) -> None:
    source.register(HELLO)
    attach(api.store, "w1", session="6" * 32)
    with pytest.raises(Superseded):
        source.leave()


def test_a_worker_can_make_only_itself_leave(api: Api) -> None:
    one, other = attach(api.store, "w1"), attach(api.store, "w2")
    body = {"protocol": 1, "worker": one.id, "session": one.session}
    answer = api.http.post(f"/v1/workers/{other.id}:leave", json=body, headers=api.token("worker"))
    detail = f"must be the worker of the path, {other.id}"
    assert answer.json() == problem(
        422,
        "invalid-request",
        "The request does not say what this route needs",
        detail,
        {"pointer": "/worker", "detail": detail},
    )


def test_leaving_needs_a_workers_token(api: Api) -> None:
    worker = attach(api.store)
    body = {"protocol": 1, "worker": worker.id, "session": worker.session}
    answer = api.http.post(f"/v1/workers/{worker.id}:leave", json=body)
    assert (answer.status_code, api.store.worker(worker.id).state) == (401, "registering")
