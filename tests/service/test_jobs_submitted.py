"""A job that is submitted: what it is answered with, and what it waits for."""

from __future__ import annotations

import json

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
)


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
