from __future__ import annotations

import json
import threading
import time
from dataclasses import replace
from typing import Any

import pytest
from service_harness import (
    FACTS,
    HARDWARE,
    HOST_FACTS,
    MATMUL,
    MATMUL_FLOPS,
    OTHER_FACTS,
    OTHER_HARDWARE,
    Api,
    FakeParser,
    attach,
    key_of,
    problem,
    searched,
    settle,
    stored_job,
)

from tilewright.service.job_presenter import eta

INVALID = ("invalid-request", "The request does not say what this route needs")


def test_a_submitted_job_is_answered_with_202_its_location_and_its_whole_state(api: Api) -> None:
    attach(api.store)
    answer = api.http.post("/v1/jobs", json={"workload": MATMUL, "budget": {"trials": 5, "seconds": 60}})
    job = answer.json()
    created_at = job.pop("created_at")
    assert (answer.status_code, answer.headers["location"]) == (202, f"/v1/jobs/{job['id']}")
    assert abs(created_at - api.store.now()) < 10
    assert job == {
        "id": job["id"],
        "state": "queued",
        "reason": "",
        "workload": {
            "key": key_of(MATMUL),
            "name": "matmul",
            "script": "def matmul(): ...",
            "flops": MATMUL_FLOPS,
        },
        "target": {
            "key": FakeParser().target("llvm", FACTS).key,
            "description": {"kind": "llvm", "mcpu": "skylake"},
        },
        "hardware": HARDWARE,
        "budget": {"trials": 5, "seconds": 60.0, "target_seconds": None, "patience": None},
        "seed": 0,
        "strategy": "guided",
        "batch": 8,
        "worker_wait": 600.0,
        "history": "use",
        "drift": [],
        "owner": None,
        "finished_at": None,
        "progress": {
            "done": 0,
            "asked": 5,
            "measured": 0,
            "known": 0,
            "failures": {},
            "best_seconds": None,
            "best_gflops": None,
            "elapsed_seconds": 0.0,
            "eta_seconds": None,
        },
        "best": None,
        "model": None,
        "time": None,
        "pool": None,
        "labels": {},
        "priority": 0,
        "stalled": None,
        "warnings": [],
    }


def test_a_job_shows_what_its_cost_model_is_worth_and_where_its_time_went(api: Api) -> None:
    job = api.http.post("/v1/jobs", json={"workload": MATMUL}).json()["id"]
    model = {
        "trials": 24,
        "rank_correlation": 0.5,
        "pairwise_accuracy": 0.75,
        "top_recall": None,
        "trusted": True,
        "distrusted_rounds": 0,
        "metrics": "scikit-learn 1.9.1",
    }
    seconds = {
        "generate": 0.1,
        "features": 0.2,
        "train": 0.3,
        "propose": 0.4,
        "load": 0.5,
        "build": 5.0,
        "run": 6.0,
    }
    for n in (8, 24):
        overall = {**model, "trials": n}
        api.store.add_event(job, "model", json.dumps({"batch": n, "trials": 8, "overall": overall}))
    assert api.http.get(f"/v1/jobs/{job}").json()["model"] == model
    api.store.add_event(job, "report", json.dumps({"seconds": {**seconds, "other": 7.0}, "model": model}))
    shown, listed = api.http.get(f"/v1/jobs/{job}").json(), api.http.get("/v1/jobs").json()["jobs"][0]
    assert (shown["model"], shown["time"]) == (model, {**seconds, "other": 7.0})
    assert listed == shown


def test_one_workload_may_be_submitted_under_two_names(api: Api) -> None:
    answers = [
        api.http.post("/v1/jobs", json={"workload": {**MATMUL, "name": name}}) for name in ("mine", "yours")
    ]
    keys = [answer.json()["workload"]["key"] for answer in answers]
    assert keys == [key_of(MATMUL)] * 2


def test_submitting_wakes_the_dispatcher(api: Api) -> None:
    api.http.post("/v1/jobs", json={"workload": MATMUL})
    assert api.dispatcher.woken == 1


def test_without_a_worker_a_job_waits_and_says_so(api: Api) -> None:
    job = api.http.post("/v1/jobs", json={"workload": MATMUL}).json()
    assert (job["state"], job["reason"], job["hardware"]) == ("waiting", "no worker attached", None)


def test_a_job_for_hardware_that_is_not_attached_waits_naming_what_is(api: Api) -> None:
    attach(api.store)
    job = api.http.post("/v1/jobs", json={"workload": MATMUL, "hardware": OTHER_HARDWARE}).json()
    assert (job["state"], job["reason"]) == (
        "waiting",
        f"no worker for hardware {OTHER_HARDWARE}; attached are {HARDWARE} (w1)",
    )


