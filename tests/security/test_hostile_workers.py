"""What a worker says is what anybody might say who has its token: results that cannot be, and results and
leases of others."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import httpx
import pytest
from service_harness import FACTS, HARDWARE, MATMUL, Api, searched

from tilewright.db import Store
from tilewright.measure.messages import PROTOCOL, MeasureResult

Json = Any


class Worker:
    """A worker that speaks the protocol by hand."""

    def __init__(self, api: Api, name: str, session: str, pool: str | None = None) -> None:
        _, value = api.store.create_token(name, ["worker"], pool)
        self.session = session
        self.headers = {"Authorization": f"Bearer {value}"}
        self.http = api.http
        hello = {
            "protocol": PROTOCOL,
            "name": name,
            "session": session,
            "hardware_key": HARDWARE,
            "hardware": FACTS,
            "versions": {"codegen": "7"},
        }
        self.attached = self.http.post("/v1/workers", json=hello, headers=self.headers)
        self.id = self.attached.json().get("worker")

    def post(self, path: str, **said: Any) -> httpx.Response:
        body = {"protocol": PROTOCOL, "worker": self.id, "session": self.session, **said}
        return self.http.post(path, json=body, headers=self.headers)

    def lease(self) -> Json:
        answer = self.post("/v1/leases", max_items=4, wait_seconds=0)
        return answer.json() if answer.status_code == 200 else None


def made(of: Json, **more: Any) -> Json:
    result = MeasureResult(of["item"], of["attempt"], seconds=0.5, samples=(0.5, 0.75), error=0.25)
    return {**result.to_json(), **more}


@pytest.fixture
def one(api: Api) -> Worker:
    return Worker(api, "one", "1" * 32)


@pytest.fixture
def two(api: Api) -> Worker:
    return Worker(api, "two", "2" * 32)


HUGE = 10**400
IMPOSSIBLE: dict[str, Json] = {
    "less than a call can take": {"seconds": 1e-16, "samples": [1e-16]},
    "none": {"seconds": 0, "samples": [0]},
    "negative": {"seconds": -1.0, "samples": [-1.0]},
    "subnormal": {"seconds": 5e-324, "samples": [5e-324]},
    "longer than anybody waits": {"seconds": 1e300, "samples": [1e300]},
    "an integer of 400 digits": {"seconds": HUGE, "samples": [HUGE]},
    "true": {"seconds": True, "samples": [True]},
    "a text": {"seconds": "0.5", "samples": ["0.5"]},
    "without samples": {"samples": []},
    "more samples than any trial has": {"samples": [0.5] * 1_001},
    "a sample that is none": {"samples": [0.5, -1.0]},
    "other than its samples": {"seconds": 0.001},
    "wrong beyond the tolerance": {"error": 1.5},
    "negatively wrong": {"error": -0.5},
    "a time and a failure": {"failure": {"kind": "run_error", "message": "x"}},
    "no calls": {"calls": 0},
    "another attempt than the protocol counts": {"attempt": -1},
    "a kind of failure that is none": {
        "seconds": None,
        "samples": [],
        "error": None,
        "failure": {"kind": "sabotage", "message": ""},
    },
    "words without end": {
        "seconds": None,
        "samples": [],
        "error": None,
        "failure": {"kind": "run_error", "message": "x" * 4_001},
    },
}


@pytest.mark.parametrize("name", IMPOSSIBLE)
def test_a_result_that_cannot_be_is_refused_and_becomes_nothing(
    api: Api, one: Worker, store: Store, name: str
) -> None:
    job = searched(store, 2)
    lease = one.lease()
    answer = one.post(
        f"/v1/leases/{lease['lease']}:settle", results=[made(lease["items"][0], **IMPOSSIBLE[name])]
    )
    assert (answer.status_code, answer.json()["code"]) == (422, "invalid-request")
    assert store.best(job.workload, job.target, HARDWARE) is None


@pytest.mark.parametrize("number", ["NaN", "Infinity", "-Infinity", "1e400"])
def test_a_number_that_json_has_not_is_refused(api: Api, one: Worker, store: Store, number: str) -> None:
    searched(store, 2)
    lease = one.lease()
    text = json.dumps(
        {
            "protocol": PROTOCOL,
            "worker": one.id,
            "session": one.session,
            "results": [made(lease["items"][0], seconds=123.0, samples=[123.0])],
        }
    ).replace("123.0", number)
    answer = one.http.post(
        f"/v1/leases/{lease['lease']}:settle",
        content=text,
        headers={**one.headers, "Content-Type": "application/json"},
    )
    assert (answer.status_code, answer.json()["code"]) == (400, "malformed-json")


CALLS: dict[str, Callable[[Json], Json]] = {
    "start": lambda item: {"item": item["item"], "attempt": item["attempt"]},
    "renew": lambda item: {},
    "settle": lambda item: {"results": [made(item)]},
    "release": lambda item: {},
}


@pytest.mark.parametrize("verb", CALLS)
def test_the_lease_of_another_worker_is_not_there(
    api: Api, one: Worker, two: Worker, store: Store, verb: str
) -> None:
    """Even for who knows its id, and whatever it says it is."""
    job = searched(store, 2)
    lease = one.lease()
    said = CALLS[verb](lease["items"][0])
    path = f"/v1/leases/{lease['lease']}:{verb}"
    answers = [two.post(path, **said), two.post(path, worker=one.id, **said)]
    assert [(answer.status_code, answer.json()["code"]) for answer in answers] == [(404, "not-found")] * 2
    assert [trial.outcome for trial in store.trials(job.id)] == ["pending"] * 2
    assert one.post(path, **said).status_code in (200, 204)


def test_a_trial_of_another_lease_cannot_be_settled(api: Api, one: Worker, two: Worker, store: Store) -> None:
    searched(store, 8)
    mine, others = one.lease(), two.lease()
    answer = one.post(f"/v1/leases/{mine['lease']}:settle", results=[made(others["items"][0])])
    assert (answer.status_code, answer.json()["code"]) == (409, "lease-lost")


@pytest.mark.parametrize("change", [{"attempt": 99}, {"item": "trial_of_nobody"}, {"item": "x' OR 1=1 --"}])
def test_an_attempt_that_was_not_granted_cannot_be_settled(
    api: Api, one: Worker, store: Store, change: Json
) -> None:
    searched(store, 2)
    lease = one.lease()
    answer = one.post(f"/v1/leases/{lease['lease']}:settle", results=[made(lease["items"][0], **change)])
    assert (answer.status_code, answer.json()["code"]) == (409, "lease-lost")


def test_a_settlement_that_is_sent_again_counts_once_and_another_one_not_at_all(
    api: Api, one: Worker, store: Store
) -> None:
    job = searched(store, 1)
    lease = one.lease()
    path = f"/v1/leases/{lease['lease']}:settle"
    first = made(lease["items"][0])
    better = made(lease["items"][0], seconds=0.25, samples=[0.25])
    answers = [one.post(path, results=[result]) for result in (first, first, better)]
    assert [answer.status_code for answer in answers] == [200, 200, 422]
    assert [trial.seconds for trial in store.trials(job.id)] == [0.5]


def test_a_guessed_lease_is_not_there(api: Api, one: Worker) -> None:
    for guess in ("lease_1", "0" * 32, "../leases", "%27%20OR%201=1"):
        assert one.post(f"/v1/leases/{guess}:renew").status_code == 404


def test_a_name_that_is_attached_from_another_pool_is_not_taken_over(api: Api) -> None:
    mine = Worker(api, "board", "1" * 32, pool="lab-a")
    other = Worker(api, "board", "2" * 32, pool="lab-b")
    assert mine.attached.status_code == 201
    assert (other.attached.status_code, other.attached.json()["code"]) == (409, "conflict")


def test_nobody_ends_the_session_of_another(api: Api, one: Worker, two: Worker) -> None:
    answer = two.post(f"/v1/workers/{one.id}:leave", worker=one.id)
    assert (answer.status_code, answer.json()["code"]) == (409, "superseded")


def test_the_session_of_a_worker_is_told_to_nobody(api: Api, one: Worker) -> None:
    texts = [
        api.http.get(path, headers=api.token("admin")).text
        for path in ("/v1/workers", f"/v1/workers/{one.id}")
    ]
    assert not any(one.session in text for text in texts)


def test_a_worker_cannot_make_jobs_or_tokens(api: Api, one: Worker) -> None:
    job = {"workload": MATMUL, "budget": {"trials": 4}, "hardware": HARDWARE}
    token = {"name": "n", "scopes": ["admin"]}
    calls: list[tuple[str, str, Json]] = [
        ("POST", "/v1/jobs", job),
        ("POST", "/v1/tokens", token),
        ("GET", "/v1/tokens", None),
    ]
    answers = [api.http.request(verb, path, json=body, headers=one.headers) for verb, path, body in calls]
    assert [answer.status_code for answer in answers] == [403] * 3


def test_a_worker_asks_for_no_more_than_the_protocol_allows(api: Api, one: Worker) -> None:
    for most in (65, -1, 0, 2**63, True):
        assert one.post("/v1/leases", max_items=most, wait_seconds=0).status_code == 422
    for wait in (-1, 86_401, "1", None):
        assert one.post("/v1/leases", max_items=1, wait_seconds=wait).status_code == 422
    assert one.post("/v1/leases/x:settle", results=[{}] * 65).status_code == 422
