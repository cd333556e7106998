"""Requests that change something: idempotency keys, owners, quotas, rates, the audit log."""

from __future__ import annotations

import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any

import httpx
import pytest
from service_harness import ENVIRONMENT, MATMUL, TRACE_ID, Api, problem, searched, serving, stored_job

from tilewright.db import Store, open_store
from tilewright.db.records import TokenLimits
from tilewright.service.change_route import ChangeRoute
from tilewright.service.errors import RateLimited
from tilewright.service.rate_limits import Buckets
from tilewright.service.settings import Settings

JOB = {"workload": MATMUL}
KEY = {"Idempotency-Key": "a-key-of-mine"}


def _said(answer: httpx.Response) -> tuple[int, Any, str | None]:
    return answer.status_code, answer.json(), answer.headers.get("location")


def test_the_same_request_under_the_same_key_is_had_once_and_answered_twice(api: Api) -> None:
    first, again = (api.http.post("/v1/jobs", json=JOB, headers=KEY) for _ in range(2))
    assert _said(first) == _said(again)
    assert (first.status_code, first.headers.get("idempotency-replayed")) == (202, None)
    assert again.headers["idempotency-replayed"] == "true"
    assert len(api.store.jobs().items) == 1


def test_an_answer_is_replayed_as_it_was_whatever_happened_since(api: Api) -> None:
    job = searched(api.store, 1)
    path = f"/v1/jobs/{job.id}:cancel"
    first = api.http.post(path, headers=KEY)
    api.store.resume_job(job.id)
    again = api.http.post(path, headers=KEY)
    assert (again.json(), api.store.job(job.id).state) == (first.json(), "running")


def test_two_keys_are_two_requests(api: Api) -> None:
    for name in ("one", "two"):
        api.http.post("/v1/jobs", json=JOB, headers={"Idempotency-Key": name})
    assert len(api.store.jobs().items) == 2


@pytest.mark.parametrize(
    ("path", "body"),
    [("/v1/jobs", {**JOB, "seed": 1}), ("/v1/jobs/nothing:cancel", None)],
)
def test_a_key_that_was_used_for_another_request_is_422(api: Api, path: str, body: Any) -> None:
    api.http.post("/v1/jobs", json=JOB, headers=KEY)
    detail = "this Idempotency-Key was used for another request; take a new one for each"
    title = "The idempotency key was used for another request"
    assert api.http.post(path, json=body, headers=KEY).json() == problem(422, "key-reused", title, detail)


def test_the_same_body_written_otherwise_is_the_same_request(api: Api) -> None:
    first = api.http.post("/v1/jobs", json={"workload": MATMUL, "seed": 1}, headers=KEY)
    again = api.http.post("/v1/jobs", json={"seed": 1, "workload": MATMUL}, headers=KEY)
    assert first.json() == again.json()


def test_a_key_belongs_to_its_token(api: Api) -> None:
    for headers in (api.token("jobs:write"), api.token("jobs:write"), {}):
        api.http.post("/v1/jobs", json=JOB, headers={**KEY, **headers})
    assert len(api.store.jobs().items) == 3


@pytest.mark.parametrize("key", ["", "x" * 256, "with space", "t\u00f6ne".encode()])
def test_a_key_that_is_no_key_is_422(api: Api, key: Any) -> None:
    answer = api.http.post("/v1/jobs", json=JOB, headers={"Idempotency-Key": key})
    assert (answer.status_code, answer.json()["errors"][0]["parameter"]) == (422, "Idempotency-Key")


def test_a_refusal_is_not_kept_so_that_the_key_still_serves(api: Api) -> None:
    wrong = api.http.post("/v1/jobs", json={"workload": {"op": "matmull"}}, headers=KEY)
    right = api.http.post("/v1/jobs", json=JOB, headers=KEY)
    assert (wrong.status_code, right.status_code) == (422, 202)


def test_a_request_whose_twin_is_being_worked_on_is_409(api: Api, monkeypatch: pytest.MonkeyPatch) -> None:
    entered, go_on = threading.Event(), threading.Event()
    create = api.store.create_job

    def slowly(job: Any) -> Any:
        entered.set()
        go_on.wait(10)
        return create(job)

    monkeypatch.setattr(api.store, "create_job", slowly)
    answers: list[httpx.Response] = []
    first = threading.Thread(target=lambda: answers.append(api.http.post("/v1/jobs", json=JOB, headers=KEY)))
    first.start()
    entered.wait(10)
    twin = api.http.post("/v1/jobs", json=JOB, headers=KEY)
    go_on.set()
    first.join()
    after = api.http.post("/v1/jobs", json=JOB, headers=KEY)
    assert (twin.json()["code"], twin.status_code, twin.headers["retry-after"]) == ("in-flight", 409, "1")
    assert after.json() == answers[0].json()