def test_a_job_whose_only_worker_is_paused_waits_naming_it(api: Api) -> None:
    worker = attach(api.store)
    api.store.set_worker_state(worker.id, "paused", "for a while")
    job = api.http.post("/v1/jobs", json={"workload": MATMUL, "hardware": HARDWARE}).json()
    assert job["reason"] == f"no worker for hardware {HARDWARE} (w1 is paused: for a while)"


def test_with_workers_of_several_kinds_a_job_must_name_one_of_those_listed(api: Api) -> None:
    attach(api.store)
    attach(api.store, "w2", OTHER_FACTS)
    answer = api.http.post("/v1/jobs", json={"workload": MATMUL})
    first, second = sorted([(HARDWARE, "w1"), (OTHER_HARDWARE, "w2")])
    detail = (
        "workers of 2 kinds are attached; name one as hardware: "
        f"{first[0]} ({first[1]}), {second[0]} ({second[1]})"
    )
    assert answer.json() == problem(
        422,
        "ambiguous-hardware",
        "Workers of several kinds of hardware are attached",
        detail,
        {"pointer": "/hardware", "detail": detail},
    )


def test_the_target_takes_its_host_from_the_hardware_that_measures(api: Api) -> None:
    attach(api.store)
    attach(api.store, "w2", OTHER_FACTS)
    job = api.http.post("/v1/jobs", json={"workload": MATMUL, "hardware": OTHER_HARDWARE}).json()
    assert job["target"]["description"]["mcpu"] == OTHER_FACTS["mcpu"]


def test_without_any_worker_the_target_takes_its_host_from_the_server(api: Api) -> None:
    job = api.http.post("/v1/jobs", json={"workload": MATMUL}).json()
    assert job["target"]["description"]["mcpu"] == HOST_FACTS["mcpu"]


def test_validate_only_says_what_the_job_would_be_and_creates_none(api: Api) -> None:
    answer = api.http.post("/v1/jobs", json={"workload": MATMUL, "validate_only": True})
    assert answer.status_code == 200
    assert answer.json() == {
        "valid": True,
        "workload": {
            "key": key_of(MATMUL),
            "name": "matmul",
            "script": "def matmul(): ...",
            "flops": MATMUL_FLOPS,
        },
        "target": {
            "key": FakeParser().target("llvm", None).key,
            "description": {"kind": "llvm", "mcpu": "host-of-the-server"},
        },
        "hardware": None,
        "budget": {"trials": 64, "seconds": None, "target_seconds": None, "patience": None},
    }
    assert api.http.get("/v1/jobs").json() == {"jobs": [], "next_page_token": None}


def test_an_unknown_operator_is_refused_at_its_pointer(api: Api) -> None:
    answer = api.http.post("/v1/jobs", json={"workload": {"op": "mathmul"}})
    detail = "unknown operator 'mathmul'; operators are matmul"
    assert answer.json() == problem(
        422,
        "invalid-workload",
        "The workload is neither a known operator nor a valid program",
        detail,
        {"pointer": "/workload/op", "detail": detail},
    )


def test_an_unknown_target_is_refused_at_its_pointer(api: Api) -> None:
    answer = api.http.post("/v1/jobs", json={"workload": MATMUL, "target": {"kind": "vax"}})
    detail = "unknown target kind 'vax'; known kinds: llvm"
    assert answer.json() == problem(
        422,
        "invalid-target",
        "The target is not one this server compiles for",
        detail,
        {"pointer": "/target/kind", "detail": detail},
    )


def test_a_negative_budget_is_refused_with_what_would_be_right(api: Api) -> None:
    answer = api.http.post("/v1/jobs", json={"workload": MATMUL, "budget": {"trials": -5}})
    detail = "should be greater than or equal to 1, got -5"
    assert answer.json() == problem(
        422, *INVALID, f"/budget/trials: {detail}", {"pointer": "/budget/trials", "detail": detail}
    )


def test_every_wrong_place_of_a_request_is_named(api: Api) -> None:
    answer = api.http.post(
        "/v1/jobs",
        json={"wokload": MATMUL, "target": 5, "budget": {"trials": "5", "second": 1}, "strategy": "lucky"},
    )
    assert answer.json()["errors"] == [
        {"pointer": "/workload", "detail": "is missing"},
        {
            "pointer": "/target",
            "detail": 'must be a name such as "llvm" or an object such as {"kind": "llvm"}, got 5',
        },
        {"pointer": "/budget/trials", "detail": 'should be a valid integer, got "5"'},
        {
            "pointer": "/budget/second",
            "detail": "unknown key; did you mean 'seconds'? known keys: trials, seconds, target_seconds, "
            "patience",
        },
        {
            "pointer": "/strategy",
            "detail": "should be 'annealing', 'evolutionary', 'grid', 'guided', 'local' or 'random', "
            'got "lucky"',
        },
        {
            "pointer": "/wokload",
            "detail": "unknown key; did you mean 'workload'? known keys: workload, target, budget, hardware, "
            "seed, strategy, worker_wait, history, suggestions, batch, measure, pool, labels, priority, "
            "validate_only",
        },
    ]


