"""A worker attaches, waits for work and is given it."""

from __future__ import annotations

import threading
import time

import pytest
from lease_caller import HELLO, Caller, result_of
from service_harness import (
    FACTS,
    HARDWARE,
    INVALID,
    MATMUL,
    Api,
    key_of,
    problem,
    searched,
    trials,
)

from tilewright.measure.messages import Lease
from tilewright.service import lease_calls
from tilewright.service.routes import leases


def test_a_worker_that_attaches_is_told_its_id_and_its_durations(api: Api) -> None:
    answer = api.http.post("/v1/workers", json=HELLO, headers=api.token("worker"))
    (worker,) = api.store.workers()
    assert (answer.status_code, answer.json()) == (
        201,
        {"worker": worker.id, "ttl_seconds": 30.0, "renew_seconds": 10.0, "wait_seconds": 20.0},
    )


def test_an_attached_worker_is_listed(api: Api, caller: Caller) -> None:
    (worker,) = api.http.get("/v1/workers", headers=caller.headers).json()["workers"]
    assert worker.pop("seen_seconds_ago") < 10
    assert worker.pop("registered_at") == worker.pop("state_at")
    assert worker == {
        "id": caller.worker,
        "name": "w1",
        "state": "registering",
        "reason": "it has not asked for work yet",
        "hardware": HARDWARE,
        "facts": FACTS,
        "labels": {"rack": "3"},
        "pool": None,
        "versions": {"codegen": "7"},
        "protocol": 1,
        "until": None,
        "lease": None,
        "trial": None,
        "settled": 0,
        "failed": 0,
        "run_only": False,
    }


def test_attaching_wakes_the_dispatcher(api: Api, caller: Caller) -> None:
    assert api.dispatcher.woken == 1


def test_a_worker_belongs_to_the_pool_of_its_token(api: Api) -> None:
    _, value = api.store.create_token("t", ["worker"], "lab-b")
    api.http.post("/v1/workers", json=HELLO, headers={"Authorization": f"Bearer {value}"})
    assert api.store.workers()[0].pool == "lab-b"


def test_a_hardware_key_that_the_facts_do_not_amount_to_is_refused(api: Api) -> None:
    wrong = {**HELLO, "hardware_key": "0" * 64}
    detail = f"the facts in /hardware amount to {key_of(FACTS)}, got {'0' * 64}"
    assert api.http.post("/v1/workers", json=wrong, headers=api.token("worker")).json() == problem(
        422, *INVALID, detail, {"pointer": "/hardware_key", "detail": detail}
    )


@pytest.mark.parametrize("protocol", [0, 3])
def test_a_protocol_that_the_server_does_not_speak_is_426_naming_its_own(api: Api, protocol: int) -> None:
    answer = api.http.post("/v1/workers", json={**HELLO, "protocol": protocol}, headers=api.token("worker"))
    assert (answer.json(), answer.headers["upgrade"]) == (
        problem(
            426,
            "protocol-refused",
            "This server does not speak the worker's protocol",
            f"this server speaks protocol 1 and 2 and the worker {protocol}: install the server's version of "
            "tilewright on the worker's machine",
        ),
        "tilewright/2",
    )


def test_a_lease_carries_what_is_to_be_measured(api: Api, caller: Caller) -> None:
    job = searched(api.store, 3)
    lease = caller.lease().json()
    first = api.store.trials(job.id)[0]
    lease_id = lease.pop("lease")
    assert (lease_id, lease["items"].pop()["item"]) == (
        api.store.workers()[0].lease,
        api.store.trials(job.id)[1].id,
    )
    assert lease == {
        "ttl_seconds": 30.0,
        "renew_seconds": 10.0,
        "items": [
            {
                "item": first.id,
                "attempt": 1,
                "workload": MATMUL,
                "target": {"kind": "llvm", "mcpu": "skylake"},
                "trace": {"steps": [0]},
                "input_seed": 0,
                "limits": {"build_seconds": 10.0, "run_seconds": 10.0, "memory_bytes": 2 << 30},
                "best_seconds": None,
            }
        ],
    }


def test_a_lease_is_a_message_of_the_protocol(api: Api, caller: Caller) -> None:
    searched(api.store, 3)
    assert len(Lease.from_json(caller.lease().json()).items) == 2