def test_of_two_processes_with_one_key_one_has_the_effect_and_both_the_answer(tmp_path: Path) -> None:
    """The second one has had its effect in its own transaction when it finds that the first was faster."""
    url = f"sqlite:///{tmp_path}/shared.db"
    with open_store(url) as mine, open_store(url) as yours, serving(mine) as one, serving(yours) as two:
        kept = yours.answer
        first: list[httpx.Response] = []

        def late(key: str) -> Any:
            found = kept(key)
            if not first:
                first.append(one.http.post("/v1/jobs", json=JOB, headers=KEY))
            return found

        yours.answer = late  # type: ignore[method-assign]
        second = two.http.post("/v1/jobs", json=JOB, headers=KEY)
        assert (second.json(), len(mine.jobs().items)) == (first[0].json(), 1)


def test_the_value_of_a_token_is_kept_nowhere(api: Api, tmp_path: Path) -> None:
    headers = {**api.token("admin"), **KEY}
    made = api.http.post("/v1/tokens", json={"name": "t", "scopes": ["worker"]}, headers=headers)
    again = api.http.post("/v1/tokens", json={"name": "t", "scopes": ["worker"]}, headers=headers)
    token, value = made.json()["token"]["id"], made.json()["value"]
    assert again.json() == problem(
        409,
        "shown-once",
        "What this request was answered is not kept",
        f"token {token} was made by this request, and its value was in the first answer alone: "
        "where that is lost, revoke it and make another",
    )
    assert len(api.store.tokens()) == 2
    files = b"".join(path.read_bytes() for path in tmp_path.iterdir())
    assert (value.encode() in files, value.removeprefix("tw_").encode() in files) == (False, False)


@pytest.mark.parametrize(("when", "jobs_after_death"), [("before", 0), ("after", 1)])
def test_a_server_that_is_killed_over_a_request_leaves_its_effect_and_its_answer_or_neither(
    tmp_path: Path, when: str, jobs_after_death: int
) -> None:
    url, ready = f"sqlite:///{tmp_path}/killed.db", tmp_path / "ready"
    open_store(url).close()
    program = Path(__file__).parent / "dying_server.py"
    dying = subprocess.Popen([sys.executable, program, url, ready, when], env=ENVIRONMENT)
    try:
        deadline = time.monotonic() + 60
        while not ready.exists() and time.monotonic() < deadline:
            time.sleep(0.02)
        with pytest.raises(httpx.TransportError):
            httpx.post(f"{ready.read_text()}/v1/jobs", json=JOB, headers=KEY, trust_env=False, timeout=30)
        dying.wait(30)
    finally:
        dying.kill()
        dying.wait()
    with open_store(url) as store, serving(store) as api:
        left = len(store.jobs().items)
        answer = api.http.post("/v1/jobs", json=JOB, headers=KEY)
        (job,) = store.jobs().items
    assert (left, answer.status_code, answer.json()["id"]) == (jobs_after_death, 202, job.id)
    assert answer.headers.get("idempotency-replayed") == ("true" if when == "after" else None)


def test_what_was_checked_only_is_neither_kept_nor_written_down(api: Api) -> None:
    api.http.post("/v1/jobs", json={**JOB, "validate_only": True}, headers=KEY)
    real = api.http.post("/v1/jobs", json=JOB, headers=KEY)
    assert (real.status_code, len(api.store.audit().items)) == (202, 1)


def test_every_route_that_changes_something_is_a_change(api: Api) -> None:
    """Some wait, as no change may: they are safe to repeat by the holder, session or builder that they name.
    An artifact is put under what its bytes amount to."""
    from tilewright.service.app import ROUTES

    plain = {
        route.path
        for module in ROUTES
        for route in module.router.routes
        if set(route.methods) - {"GET", "HEAD"}
        and not (isinstance(route, ChangeRoute) and hasattr(route.endpoint, "__wrapped__"))
    }
    waiting = {"/v1/leases", "/v1/builds", "/v1/jobs/{job_id}/trials:ask"}
    assert plain == {*waiting, "/v1/artifacts/{sha256}"}


# Owners


