from __future__ import annotations

import json
import threading
import time
from dataclasses import dataclass
from typing import Any

import pytest
from service_harness import (
    FACTS,
    HARDWARE,
    INVALID,
    MATMUL,
    Api,
    attach,
    key_of,
    problem,
    searched,
    trials,
)

from tilewright.measure.messages import Lease, MeasureResult, WorkerHello
from tilewright.service import lease_calls
from tilewright.service.routes import leases

SESSION = "5" * 32
HELLO = WorkerHello(1, "w1", SESSION, HARDWARE, FACTS, {"codegen": "7"}, {"rack": "3"}).to_json()


@dataclass(frozen=True)
class Caller:
    """A worker that attached, and speaks the protocol by hand."""

    api: Api
    headers: dict[str, str]
    worker: str

    def post(self, path: str, **said: Any) -> Any:
        body = {"protocol": 1, "worker": self.worker, "session": SESSION, **said}
        return self.api.http.post(path, json=body, headers=self.headers)

    def lease(self, max_items: int = 2, wait_seconds: float = 0.0) -> Any:
        return self.post("/v1/leases", max_items=max_items, wait_seconds=wait_seconds)


@pytest.fixture
def caller(api: Api) -> Caller:
    headers = api.token("worker")
    worker = api.http.post("/v1/workers", json=HELLO, headers=headers).json()["worker"]
    return Caller(api, headers, worker)


def _result(item: dict[str, Any], **more: Any) -> dict[str, Any]:
    made = MeasureResult(
        item["item"], item["attempt"], seconds=1e-5, samples=(1e-5, 2e-5), error=0.25, wall_seconds=0.5
    )
    return {**made.to_json(), **more}


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
    caller.post(f"/v1/leases/{lease['lease']}:settle", results=[_result(lease["items"][0])])
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


def test_starting_a_candidate_marks_its_trial(api: Api, caller: Caller) -> None:
    job = searched(api.store, 2)
    lease = caller.lease().json()
    answer = caller.post(f"/v1/leases/{lease['lease']}:start", item=lease["items"][0]["item"], attempt=1)
    outcomes = [trial.outcome for trial in api.store.trials(job.id)]
    assert (answer.json()["cancelled"], answer.json()["drain"], outcomes) == (
        [],
        False,
        ["started", "pending"],
    )


def test_settled_results_are_stored(api: Api, caller: Caller) -> None:
    job = searched(api.store, 2)
    lease = caller.lease().json()
    failure = {
        "kind": "run_timeout",
        "message": "it ran for 10 s",
        "limit": 10.0,
        "elapsed": 10.2,
        "last_words": "tick",
    }
    results = [
        _result(lease["items"][0]),
        _result(lease["items"][1], seconds=None, samples=[], error=None, failure=failure),
    ]
    answer = caller.post(f"/v1/leases/{lease['lease']}:settle", results=results)
    timed, failed = api.http.get(f"/v1/jobs/{job.id}/trials").json()["trials"]
    assert answer.status_code == 200
    assert (timed["outcome"], timed["seconds"], timed["samples"], timed["error"]) == (
        "ok",
        1e-5,
        [1e-5, 2e-5],
        0.25,
    )
    assert (failed["outcome"], failed["message"], failed["detail"]) == (
        "run_timeout",
        "it ran for 10 s",
        {"limit": 10.0, "elapsed": 10.2, "last_words": "tick"},
    )


def test_the_same_result_twice_gets_the_same_answer(api: Api, caller: Caller) -> None:
    searched(api.store, 1)
    lease = caller.lease().json()
    path, results = f"/v1/leases/{lease['lease']}:settle", [_result(lease["items"][0])]
    statuses = [caller.post(path, results=results).status_code for _ in range(2)]
    assert statuses == [200, 200]


def test_another_result_of_a_settled_attempt_is_refused(api: Api, caller: Caller) -> None:
    searched(api.store, 1)
    lease = caller.lease().json()
    item = lease["items"][0]
    path = f"/v1/leases/{lease['lease']}:settle"
    caller.post(path, results=[_result(item)])
    answer = caller.post(path, results=[_result(item, seconds=2e-5, samples=[2e-5])])
    assert (answer.status_code, answer.json()["code"]) == (422, "settlement-mismatch")


@pytest.mark.parametrize(
    ("field", "value", "pointer", "reason"),
    [
        ("seconds", -1, "/results/0/seconds", "must be above 0, got -1.0"),
        ("seconds", 0, "/results/0/seconds", "must be above 0, got 0.0"),
        ("samples", [1e-5, 0], "/results/0/samples/1", "must be above 0, got 0.0"),
        ("seconds", "fast", "/results/0/seconds", "expected a number, got a string"),
        ("speed", 1, "/results/0/speed", None),
    ],
)
def test_a_result_that_no_clock_gives_is_refused_at_its_pointer(
    api: Api, caller: Caller, field: str, value: object, pointer: str, reason: str | None
) -> None:
    searched(api.store, 1)
    lease = caller.lease().json()
    results = [_result(lease["items"][0], **{field: value})]
    document = caller.post(f"/v1/leases/{lease['lease']}:settle", results=results).json()
    (error,) = document["errors"]
    assert (document["status"], error["pointer"]) == (422, pointer)
    assert reason is None or error["detail"] == reason


