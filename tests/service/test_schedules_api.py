from __future__ import annotations

from typing import Any

import pytest
from service_harness import HARDWARE, Api, attach, problem, searched, settle

HEX = "0" * 64


def _tuned(api: Api) -> dict[str, str]:
    """The key of a workload with a best-known schedule."""
    worker = attach(api.store)
    job = searched(api.store, 4)
    settle(api.store, [2e-5, 1e-5], worker)
    return {"workload": job.workload, "target": job.target, "hardware": HARDWARE}


def _best(api: Api, key: dict[str, str], **headers: str) -> Any:
    return api.http.get("/v1/schedules/best", params=key, headers=headers)


def test_the_best_schedule_says_how_it_was_found_and_how_complete_the_search_is(api: Api) -> None:
    key = _tuned(api)
    found = _best(api, key).json()
    job = api.store.jobs().items[0]
    trial = api.store.trials(job.id)[1]
    assert found.pop("measured_at") == pytest.approx(api.store.now(), abs=10)
    assert found.pop("reason")
    assert found == {
        "kind": "exact",
        **key,
        "trace": {"steps": [1]},
        "seconds": 1e-5,
        "samples": [1e-5, 1e-5],
        "error": 0.5,
        "job": job.id,
        "trial": trial.id,
        "worker": trial.worker,
        "codegen": "7",
        "search": {"done": 2, "asked": 8, "state": "running"},
    }


def test_a_cancelled_search_shows_at_its_best_schedule(api: Api) -> None:
    key = _tuned(api)
    api.store.cancel_job(api.store.jobs().items[0].id)
    assert _best(api, key).json()["search"] == {"done": 2, "asked": 8, "state": "cancelled"}


def test_an_unchanged_schedule_is_304_without_a_body(api: Api) -> None:
    key = _tuned(api)
    etag = _best(api, key).headers["etag"]
    again = _best(api, key, **{"If-None-Match": f'"other", {etag}'})
    assert (again.status_code, again.content, again.headers["etag"]) == (304, b"", etag)


def test_the_etag_is_strong(api: Api) -> None:
    etag = _best(api, _tuned(api)).headers["etag"]
    assert etag.startswith('"')


def test_a_better_schedule_is_sent_to_who_has_the_older(api: Api) -> None:
    key = _tuned(api)
    etag = _best(api, key).headers["etag"]
    settle(api.store, [5e-6], attach(api.store))
    again = _best(api, key, **{"If-None-Match": etag})
    assert (again.status_code, again.json()["seconds"]) == (200, 5e-6)


def test_where_no_schedule_is_known_the_answer_is_404_and_says_what_finds_one(api: Api) -> None:
    assert _best(api, {"workload": HEX, "target": HEX, "hardware": HEX}).json() == problem(
        404,
        "no-schedule",
        "No schedule is known",
        f"no schedule is known for workload {HEX}, target {HEX}, hardware {HEX}; "
        "a job (POST /v1/jobs) finds one",
    )


def test_a_key_that_is_no_key_is_refused(api: Api) -> None:
    answer = _best(api, {"workload": "matmul", "target": HEX, "hardware": HEX})
    detail = "query parameter String should match pattern '^[0-9a-f]{64}$', got \"matmul\""
    assert answer.json()["errors"] == [{"parameter": "workload", "detail": detail}]