def test_without_work_the_answer_is_204_after_the_wait(caller: Caller) -> None:
    begun = time.monotonic()
    answer = caller.lease(wait_seconds=0.4)
    assert (answer.status_code, answer.content, time.monotonic() - begun >= 0.4) == (204, b"", True)


def test_a_waiting_worker_gets_work_as_soon_as_there_is_some(api: Api, caller: Caller) -> None:
    job = searched(api.store, 1, hardware=HARDWARE)
    caller.lease(max_items=1)
    epoch = api.store.job(job.id).epoch
    threading.Timer(0.3, api.store.add_trials, [job.id, epoch, trials(1, first=1)]).start()
    begun = time.monotonic()
    answer = caller.lease(wait_seconds=10)
    assert (answer.status_code, time.monotonic() - begun < 3) == (200, True)


def test_a_waiting_worker_gets_trials_that_are_to_be_timed_again_as_soon_as_they_are(
    api: Api, caller: Caller
) -> None:
    job = searched(api.store, count=1)
    lease = caller.lease().json()
    caller.post(f"/v1/leases/{lease['lease']}:settle", results=[result_of(lease["items"][0])])
    epoch = api.store.job(job.id).epoch
    timer = threading.Timer(0.3, lambda: api.store.time_again(job.id, epoch, 0, [f"{job.id}.0"]))
    timer.start()
    again = caller.lease(wait_seconds=20.0).json()
    timer.join()
    assert [item["item"] for item in again["items"]] == [lease["items"][0]["item"]]


def test_a_waiting_worker_holds_up_nobody(api: Api, caller: Caller) -> None:
    waiting = threading.Thread(target=caller.lease, kwargs={"wait_seconds": 1.0})
    waiting.start()
    begun = time.monotonic()
    for _ in range(5):
        api.http.get("/v1/workers", headers=caller.headers)
    took = time.monotonic() - begun
    waiting.join()
    assert took / 5 < 0.2


def test_a_waiting_worker_is_sent_home_when_the_server_stops(api: Api, caller: Caller) -> None:
    threading.Timer(0.3, api.stopping.set).start()
    begun = time.monotonic()
    answer = caller.lease(wait_seconds=10)
    assert (answer.status_code, time.monotonic() - begun < 3) == (204, True)


def test_a_paused_worker_that_waits_asks_for_nothing_though_there_is_work(
    api: Api, caller: Caller, monkeypatch: pytest.MonkeyPatch
) -> None:
    searched(api.store, 2)
    api.store.pause_worker(caller.worker, "token ops")
    claims: list[str] = []
    claim = api.store.claim
    monkeypatch.setattr(
        type(api.store), "claim", lambda store, *a, **k: (claims.append("claim"), claim(*a, **k))[1]
    )
    answer = caller.lease(wait_seconds=0.4)
    assert (answer.status_code, "Tilewright-Worker" in answer.headers, claims) == (204, False, ["claim"])


def test_a_waiting_worker_is_told_to_drain_before_its_wait_is_over(
    api: Api, caller: Caller, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(leases, "_STATE_SEEN", 0.1)
    threading.Timer(0.2, api.store.drain_worker, [caller.worker, "token ops"]).start()
    begun = time.monotonic()
    answer = caller.lease(wait_seconds=15)
    assert (answer.status_code, answer.headers["Tilewright-Worker"]) == (204, "drain")
    assert time.monotonic() - begun < 10


@pytest.mark.parametrize(("protocol", "status"), [(1, 426), (2, 201), (3, 201), (4, 426)])
def test_property_11_the_server_speaks_its_protocol_and_the_one_before(
    api: Api, monkeypatch: pytest.MonkeyPatch, protocol: int, status: int
) -> None:
    monkeypatch.setattr(lease_calls, "PROTOCOL", 3)
    hello = {**HELLO, "protocol": protocol}
    answer = api.http.post("/v1/workers", json=hello, headers=api.token("worker"))
    assert answer.status_code == status
    if status == 426:
        assert answer.headers["upgrade"] == "tilewright/3"
        assert answer.json()["detail"].startswith("this server speaks protocol 2 and 3 and the worker ")
