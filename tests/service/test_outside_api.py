"""Jobs whose trials are measured outside of the fleet, and what may be suggested to a job, over HTTP."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest
from service_harness import FACTS, HARDWARE, MATMUL, Api, attach, stored_job, trials
from shepherding import Children, supervised, until

from tilewright.db import Store
from tilewright.db.records import Job, Settlement
from tilewright.service.client import ApiError, Client
from tilewright.service.search_ends import last_end

OUTSIDE = {"workload": MATMUL, "measure": "outside", "hardware": HARDWARE, "budget": {"trials": 8}}


@pytest.fixture
def client(api: Api) -> Iterator[Client]:
    with Client(api.url) as opened:
        yield opened


@pytest.fixture
def job(api: Api) -> str:
    """A running job that is measured outside, with four trials to be measured."""
    made = api.http.post("/v1/jobs", json=OUTSIDE).json()["id"]
    epoch = api.store.begin_search(made)
    api.store.add_trials(made, epoch, trials(4))
    return str(made)


def tell(api: Api, job: str, **body: Any) -> Any:
    return api.http.post(f"/v1/jobs/{job}/trials:tell", json=body)


def ask(api: Api, job: str, **body: Any) -> list[int]:
    answer = api.http.post(f"/v1/jobs/{job}/trials:ask", json=body)
    assert answer.status_code == 200, answer.text
    return [trial["number"] for trial in answer.json()["trials"]]


def test_a_job_that_is_measured_outside_waits_for_no_worker(api: Api) -> None:
    made = api.http.post("/v1/jobs", json=OUTSIDE)
    assert (made.status_code, made.json()["state"], made.json()["reason"]) == (202, "queued", "")
    assert api.store.job(made.json()["id"]).origin == "outside"


def test_trials_are_asked_for_and_told_over_http(api: Api, job: str) -> None:
    assert ask(api, job, count=2, holder="ann") == [0, 1]
    assert ask(api, job, count=2, holder="ann") == [0, 1]
    assert ask(api, job, holder="bob") == [2]
    woken = api.dispatcher.woken
    answer = tell(api, job, number=0, seconds=0.25)
    assert (answer.status_code, answer.json()["outcome"], answer.json()["seconds"]) == (200, "ok", 0.25)
    assert api.dispatcher.woken == woken + 1
    shown = api.http.get(f"/v1/jobs/{job}").json()
    assert (shown["progress"]["done"], shown["best"]["seconds"]) == (1, 0.25)


def test_an_answer_without_trials_says_how_the_job_stands(api: Api) -> None:
    made = api.http.post("/v1/jobs", json=OUTSIDE).json()["id"]
    answer = api.http.post(f"/v1/jobs/{made}/trials:ask", json={}).json()
    assert answer == {"trials": [], "state": "queued", "reason": ""}


def test_the_same_result_may_be_told_twice(api: Api, job: str) -> None:
    first = tell(api, job, number=1, failure={"kind": "run_error", "message": "it fell"})
    again = tell(api, job, number=1, failure={"kind": "run_error", "message": "it fell"})
    assert (first.status_code, first.json()) == (again.status_code, again.json())
    assert first.json()["outcome"] == "run_error"


def test_another_result_of_the_same_trial_is_refused(api: Api, job: str) -> None:
    tell(api, job, number=1, seconds=0.5)
    refused = tell(api, job, number=1, seconds=0.6)
    assert (refused.status_code, refused.json()["code"]) == (422, "settlement-mismatch")


def test_a_time_that_the_hardware_cannot_reach_is_a_failure_once_a_worker_has_told_what_it_is(
    api: Api, job: str
) -> None:
    assert tell(api, job, number=0, seconds=1e-9, error=0.0, codegen="7").json()["outcome"] == "ok"
    attach(api.store)
    first = tell(api, job, number=1, seconds=1e-15, error=0.0, codegen="7")
    again = tell(api, job, number=1, seconds=1e-15, error=0.0, codegen="7")
    assert (first.status_code, first.json()) == (again.status_code, again.json())
    assert (first.status_code, first.json()["outcome"], first.json()["message"]) == (
        200,
        "run_error",
        "what is told is 1e-15 s, but this device cannot do the work in less than 5.24e-07 s: "
        "its clock or its kernel is wrong",
    )
    assert tell(api, job, number=2, seconds=1e-5).json()["outcome"] == "ok"


def test_an_unknown_trial_is_not_found(api: Api, job: str) -> None:
    refused = tell(api, job, number=77, seconds=0.5)
    assert (refused.status_code, refused.json()["code"]) == (404, "not-found")
    assert f"there is no trial '{job}.77'" in refused.json()["detail"]


def test_a_job_that_is_over_takes_no_result(api: Api, job: str) -> None:
    api.http.post(f"/v1/jobs/{job}:cancel")
    refused = tell(api, job, number=0, seconds=0.5)
    assert (refused.status_code, refused.json()["code"]) == (409, "job-over")
    assert refused.json()["detail"] == f"job {job} is cancelled and takes no more results"
    refused = api.http.post(f"/v1/jobs/{job}/trials:ask", json={})
    assert (refused.status_code, refused.json()["code"]) == (409, "job-over")


@pytest.mark.parametrize(
    ("body", "pointer"),
    [
        ({"number": 0, "seconds": -1.0}, "/seconds"),
        ({"number": 0, "seconds": 0.0}, "/seconds"),
        ({"number": 0, "seconds": 1e-320}, "/seconds"),
        ({"number": 0, "seconds": "fast"}, "/seconds"),
        ({"number": -1, "seconds": 0.5}, "/number"),
        ({"number": 0, "seconds": 0.5, "samples": [0.5, -0.1]}, "/samples/1"),
        ({"number": 0, "seconds": 0.5, "error": 2.0}, "/error"),
        ({"number": 0, "failure": {"kind": "bored"}}, "/failure/kind"),
        ({"number": 0}, ""),
        ({"number": 0, "seconds": 0.5, "failure": {"kind": "run_error"}}, ""),
    ],
)
def test_what_is_no_result_is_refused_with_its_place(api: Api, job: str, body: Any, pointer: str) -> None:
    refused = tell(api, job, **body)
    assert (refused.status_code, refused.json()["code"]) == (422, "invalid-request")
    assert [fault["pointer"] for fault in refused.json()["errors"]] == [pointer]


@pytest.mark.parametrize("number", ["NaN", "Infinity", "-Infinity"])
def test_a_time_that_is_no_number_is_no_json(api: Api, job: str, number: str) -> None:
    refused = api.http.post(
        f"/v1/jobs/{job}/trials:tell",
        content=f'{{"number": 0, "seconds": {number}}}',
        headers={"content-type": "application/json"},
    )
    assert (refused.status_code, refused.json()["code"]) == (400, "malformed-json")


def test_a_job_of_workers_hands_nothing_out(api: Api) -> None:
    attach(api.store)
    made = api.http.post("/v1/jobs", json={"workload": MATMUL}).json()["id"]
    refused = api.http.post(f"/v1/jobs/{made}/trials:ask", json={})
    assert (refused.status_code, refused.json()["code"]) == (409, "conflict")


def test_a_job_that_is_measured_outside_names_its_hardware_and_has_no_time(api: Api) -> None:
    body = {key: value for key, value in OUTSIDE.items() if key != "hardware"}
    assert api.http.post("/v1/jobs", json=body).json()["errors"][0]["pointer"] == "/hardware"
    body = {**OUTSIDE, "budget": {"trials": 8, "seconds": 60.0}}
    assert api.http.post("/v1/jobs", json=body).json()["errors"][0]["pointer"] == "/budget/seconds"


def test_a_client_asks_and_tells(api: Api, client: Client, job: str) -> None:
    (first,) = client.ask(job, holder="ann")
    assert client.tell(job, first.number, seconds=0.5, samples=[0.5, 0.6]).samples == [0.5, 0.6]
    (second,) = client.ask(job, holder="ann")
    failed = client.tell(job, second.number, failure="run_error", message="it fell")
    assert (second.number, failed.outcome, failed.message) == (1, "run_error", "it fell")
    with pytest.raises(ApiError, match="already settled with another result"):
        client.tell(job, first.number, seconds=0.7)


def test_history_and_suggestions_of_a_request_become_the_jobs(api: Api, client: Client) -> None:
    attach(api.store)
    trace = {"version": 1, "steps": []}
    knobs = {"sketch": "tiled", "knobs": {"k0": 4}}
    job = client.submit(MATMUL, history="ignore", suggestions=[trace, knobs])
    stored = api.store.job(job.id)
    assert (job.history, stored.history) == ("ignore", "ignore")
    assert '"suggestions":[{"version":1,"steps":[]},{"sketch":"tiled","knobs":{"k0":4}}]' in stored.spec


@pytest.mark.parametrize(
    ("suggestion", "pointer"),
    [
        ({"version": 1, "steps": [1]}, "/suggestions/0/steps/0"),
        ({}, "/suggestions/0"),
        ({"sketch": 3, "knobs": {}}, "/suggestions/0/sketch"),
        ({"knobs": {"k0": "4"}}, "/suggestions/0/knobs"),
    ],
)
def test_a_wrong_suggestion_is_refused_with_its_place(api: Api, suggestion: Any, pointer: str) -> None:
    attach(api.store)
    refused = api.http.post("/v1/jobs", json={"workload": MATMUL, "suggestions": [suggestion]})
    assert (refused.status_code, refused.json()["code"]) == (422, "invalid-suggestion")
    assert refused.json()["errors"][0]["pointer"] == pointer


def outside_job(store: Store) -> Job:
    """One whose target is what a server reads for hardware that nobody has reported yet."""
    job = stored_job(store, origin="outside")
    store.put_hardware(HARDWARE, json.dumps(FACTS))
    return job


def test_a_search_that_waits_for_people_rests_until_more_is_told(store: Store) -> None:
    job, children = outside_job(store), Children("")
    with supervised(store, children):
        until(lambda: len(children.started) == 1)
        until(lambda: last_end(store, job.id) is not None)
        epoch = store.job(job.id).epoch
        store.add_trials(job.id, epoch, trials(2))
        assert store.job(job.id).state == "running"
        store.tell_outside(job.id, 0, Settlement(seconds=0.5, samples=(0.5,)))
        until(lambda: len(children.started) == 2)
    assert [name for name, _ in children.started] == [job.id] * 2