def test_a_job_may_end_at_a_target_or_when_its_patience_is_over(api: Api) -> None:
    budget = {"trials": 5, "seconds": None, "target_seconds": 0.5, "patience": 3}
    job = api.http.post("/v1/jobs", json={"workload": MATMUL, "budget": budget}).json()
    assert (job["budget"], api.http.get(f"/v1/jobs/{job['id']}").json()["budget"]) == (budget, budget)


@pytest.mark.parametrize(
    ("key", "value", "detail"),
    [
        ("target_seconds", 0, "should be greater than 0, got 0"),
        ("target_seconds", "fast", 'should be a valid number, got "fast"'),
        ("patience", 0, "should be greater than or equal to 1, got 0"),
        ("patience", 1.5, "should be a valid integer, got 1.5"),
    ],
)
def test_a_target_or_a_patience_that_cannot_be_is_refused_by_pointer(
    api: Api, key: str, value: object, detail: str
) -> None:
    answer = api.http.post("/v1/jobs", json={"workload": MATMUL, "budget": {key: value}})
    pointer = f"/budget/{key}"
    assert answer.json() == problem(
        422, *INVALID, f"{pointer}: {detail}", {"pointer": pointer, "detail": detail}
    )


def test_a_budget_beyond_the_servers_limit_is_refused(api: Api) -> None:
    answer = api.http.post("/v1/jobs", json={"workload": MATMUL, "budget": {"trials": 100_001}})
    detail = "should be less than or equal to 100000, got 100001"
    assert answer.json() == problem(422, *INVALID, detail, {"pointer": "/budget/trials", "detail": detail})


def test_a_job_shows_its_progress(api: Api) -> None:
    worker = attach(api.store)
    job = searched(api.store, 8)
    settle(api.store, [2e-5, 1e-5, "build_error", "wrong_output", "build_error"], worker)
    progress = api.http.get(f"/v1/jobs/{job.id}").json()["progress"]
    elapsed, eta = progress.pop("elapsed_seconds"), progress.pop("eta_seconds")
    assert 0.0 < eta < elapsed
    assert progress == {
        "done": 5,
        "asked": 8,
        "measured": 2,
        "known": 0,
        "failures": {"build_error": 2, "wrong_output": 1},
        "best_seconds": 1e-5,
        "best_gflops": MATMUL_FLOPS / 1e-5 / 1e9,
    }


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ({"done": 4, "trials": 16}, 30.0),
        ({"done": 4, "trials": 16, "seconds": 25.0}, 13.0),
        ({"done": 4, "trials": 16, "seconds": 5.0}, 0.0),
        ({"done": 0, "trials": 16}, None),
        ({"done": 4, "trials": 16, "finished_at": 1.0}, None),
    ],
)
def test_the_time_left_is_that_of_the_pace_so_far_within_the_limit(
    api: Api, changes: dict[str, Any], expected: float | None
) -> None:
    job = replace(stored_job(api.store), **changes)
    assert eta(job, measuring=10.0, elapsed=12.0) == expected


def test_a_job_shows_the_best_of_its_trials(api: Api) -> None:
    worker = attach(api.store)
    job = searched(api.store, 3)
    settle(api.store, [2e-5, 1e-5, "run_error"], worker)
    assert api.http.get(f"/v1/jobs/{job.id}").json()["best"] == {
        "trial": 1,
        "job": job.id,
        "seconds": 1e-5,
        "gflops": MATMUL_FLOPS / 1e-5 / 1e9,
        "trace": {"steps": [1]},
    }


def test_an_unknown_job_is_404(api: Api) -> None:
    answer = api.http.get("/v1/jobs/job_000000000000")
    assert answer.json() == problem(
        404, "not-found", "There is no such thing", "there is no job 'job_000000000000'"
    )


def test_cancelling_ends_a_job_and_can_be_repeated(api: Api) -> None:
    job = stored_job(api.store)
    states = [api.http.post(f"/v1/jobs/{job.id}:cancel").json()["state"] for _ in range(2)]
    assert states == ["cancelled", "cancelled"]


