"""Jobs that are refused, each at the place that is wrong."""

from __future__ import annotations

import pytest
from service_harness import (
    INVALID,
    MATMUL,
    Api,
    problem,
)


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