@pytest.mark.parametrize("word", ["NaN", "Infinity"])
def test_a_result_that_is_no_number_is_refused_and_changes_no_best(
    api: Api, caller: Caller, word: str
) -> None:
    job = searched(api.store, 1)
    lease = caller.lease().json()
    body = (
        f'{{"protocol": 1, "worker": "{caller.worker}", "session": "{SESSION}", "results": '
        f'[{{"item": "{lease["items"][0]["item"]}", "attempt": 1, "seconds": {word}, "samples": [1]}}]}}'
    )
    answer = api.http.post(
        f"/v1/leases/{lease['lease']}:settle",
        content=body,
        headers={**caller.headers, "Content-Type": "application/json"},
    )
    best = api.store.best(job.workload, job.target, HARDWARE)
    assert (answer.status_code, answer.json()["code"], best) == (400, "malformed-json", None)


def test_a_slow_time_is_kept_as_it_is(api: Api, caller: Caller) -> None:
    job = searched(api.store, 1)
    lease = caller.lease().json()
    slow = _result(lease["items"][0], seconds=9e8, samples=[9e8])
    caller.post(f"/v1/leases/{lease['lease']}:settle", results=[slow])
    assert api.store.trials(job.id)[0].seconds == 9e8


def test_renewing_says_what_is_no_longer_wanted(api: Api, caller: Caller) -> None:
    job = searched(api.store, 2)
    lease = caller.lease().json()
    api.store.cancel_job(job.id)
    answer = caller.post(f"/v1/leases/{lease['lease']}:renew").json()
    assert sorted(answer["cancelled"]) == sorted(item["item"] for item in lease["items"])


def test_released_candidates_are_leased_again(api: Api, caller: Caller) -> None:
    searched(api.store, 2)
    lease = caller.lease().json()
    released = caller.post(f"/v1/leases/{lease['lease']}:release")
    again = caller.lease().json()
    items = [[item["item"] for item in each["items"]] for each in (lease, again)]
    assert (released.status_code, items[0]) == (204, items[1])


def test_a_superseded_session_is_409(api: Api, caller: Caller) -> None:
    attach(api.store, "w1", session="6" * 32)
    answer = caller.lease()
    assert (answer.status_code, answer.json()["code"]) == (409, "superseded")


def test_a_lease_that_is_not_there_is_404(caller: Caller) -> None:
    answer = caller.post("/v1/leases/lease_000000000000:renew")
    assert (answer.status_code, answer.json()["code"]) == (404, "not-found")


def test_a_call_with_a_field_too_many_is_refused(caller: Caller) -> None:
    assert caller.post("/v1/leases/l:renew", urgent=True).json() == problem(
        422,
        *INVALID,
        "/urgent: unknown field; known fields: protocol, worker, session",
        {"pointer": "/urgent", "detail": "unknown field; known fields: protocol, worker, session"},
    )


@pytest.mark.parametrize("most", [0, 65, "8", True])
def test_a_batch_beyond_the_protocols_is_refused(caller: Caller, most: object) -> None:
    answer = caller.post("/v1/leases", max_items=most, wait_seconds=0)
    assert answer.json()["errors"] == [{"pointer": "/max_items", "detail": "expected an integer of 1 to 64"}]


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


@pytest.mark.parametrize("samples", [[1e-9], [1e-5, 1e-9]])
def test_a_time_below_the_devices_roofline_is_a_failure_that_says_so(
    api: Api, caller: Caller, samples: list[float]
) -> None:
    job = searched(api.store, 2)
    lease = caller.lease().json()
    results = [_result(lease["items"][0], seconds=min(samples), samples=samples), _result(lease["items"][1])]
    path = f"/v1/leases/{lease['lease']}:settle"
    answers = [caller.post(path, results=results).status_code for _ in range(2)]
    refused, honest = api.store.trials(job.id)
    best = api.store.best(job.workload, job.target, HARDWARE)
    assert answers == [200, 200]
    assert (refused.outcome, refused.seconds, refused.failure_message) == (
        "run_error",
        None,
        "the worker reports 1e-09 s, but this device cannot do the work in less than 5.24e-07 s: "
        "its clock or its kernel is wrong",
    )
    assert json.loads(refused.failure_detail) == {"limit": 64**3 * 2 / 1e12, "elapsed": 1e-9}
    assert (honest.outcome, best and best.trial) == ("ok", honest.id)


def test_a_time_again_below_the_roofline_crowns_nothing(api: Api, caller: Caller) -> None:
    job = searched(api.store, count=1)
    lease = caller.lease().json()
    caller.post(f"/v1/leases/{lease['lease']}:settle", results=[_result(lease["items"][0])])
    api.store.time_again(job.id, api.store.job(job.id).epoch, 0, [f"{job.id}.0"])
    again = caller.lease().json()
    results = [_result(again["items"][0], seconds=1e-9, samples=[1e-9])]
    caller.post(f"/v1/leases/{again['lease']}:settle", results=results)
    (retiming,) = api.store.retimings(job.id)
    assert (retiming.outcome, retiming.seconds, api.store.trials(job.id)[0].seconds) == (
        "run_error",
        None,
        1e-5,
    )


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
