"""The client of a worker, against a server in a thread."""

from __future__ import annotations

import threading
from collections.abc import Iterator

import pytest
from service_harness import (
    FACTS,
    HARDWARE,
    Api,
    attach,
    searched,
    serving,
    trials,
)

from tilewright.db import Store
from tilewright.measure.messages import (
    LeaseLost,
    LeaseUpdate,
    MeasureResult,
    Registration,
    SourceRefused,
    SourceUnreachable,
    Superseded,
    Unauthorized,
    VersionRefused,
    WorkerHello,
)
from tilewright.service.client import Client
from tilewright.service.worker_client import WorkerClient


@pytest.fixture
def source(api: Api) -> Iterator[WorkerClient]:
    """A worker's source of work, with a token for it."""
    with Client(api.url, api.store.create_token("t", ["worker"])[1]) as opened:
        yield WorkerClient(opened.transport)


HELLO = WorkerHello(1, "w1", "5" * 32, HARDWARE, FACTS, {"codegen": "7"})


def _result(item: str, attempt: int) -> MeasureResult:
    return MeasureResult(item, attempt, seconds=1e-5, samples=(1e-5,), error=0.5)


def test_a_worker_attaches_leases_measures_and_settles(api: Api, source: WorkerClient) -> None:
    job = searched(api.store, 3)
    registration = source.register(HELLO)
    lease = source.lease(2, 0.0)
    assert lease is not None
    source.start(lease.lease, lease.items[0].item, lease.items[0].attempt)
    update = source.settle(lease.lease, [_result(lease.items[0].item, lease.items[0].attempt)])
    source.release(lease.lease)
    assert registration == Registration(api.store.workers()[0].id, 30.0, 10.0, 20.0)
    assert (update.cancelled, update.drain, update.ttl_seconds > 20) == ((), False, True)
    assert [trial.outcome for trial in api.store.trials(job.id)] == ["ok", "pending", "pending"]


def test_a_worker_without_work_is_told_none(api: Api, source: WorkerClient) -> None:
    source.register(HELLO)
    assert source.lease(2, 0.1) is None


def test_renewing_is_answered(api: Api, source: WorkerClient) -> None:
    source.register(HELLO)
    searched(api.store, 3)
    lease = source.lease(2, 0.0)
    assert lease is not None
    assert isinstance(source.renew(lease.lease), LeaseUpdate)


def test_a_worker_without_a_token_is_unauthorized(api: Api) -> None:
    with Client(api.url) as client, pytest.raises(Unauthorized):
        WorkerClient(client.transport).register(HELLO)


def test_a_worker_with_a_token_of_another_scope_is_unauthorized(api: Api) -> None:
    value = api.store.create_token("t", ["jobs:write"])[1]
    with Client(api.url, value) as client, pytest.raises(Unauthorized):
        WorkerClient(client.transport).register(HELLO)


def test_a_superseded_worker_is_told(api: Api, source: WorkerClient) -> None:
    source.register(HELLO)
    attach(api.store, "w1", session="6" * 32)
    with pytest.raises(Superseded):
        source.lease(2, 0.0)


def test_a_worker_whose_lease_was_granted_to_another_is_told(api: Api, source: WorkerClient) -> None:
    source.register(HELLO)
    searched(api.store, 1)
    lease = source.lease(1, 0.0)
    assert lease is not None
    source.release(lease.lease)
    other = attach(api.store, "w2")
    api.store.claim(other.id, other.session, HARDWARE, 1, 30.0)
    with pytest.raises(LeaseLost):
        source.settle(lease.lease, [_result(lease.items[0].item, lease.items[0].attempt)])


def test_a_worker_of_another_protocol_is_refused(api: Api, source: WorkerClient) -> None:
    hello = WorkerHello(3, "w1", "5" * 32, HARDWARE, FACTS, {})
    with pytest.raises(VersionRefused, match="this server speaks protocol 1 and 2 and the worker 3"):
        source.register(hello)


def test_a_call_that_is_refused_for_what_it_says_is_told_why(api: Api, source: WorkerClient) -> None:
    source.register(HELLO)
    with pytest.raises(SourceRefused, match="there is no lease 'nothing'"):
        source.renew("nothing")


def test_a_worker_whose_server_stops_is_told_that_it_is_unreachable(store: Store) -> None:
    with serving(store) as api:
        client = Client(api.url, api.store.create_token("t", ["worker"])[1])
        source = WorkerClient(client.transport)
        source.register(HELLO)
    with client, pytest.raises(SourceUnreachable):
        source.lease(1, 0.0)


def test_trials_that_come_while_a_worker_waits_reach_it(api: Api, source: WorkerClient) -> None:
    source.register(HELLO)
    job = searched(api.store, 0)
    threading.Timer(0.2, api.store.add_trials, [job.id, job.epoch, trials(1)]).start()
    lease = source.lease(1, 5.0)
    assert lease is not None and len(lease.items) == 1
