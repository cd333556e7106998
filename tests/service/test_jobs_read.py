"""Jobs and trials as they are read: progress, the best, waiting, pages."""

from __future__ import annotations

import threading
import time
from dataclasses import replace
from typing import Any

import pytest
from service_harness import (
    INVALID,
    MATMUL_FLOPS,
    Api,
    attach,
    problem,
    searched,
    settle,
    stored_job,
)

from tilewright.service.job_presenter import eta


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
