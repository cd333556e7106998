"""What a worker says of the candidates that it holds: started, settled, renewed, released."""

from __future__ import annotations

import json

import pytest
from lease_caller import SESSION, Caller, result_of
from service_harness import (
    HARDWARE,
    INVALID,
    Api,
    attach,
    problem,
    searched,
)


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
        result_of(lease["items"][0]),
        result_of(lease["items"][1], seconds=None, samples=[], error=None, failure=failure),
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
    path, results = f"/v1/leases/{lease['lease']}:settle", [result_of(lease["items"][0])]
    statuses = [caller.post(path, results=results).status_code for _ in range(2)]
    assert statuses == [200, 200]


def test_another_result_of_a_settled_attempt_is_refused(api: Api, caller: Caller) -> None:
    searched(api.store, 1)
    lease = caller.lease().json()
    item = lease["items"][0]
    path = f"/v1/leases/{lease['lease']}:settle"
    caller.post(path, results=[result_of(item)])
    answer = caller.post(path, results=[result_of(item, seconds=2e-5, samples=[2e-5])])
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
    results = [result_of(lease["items"][0], **{field: value})]
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
    slow = result_of(lease["items"][0], seconds=9e8, samples=[9e8])
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


@pytest.mark.parametrize("samples", [[1e-9], [1e-5, 1e-9]])
def test_a_time_below_the_devices_roofline_is_a_failure_that_says_so(
    api: Api, caller: Caller, samples: list[float]
) -> None:
    job = searched(api.store, 2)
    lease = caller.lease().json()
    results = [
        result_of(lease["items"][0], seconds=min(samples), samples=samples),
        result_of(lease["items"][1]),
    ]
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
    caller.post(f"/v1/leases/{lease['lease']}:settle", results=[result_of(lease["items"][0])])
    api.store.time_again(job.id, api.store.job(job.id).epoch, 0, [f"{job.id}.0"])
    again = caller.lease().json()
    results = [result_of(again["items"][0], seconds=1e-9, samples=[1e-9])]
    caller.post(f"/v1/leases/{again['lease']}:settle", results=results)
    (retiming,) = api.store.retimings(job.id)
    assert (retiming.outcome, retiming.seconds, api.store.trials(job.id)[0].seconds) == (
        "run_error",
        None,
        1e-5,
    )