def test_a_job_belongs_to_the_token_that_made_it(api: Api) -> None:
    mine, other = api.token("jobs:write"), api.token("jobs:write")
    job = api.http.post("/v1/jobs", json=JOB, headers=mine).json()
    statuses = [
        api.http.post(f"/v1/jobs/{job['id']}:{verb}", headers=who).status_code
        for who, verb in (({}, "pause"), (other, "cancel"), (mine, "pause"), (api.token("admin"), "cancel"))
    ]
    seen = api.http.get(f"/v1/jobs/{job['id']}", headers=other).json()
    assert (statuses, seen["state"], seen["owner"]) == ([403, 403, 200, 200], "cancelled", job["owner"])


@pytest.mark.parametrize(
    ("path", "body"),
    [
        (":cancel", None),
        (":pause", None),
        (":resume", None),
        (":extend", {"budget": {"trials": 99}}),
        ("/trials:ask", {}),
        ("/trials:tell", {"number": 0, "seconds": 1.0}),
    ],
)
def test_whoever_does_not_own_a_job_changes_nothing_of_it(api: Api, path: str, body: Any) -> None:
    job = stored_job(api.store, owner="token_of_another", origin="outside")
    answer = api.http.post(f"/v1/jobs/{job.id}{path}", json=body, headers=api.token("jobs:write"))
    assert answer.json() == problem(
        403,
        "not-owner",
        "This belongs to somebody else",
        f"job {job.id} was made by another token, token_of_another: that one or an administrator changes it",
    )
    assert api.store.job(job.id) == job


def test_a_job_of_nobody_in_particular_may_be_changed_by_everyone_who_may_write_jobs(api: Api) -> None:
    job = api.http.post("/v1/jobs", json=JOB).json()
    answer = api.http.post(f"/v1/jobs/{job['id']}:cancel", headers=api.token("jobs:write"))
    assert (job["owner"], answer.status_code) == (None, 200)


# Quotas


def test_a_token_that_has_its_jobs_is_429_until_one_has_ended(api: Api) -> None:
    _, value = api.store.create_token("small", ["jobs:write"], limits=TokenLimits(max_jobs=1))
    headers = {"Authorization": f"Bearer {value}"}
    first, second = (api.http.post("/v1/jobs", json=JOB, headers=headers) for _ in range(2))
    kept = len(api.store.jobs().items)
    api.http.post(f"/v1/jobs/{first.json()['id']}:cancel", headers=headers)
    third = api.http.post("/v1/jobs", json=JOB, headers=headers)
    back = api.http.post(f"/v1/jobs/{first.json()['id']}:resume", headers=headers)
    assert second.json() == problem(
        429,
        "quota-exceeded",
        "The token may not have more",
        "that would be 2 unfinished jobs, 1 are allowed: wait until some have ended",
    )
    assert (second.headers["retry-after"], kept, third.status_code, back.status_code) == ("30", 1, 202, 429)


def test_a_job_is_not_extended_beyond_a_quota_of_trials(api: Api) -> None:
    _, value = api.store.create_token("small", ["jobs:write"], limits=TokenLimits(max_trials=70))
    headers = {"Authorization": f"Bearer {value}"}
    job = api.http.post("/v1/jobs", json=JOB, headers=headers).json()["id"]
    more = {"budget": {"trials": 71}}
    answer = api.http.post(f"/v1/jobs/{job}:extend", json=more, headers=headers)
    assert (answer.json()["code"], api.store.job(job).trials) == ("quota-exceeded", 64)


def test_nobody_in_particular_has_a_quota_too(store: Store) -> None:
    with serving(store, Settings(max_unfinished_jobs=1)) as api:
        statuses = [api.http.post("/v1/jobs", json=JOB).status_code for _ in range(2)]
        assert (*statuses, len(store.jobs().items)) == (202, 429, 1)


# Rates


def test_a_bucket_gives_a_burst_and_then_a_request_for_each_part_of_a_second() -> None:
    now = [100.0]
    buckets = Buckets(rate=2.0, burst=3, clock=lambda: now[0])

    def taken(caller: str) -> int:
        count = 0
        try:
            while True:
                buckets.take(caller)
                count += 1
        except RateLimited:
            return count

    first = taken("a"), taken("b")
    now[0] += 1.0
    then = taken("a"), taken("a")
    now[0] += 60.0
    assert (first, then, taken("a")) == ((3, 3), (2, 0), 3)


