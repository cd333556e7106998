"""What workers report of their golden kernels, over HTTP."""

from __future__ import annotations

from typing import Any

import pytest
from service_harness import FACTS, HARDWARE, Api, problem, searched

from tilewright.measure.health_messages import GoldenPart, HealthPlan, HealthReport
from tilewright.measure.messages import Registration, WorkerHello
from tilewright.service.client import Client
from tilewright.service.worker_client import WorkerClient

SESSION = "5" * 32
HELLO = WorkerHello(2, "w1", SESSION, HARDWARE, FACTS, {"codegen": "7"})
WELL = HealthReport("attach", "healthy", "steady", (GoldenPart("compute", 1e-4, 0.01, 1e-4, 0.03),))
DRIFTED = HealthReport("periodic", "drifted", "steady", (GoldenPart("compute", 1.2e-4, 0.01, 1e-4, 0.03),))
WORDS = (
    "golden kernel: compute takes 120 µs, 20.0% more than the 100 µs at attach, twice in a row; the limit "
    "is 3.0%"
)


@pytest.fixture
def source(api: Api) -> Any:
    with Client(api.url, api.store.create_token("t", ["worker"])[1]) as client:
        yield WorkerClient(client.transport)


def test_a_worker_is_told_how_to_check_itself(api: Api, source: WorkerClient) -> None:
    registration = source.register(HELLO)
    assert registration == Registration(
        api.store.workers()[0].id, 30.0, 10.0, 20.0, HealthPlan(64, 5, 0.03, 60.0)
    )


def test_a_worker_of_the_protocol_before_is_told_nothing_that_it_does_not_know(api: Api) -> None:
    hello = {**HELLO.to_json(), "protocol": 1}
    del hello["health"]
    answer = api.http.post("/v1/workers", json=hello, headers=api.token("worker"))
    assert (answer.status_code, sorted(answer.json())) == (
        201,
        ["renew_seconds", "ttl_seconds", "wait_seconds", "worker"],
    )


def test_a_healthy_worker_stays_online(api: Api, source: WorkerClient) -> None:
    source.register(HELLO)
    assert (source.health(WELL).state, api.store.workers()[0].state) == ("online", "online")


def test_a_drifted_worker_is_quarantined_with_the_numbers_and_gets_no_more_leases(
    api: Api, source: WorkerClient
) -> None:
    source.register(HELLO)
    searched(api.store, 4)
    source.health(WELL)
    update = source.health(DRIFTED)
    assert (update.state, update.reason.split("; results since")[0]) == ("quarantined", WORDS)
    assert source.lease(4, 0.0) is None
    shown = api.http.get("/v1/workers", headers=api.token("worker")).json()["workers"][0]
    assert (shown["state"], shown["reason"]) == ("quarantined", update.reason)


def test_what_it_showed_can_be_read_newest_first(api: Api, source: WorkerClient) -> None:
    worker = source.register(HELLO).worker
    source.health(WELL)
    source.health(DRIFTED)
    checks = api.http.get(f"/v1/workers/{worker}/health", headers=api.token("worker")).json()["checks"]
    assert [(c["occasion"], c["verdict"], c["reason"]) for c in checks] == [
        ("periodic", "drifted", WORDS),
        ("attach", "healthy", ""),
    ]
    assert checks[0]["parts"] == [DRIFTED.parts[0].to_json()]


def test_the_last_report_in_a_hello_is_taken_by_a_server_that_knows_none(
    api: Api, source: WorkerClient
) -> None:
    source.register(WorkerHello(2, "w1", SESSION, HARDWARE, FACTS, {"codegen": "7"}, health=DRIFTED))
    assert api.store.workers()[0].state == "quarantined"


def test_the_last_report_in_a_hello_does_not_undo_a_release(api: Api, source: WorkerClient) -> None:
    worker = source.register(HELLO).worker
    source.health(DRIFTED)
    api.store.release_worker(worker, "a test")
    source.register(WorkerHello(2, "w1", SESSION, HARDWARE, FACTS, {"codegen": "7"}, health=DRIFTED))
    assert api.store.workers()[0].state == "online"


@pytest.mark.parametrize(
    ("report", "pointer", "detail"),
    [
        ("sick", "/report", "expected an object, got a string"),
        ({}, "/report/occasion", "missing"),
        (
            {**WELL.to_json(), "verdict": "fine"},
            "/report/verdict",
            "expected one of healthy, suspect, failed, drifted, dispersed, got 'fine'",
        ),
        (
            {**WELL.to_json(), "parts": [{**WELL.parts[0].to_json(), "seconds": -1}]},
            "/report/parts/0/seconds",
            "must be above 0, got -1.0",
        ),
        (
            {**WELL.to_json(), "parts": [WELL.parts[0].to_json()] * 3},
            "/report/parts",
            "must have at most 2 entries, got 3",
        ),
    ],
)
def test_a_report_that_makes_no_sense_is_422_with_its_place(
    api: Api, source: WorkerClient, report: Any, pointer: str, detail: str
) -> None:
    worker = source.register(HELLO).worker
    body = {"protocol": 2, "worker": worker, "session": SESSION, "report": report}
    answer = api.http.post(f"/v1/workers/{worker}:health", json=body, headers=api.token("worker"))
    assert (answer.status_code, answer.json()["errors"]) == (422, [{"pointer": pointer, "detail": detail}])
    assert api.store.health_checks(worker) == []


def test_a_worker_cannot_report_for_another(api: Api, source: WorkerClient) -> None:
    worker = source.register(HELLO).worker
    body = {"protocol": 2, "worker": "worker_2", "session": SESSION, "report": DRIFTED.to_json()}
    answer = api.http.post(f"/v1/workers/{worker}:health", json=body, headers=api.token("worker"))
    detail = f"must be the worker of the path, {worker}"
    assert answer.json() == problem(
        422,
        "invalid-request",
        "The request does not say what this route needs",
        detail,
        {"pointer": "/worker", "detail": detail},
    )


def test_a_session_that_was_superseded_reports_no_more(api: Api, source: WorkerClient) -> None:
    worker = source.register(HELLO).worker
    body = {"protocol": 2, "worker": worker, "session": "6" * 32, "report": DRIFTED.to_json()}
    answer = api.http.post(f"/v1/workers/{worker}:health", json=body, headers=api.token("worker"))
    assert (answer.status_code, answer.json()["code"], api.store.workers()[0].state) == (
        409,
        "superseded",
        "registering",
    )


def test_only_a_workers_token_may_report(api: Api, source: WorkerClient) -> None:
    worker = source.register(HELLO).worker
    body = {"protocol": 2, "worker": worker, "session": SESSION, "report": WELL.to_json()}
    path = f"/v1/workers/{worker}:health"
    answers = [api.http.post(path, json=body, headers=headers) for headers in ({}, api.token("jobs:write"))]
    assert [answer.status_code for answer in answers] == [401, 403]


def test_what_a_failed_kernel_says_cannot_write_on_a_terminal(api: Api, source: WorkerClient) -> None:
    source.register(HELLO)
    message = "memory failed: wrong_output: \x1b[2J\r\n 3 elements"
    update = source.health(HealthReport("periodic", "failed", "steady", (), message))
    assert update.reason.startswith("golden kernel: memory failed: wrong_output:  [2J   3 elements; ")
