from __future__ import annotations

import json
from typing import Any

import pytest
from service_harness import HARDWARE, HEX, OTHER_FACTS, OTHER_HARDWARE, Api, attach, problem, searched, settle
from sqlalchemy import text


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
        "dispersion": 0.0,
        "versions": json.loads(api.store.workers()[0].versions),
        "baseline": None,
        "speedup": None,
        "confirmed": False,
        "confirmation": None,
        "challenger": None,
        "pin": None,
        "imported": False,
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


def _elsewhere(api: Api, key: dict[str, str]) -> dict[str, str]:
    """The same key on hardware for which nothing is known."""
    api.store.put_hardware(OTHER_HARDWARE, json.dumps(OTHER_FACTS))
    return key | {"hardware": OTHER_HARDWARE}


def test_a_list_says_that_the_default_schedule_is_pinned(api: Api) -> None:
    key = _tuned(api)
    (before,) = api.http.get("/v1/schedules").json()["schedules"]
    pin = api.store.pin(**key, trial=None, note="it drifts", by="ann")
    (after,) = api.http.get("/v1/schedules").json()["schedules"]
    assert before["pin"] is None
    assert after == before | {"pin": key | {"trial": None, "note": "it drifts", "by": "ann", "at": pin.at}}


def test_only_what_is_exact_is_answered_unless_more_is_allowed(api: Api) -> None:
    key = _elsewhere(api, _tuned(api))
    assert _best(api, key).status_code == 404
    found = _best(api, key | {"allow": "same_family,transferred"}).json()
    assert (found["kind"], found["reason"], found["hardware"]) == (
        "same_family",
        "a relative",
        OTHER_HARDWARE,
    )
    refused = _best(api, key | {"allow": "transferred"}).json()
    assert refused["detail"].endswith("; nothing is near; a job (POST /v1/jobs) finds one")


def test_the_default_schedule_is_answered_where_that_is_allowed(api: Api) -> None:
    key = _elsewhere(api, _tuned(api))
    found = _best(api, key | {"allow": "default"}).json()
    assert (found["kind"], found["trace"], found["seconds"]) == ("default", {"steps": []}, None)
    assert found["reason"].startswith("no schedule is known for workload ")


def test_what_may_be_allowed_is_named(api: Api) -> None:
    answer = _best(api, _tuned(api) | {"allow": "anything"})
    assert answer.json()["errors"] == [
        {"parameter": "allow", "detail": "'anything' is none of same_family, transferred, default"}
    ]


def test_the_tag_is_of_all_that_is_answered(api: Api) -> None:
    key = _tuned(api)
    etag = _best(api, key).headers["etag"]
    trial = _best(api, key).json()["trial"]
    assert _put(api, "pins", key | {"trial": trial}).status_code == 200
    assert _best(api, key, **{"If-None-Match": etag}).status_code == 200
    assert _best(api, key).json()["pin"]["by"] == "anonymous"


def _put(api: Api, path: str, body: Any, **headers: str) -> Any:
    return api.http.put(f"/v1/schedules/{path}", json=body, headers=headers)


def _post(api: Api, path: str, body: Any, **headers: str) -> Any:
    return api.http.post(f"/v1/schedules{path}", json=body, headers=headers)


def test_a_pin_forces_a_row_and_off_means_the_default(api: Api) -> None:
    key = _tuned(api)
    slow, fast = (trial.id for trial in api.store.trials(api.store.jobs().items[0].id)[:2])
    assert _best(api, key).json()["trial"] == fast
    _put(api, "pins", key | {"trial": slow, "note": "numbers drift"})
    found = _best(api, key).json()
    assert (found["trial"], found["reason"]) == (slow, f"trial {slow} is pinned by anonymous: numbers drift")
    _put(api, "pins", key | {"trial": None})
    assert _best(api, key | {"allow": "default"}).json()["reason"] == (
        "the default schedule is pinned by anonymous"
    )
    assert _best(api, key).json()["kind"] == "default"
    assert [pin["trial"] for pin in api.http.get("/v1/schedules/pins").json()["pins"]] == [None]
    assert api.http.delete("/v1/schedules/pins", params=key).status_code == 204
    assert api.http.delete("/v1/schedules/pins", params=key).status_code == 404
    assert _best(api, key).json()["trial"] == fast