def test_waiting_for_a_job_answers_as_soon_as_it_has_ended(api: Api) -> None:
    job = stored_job(api.store)
    threading.Timer(0.3, api.store.cancel_job, [job.id]).start()
    begun = time.monotonic()
    state = api.http.get(f"/v1/jobs/{job.id}", params={"wait": "8s"}).json()["state"]
    assert (state, time.monotonic() - begun < 4) == ("cancelled", True)


def test_waiting_for_a_job_answers_in_the_end_as_it_is(api: Api) -> None:
    job = stored_job(api.store)
    begun = time.monotonic()
    state = api.http.get(f"/v1/jobs/{job.id}", params={"wait": "300ms"}).json()["state"]
    assert (state, 0.3 <= time.monotonic() - begun < 4) == ("queued", True)


def test_a_wait_that_is_no_duration_is_refused(api: Api) -> None:
    answer = api.http.get("/v1/jobs/job_1", params={"wait": "soon"})
    detail = "wait must be a duration such as 20s, 500ms or 10m, got 'soon'"
    assert answer.json() == problem(422, *INVALID, detail, {"parameter": "wait", "detail": detail})


def test_jobs_come_in_pages_that_stay_stable_while_jobs_are_created(api: Api) -> None:
    ids = [stored_job(api.store).id for _ in range(5)]
    seen: list[str] = []
    token = None
    while True:
        page = api.http.get(
            "/v1/jobs", params={"page_size": 2} | ({"page_token": token} if token else {})
        ).json()
        seen += [job["id"] for job in page["jobs"]]
        token = page["next_page_token"]
        if token is None:
            break
        stored_job(api.store)
    assert seen == ids[::-1]


def test_jobs_can_be_listed_by_state(api: Api) -> None:
    kept, cancelled = stored_job(api.store), stored_job(api.store)
    api.store.cancel_job(cancelled.id)
    page = api.http.get("/v1/jobs", params={"state": "queued"}).json()
    assert [job["id"] for job in page["jobs"]] == [kept.id]


def test_a_page_token_of_another_list_is_refused(api: Api) -> None:
    for _ in range(2):
        stored_job(api.store)
    token = api.http.get("/v1/jobs", params={"page_size": 1}).json()["next_page_token"]
    answer = api.http.get("/v1/jobs", params={"page_token": token, "state": "queued"})
    detail = (
        "page_token is not one of this list; take next_page_token of the page before, with the same filters"
    )
    assert answer.json() == problem(422, *INVALID, detail, {"parameter": "page_token", "detail": detail})


def test_trials_say_what_came_of_each_candidate(api: Api) -> None:
    worker = attach(api.store)
    job = searched(api.store, 3)
    settle(api.store, [1e-5, "build_error"], worker)
    answer = api.http.get(f"/v1/jobs/{job.id}/trials").json()
    plain = {"sketch": "tiled", "samples": [], "seconds": None, "error": None, "message": "", "detail": None}
    plain |= {"batch": 0, "predicted": None, "origin": "", "disturbed": False}
    plain |= {"disturbance": "", "baseline": [], "baseline_ratio": None}
    assert answer == {
        "trials": [
            {
                **plain,
                "number": 0,
                "outcome": "ok",
                "candidate": "candidate0",
                "trace": {"steps": [0]},
                "seconds": 1e-5,
                "samples": [1e-5, 1e-5],
                "error": 0.5,
                "worker": worker.id,
                "attempt": 1,
            },
            {
                **plain,
                "number": 1,
                "outcome": "build_error",
                "candidate": "candidate1",
                "trace": {"steps": [1]},
                "message": "it failed",
                "worker": worker.id,
                "attempt": 1,
            },
            {
                **plain,
                "number": 2,
                "outcome": "pending",
                "candidate": "candidate2",
                "trace": {"steps": [2]},
                "worker": None,
                "attempt": 0,
            },
        ],
        "next_page_token": None,
    }


def test_trials_come_in_pages(api: Api) -> None:
    job = searched(api.store, 5)
    first = api.http.get(f"/v1/jobs/{job.id}/trials", params={"page_size": 3}).json()
    second = api.http.get(
        f"/v1/jobs/{job.id}/trials", params={"page_size": 3, "page_token": first["next_page_token"]}
    ).json()
    numbers = [[trial["number"] for trial in page["trials"]] for page in (first, second)]
    assert (numbers, second["next_page_token"]) == ([[0, 1, 2], [3, 4]], None)


def test_operators_are_listed_with_their_schemas(api: Api) -> None:
    assert api.http.get("/v1/operators").json() == {
        "operators": [
            {
                "name": "matmul",
                "doc": "C = A @ B",
                "schema": {"description": "C = A @ B", "type": "object"},
            }
        ]
    }