def test_who_asks_too_often_is_told_when_to_ask_again() -> None:
    buckets = Buckets(rate=0.25, burst=1, clock=lambda: 0.0)
    buckets.take("a")
    with pytest.raises(RateLimited) as caught:
        buckets.take("a")
    assert (str(caught.value), caught.value.headers) == (
        "more than 0.25 requests a second: ask again in 4 s",
        {"Retry-After": "4"},
    )


def test_the_slowest_rate_has_a_last_day_too() -> None:
    buckets = Buckets(rate=5e-324, burst=1, clock=lambda: 0.0)
    buckets.take("a")
    with pytest.raises(RateLimited) as caught:
        buckets.take("a")
    assert caught.value.headers == {"Retry-After": "86400"}


def test_each_token_and_each_address_has_a_rate_of_its_own(store: Store) -> None:
    with serving(store, Settings(requests_per_second=0.001, requests_burst=2)) as api:
        mine, other = api.token("jobs:write"), api.token("jobs:write")
        statuses = [
            [api.http.get("/v1/jobs", headers=who).status_code for _ in range(3)] for who in (mine, other, {})
        ]
        live = [api.http.get("/livez").status_code for _ in range(5)]
    assert (statuses, live) == ([[200, 200, 429]] * 3, [200] * 5)


def test_wrong_tokens_are_counted_by_address(store: Store) -> None:
    with serving(store, Settings(requests_per_second=0.001, requests_burst=2)) as api:
        codes = [
            api.http.get("/v1/jobs", headers={"Authorization": f"Bearer tw_{n}"}).json()["code"]
            for n in range(3)
        ]
    assert codes == ["token-wrong", "token-wrong", "rate-limited"]


def test_a_token_may_have_a_rate_of_its_own(store: Store) -> None:
    _, value = store.create_token("slow", ["jobs:write"], limits=TokenLimits(rate=0.5))
    with serving(store) as api:
        headers = {"Authorization": f"Bearer {value}"}
        answers = [api.http.get("/v1/jobs", headers=headers) for _ in range(2)]
    assert [a.status_code for a in answers] == [200, 429]
    assert 1 <= int(answers[1].headers["retry-after"]) <= 2


# The audit log


def test_the_audit_log_says_who_did_what_to_what_from_where_and_what_came_of_it(api: Api) -> None:
    token, value = api.store.create_token("lab", ["jobs:write"])
    headers = {"Authorization": f"Bearer {value}"}
    job = api.http.post("/v1/jobs", json=JOB, headers=headers).json()["id"]
    api.http.post(f"/v1/jobs/{job}:pause", headers=headers)
    api.http.post("/v1/jobs", json={}, headers=headers)
    api.http.post("/v1/tokens", json={"name": "n", "scopes": ["admin"]}, headers=headers)
    api.http.post(f"/v1/jobs/{job}:cancel")
    entries = api.http.get("/v1/audit", headers=api.token("admin")).json()["entries"]
    common = {"actor": token.id, "name": "lab", "address": "127.0.0.1", "trace_id": TRACE_ID}
    assert [{k: v for k, v in e.items() if k not in ("at", "seq")} for e in entries] == [
        {**common, "verb": "create_token", "subject": "/v1/tokens", "outcome": "scope-missing"},
        {**common, "verb": "create_job", "subject": "/v1/jobs", "outcome": "invalid-request"},
        {**common, "verb": "pause_job", "subject": f"/v1/jobs/{job}:pause", "outcome": "done"},
        {**common, "verb": "create_job", "subject": "/v1/jobs", "outcome": "done"},
    ]


def test_the_audit_log_is_for_administrators_and_comes_in_pages(api: Api) -> None:
    for _ in range(3):
        api.http.post("/v1/jobs", json=JOB)
    admin = api.token("admin")
    page = api.http.get("/v1/audit?page_size=2&actor=anonymous", headers=admin).json()
    query = {"page_size": 2, "actor": "anonymous", "page_token": page["next_page_token"]}
    rest = api.http.get("/v1/audit", params=query, headers=admin).json()
    seqs = [entry["seq"] for entry in (*page["entries"], *rest["entries"])]
    assert (seqs, rest["next_page_token"]) == (sorted(seqs, reverse=True), None)
    assert (len(seqs), api.http.get("/v1/audit", headers=api.token("jobs:write")).status_code) == (3, 403)


def test_what_workers_send_all_the_time_is_not_audited(api: Api) -> None:
    headers = api.token("worker")
    api.http.post("/v1/leases/nothing:renew", json={"protocol": 1}, headers=headers)
    assert api.store.audit().items == ()