def test_an_explanation_has_the_rows_their_times_workers_and_dates(api: Api) -> None:
    key = _tuned(api)
    said = api.http.get("/v1/schedules/explain", params=key).json()
    trials = api.store.trials(api.store.jobs().items[0].id)[:2]
    rows = [(row["trial"], row["seconds"], row["worker"], row["measured_at"]) for row in said["rows"]]
    assert rows == [(t.id, t.seconds, t.worker, t.settled_at) for t in reversed(trials)]
    assert said["served"] == said["standing"] == _best(api, key).json()
    assert (said["duels"], said["retired"]) == ([], [])


def test_a_freeze_is_not_changed_by_later_results_and_says_which_keys_have_changed(api: Api) -> None:
    key = _tuned(api)
    before = _best(api, key).json()["trial"]
    assert _post(api, "/freezes", {"name": "release-1"}).json()["count"] == 1
    assert _post(api, "/freezes", {"name": "release-1"}).status_code == 409
    changes = "/v1/schedules/freezes/release-1/changes"
    assert api.http.get(changes).json() == {"changed": []}
    settle(api.store, [5e-6], attach(api.store))
    now = _best(api, key).json()["trial"]
    assert _best(api, key | {"freeze": "release-1"}).json()["trial"] == before != now
    assert api.http.get(changes).json()["changed"] == [{**key, "frozen": before, "now": now}]
    assert [one["name"] for one in api.http.get("/v1/schedules/freezes").json()["freezes"]] == ["release-1"]
    assert api.http.delete("/v1/schedules/freezes/release-1").status_code == 204
    assert _best(api, key | {"freeze": "release-1"}).json()["detail"] == "there is no freeze 'release-1'"


def test_a_report_retires_only_what_does_not_replay_at_the_server_either(api: Api) -> None:
    key = _tuned(api)
    good = _best(api, key).json()["trial"]
    said = _post(api, f"/{good}:report", {"reason": "does not apply"}).json()
    assert said == {"outcome": "kept", "reason": "it replays with the server's compiler"}
    assert _best(api, key).json()["trial"] == good
    with api.store._database.write() as conn:  # type: ignore[attr-defined]
        conn.execute(text("UPDATE trials SET trace = :trace").bindparams(trace='{"steps": [9]}'))
    said = _post(api, f"/{good}:report", {"reason": "does not apply"}).json()
    assert said == {"outcome": "retired", "reason": "unknown step 9"}
    assert _best(api, key).json()["trial"] != good
    retired = api.http.get("/v1/schedules/explain", params=key).json()["retired"]
    assert [(one["trial"], one["reason"]) for one in retired] == [
        (good, "unknown step 9; reported: does not apply")
    ]


def test_a_retired_row_gives_way_to_the_next(api: Api) -> None:
    _tuned(api)
    slow, fast = (trial.id for trial in api.store.trials(api.store.jobs().items[0].id)[:2])
    said = _post(api, f"/{fast}:retire", {"reason": "wrong on Mondays"}).json()
    assert said == {"outcome": "retired", "reason": f"trial {slow} is best-known now"}


def test_all_best_known_schedules_come_in_pages(api: Api) -> None:
    key = _tuned(api)
    page = api.http.get("/v1/schedules", params={"page_size": 1}).json()
    assert [one["workload"] for one in page["schedules"]] == [key["workload"]]
    assert page["next_page_token"] is None


def test_what_was_exported_is_imported_once(api: Api) -> None:
    _tuned(api)
    answer = api.http.get("/v1/schedules/export")
    assert answer.headers["content-type"] == "application/x-ndjson"
    lines = answer.text.splitlines()
    for became in ("slower", "known"):
        said = _post(api, ":import", {"lines": lines}).json()
        nothing = {"best": 0, "challenger": 0, "slower": 0, "known": 0, "refused": []}
        assert said == nothing | {became: 1}


@pytest.mark.parametrize(
    ("method", "path", "body"),
    [
        ("PUT", "/pins", {"workload": HEX, "target": HEX, "hardware": HEX, "trial": None}),
        ("DELETE", f"/pins?workload={HEX}&target={HEX}&hardware={HEX}", None),
        ("POST", "/freezes", {"name": "x"}),
        ("DELETE", "/freezes/x", None),
        ("POST", "/t.0:retire", {"reason": "x"}),
        ("POST", ":import", {"lines": ["{}"]}),
    ],
)
def test_what_people_fix_needs_a_token_that_may_write_schedules(
    api: Api, method: str, path: str, body: Any
) -> None:
    for scope, refused in (("schedules:read", True), ("jobs:write", True), ("schedules:write", False)):
        answer = api.http.request(method, f"/v1/schedules{path}", json=body, headers=api.token(scope))
        assert (answer.status_code == 403) is refused
