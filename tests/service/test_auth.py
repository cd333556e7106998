from __future__ import annotations

import pytest
from service_harness import HEX, MATMUL, Api, problem, serving

from tilewright.db import Store
from tilewright.service.settings import Settings

BEST = f"/v1/schedules/best?workload={HEX}&target={HEX}&hardware={HEX}"
LEASE = {"protocol": 1, "worker": "nobody", "session": "s", "max_items": 1, "wait_seconds": 0}
CALLS = {
    "submit": ("POST", "/v1/jobs", {"workload": MATMUL}),
    "cancel": ("POST", "/v1/jobs/nothing:cancel", None),
    "pause": ("POST", "/v1/jobs/nothing:pause", None),
    "resume": ("POST", "/v1/jobs/nothing:resume", None),
    "extend": ("POST", "/v1/jobs/nothing:extend", {"budget": {"trials": 9}}),
    "list jobs": ("GET", "/v1/jobs", None),
    "read job": ("GET", "/v1/jobs/nothing", None),
    "trials": ("GET", "/v1/jobs/nothing/trials", None),
    "events": ("GET", "/v1/jobs/nothing/events", None),
    "operators": ("GET", "/v1/operators", None),
    "best": ("GET", BEST, None),
    "list workers": ("GET", "/v1/workers", None),
    "read worker": ("GET", "/v1/workers/nothing", None),
    "attach": ("POST", "/v1/workers", {"protocol": 1}),
    "lease": ("POST", "/v1/leases", LEASE),
    "start": ("POST", "/v1/leases/nothing:start", {"protocol": 1}),
    "renew": ("POST", "/v1/leases/nothing:renew", {"protocol": 1}),
    "settle": ("POST", "/v1/leases/nothing:settle", {"protocol": 1}),
    "release": ("POST", "/v1/leases/nothing:release", {"protocol": 1}),
    "make token": ("POST", "/v1/tokens", {"name": "n", "scopes": ["worker"]}),
    "list tokens": ("GET", "/v1/tokens", None),
    "revoke token": ("POST", "/v1/tokens/nothing:revoke", None),
}
WRITING = {"submit", "cancel", "pause", "resume", "extend"}
READING = {"list jobs", "read job", "trials", "events", "operators", "best"}
JOBS = READING | WRITING
MEASURING = {"list workers", "read worker", "attach", "lease", "start", "renew", "settle", "release"}


def _status(api: Api, call: str, headers: dict[str, str]) -> int:
    method, path, body = CALLS[call]
    return api.http.request(method, path, json=body, headers=headers).status_code


def _allowed(api: Api, headers: dict[str, str]) -> set[str]:
    """The calls that get past authentication, whatever then becomes of them."""
    return {call for call in CALLS if _status(api, call, headers) not in (401, 403)}


def test_on_loopback_nobody_in_particular_may_use_jobs_and_schedules(api: Api) -> None:
    assert _allowed(api, {}) == JOBS


def test_a_worker_token_opens_measuring(api: Api) -> None:
    assert _allowed(api, api.token("worker")) == MEASURING


def test_a_jobs_token_opens_jobs_and_the_sight_of_workers(api: Api) -> None:
    assert _allowed(api, api.token("jobs:write")) == JOBS | {"list workers", "read worker"}


def test_a_reading_token_opens_what_only_reads(api: Api) -> None:
    assert _allowed(api, api.token("schedules:read")) == READING


def test_an_admin_token_opens_everything(api: Api) -> None:
    assert _allowed(api, api.token("admin")) == set(CALLS)


def test_a_wrong_token_is_401_on_every_route_even_where_none_is_needed(api: Api) -> None:
    statuses = {_status(api, call, {"Authorization": "Bearer twt_wrong"}) for call in CALLS}
    assert statuses | {api.http.get("/nonsense", headers={"Authorization": "Bearer x"}).status_code} == {401}


def test_a_wrong_token_is_told_how_to_get_a_right_one(api: Api) -> None:
    answer = api.http.get("/v1/jobs", headers={"Authorization": "Bearer twt_wrong"})
    assert (answer.json(), answer.headers["www-authenticate"]) == (
        problem(
            401,
            "token-wrong",
            "The bearer token is not valid",
            "the token is unknown, revoked or expired; an administrator makes one with "
            "`tilewright token create`",
        ),
        'Bearer realm="tilewright"',
    )


@pytest.mark.parametrize("value", ["Basic dXNlcjpwYXNz", "Bearer", ""])
def test_another_scheme_is_401(api: Api, value: str) -> None:
    answer = api.http.get("/v1/jobs", headers={"Authorization": value})
    assert answer.json() == problem(
        401,
        "token-wrong",
        "The bearer token is not valid",
        "the Authorization header must be 'Bearer <token>'",
    )


def test_a_revoked_token_is_401(api: Api) -> None:
    token, value = api.store.create_token("t", ["admin"])
    api.store.revoke_token(token.id)
    assert _status(api, "list jobs", {"Authorization": f"Bearer {value}"}) == 401


def test_a_token_of_another_scope_is_403_naming_what_would_do(api: Api) -> None:
    assert api.http.get("/v1/tokens", headers=api.token("worker", "jobs:write")).json() == problem(
        403,
        "scope-missing",
        "The token does not allow this",
        "this request needs a token of scope admin; token 'test' has jobs:write, worker",
    )


def test_a_worker_route_without_a_token_is_401_naming_what_would_do(api: Api) -> None:
    assert api.http.post("/v1/leases", json=LEASE).json() == problem(
        401,
        "token-needed",
        "This request needs a bearer token",
        "this request needs a token of scope worker or admin: worker and token routes always do; "
        "send it as 'Authorization: Bearer <token>'",
    )


@pytest.mark.parametrize(
    ("headers", "why"),
    [
        ({"Host": "evil.example"}, "its Host header says 'evil.example', not a loopback name"),
        (
            {"Host": "127.0.0.1.evil.example:80"},
            "its Host header says '127.0.0.1.evil.example:80', not a loopback name",
        ),
        ({"Forwarded": "for=10.0.0.1"}, "its forwarded header says that it came through a proxy"),
        ({"Via": "1.1 proxy"}, "its via header says that it came through a proxy"),
        ({"X-Real-IP": "127.0.0.1"}, "its x-real-ip header says that it came through a proxy"),
        (
            {"X-Forwarded-For": "127.0.0.1"},
            "its x-forwarded-for header says that it came through a proxy",
        ),
        (
            {"X-Forwarded-Proto": "https"},
            "its x-forwarded-proto header says that it came through a proxy",
        ),
        (
            {"Origin": "https://evil.example"},
            "its Origin header says 'https://evil.example', not a loopback name",
        ),
        ({"Origin": "null"}, "its Origin header says 'null', not a loopback name"),
    ],
)
def test_what_may_come_from_elsewhere_needs_a_token(api: Api, headers: dict[str, str], why: str) -> None:
    assert api.http.get("/v1/jobs", headers=headers).json() == problem(
        401,
        "token-needed",
        "This request needs a bearer token",
        f"this request needs a token of scope jobs:write or schedules:read or admin: {why}; "
        "send it as 'Authorization: Bearer <token>'",
    )


@pytest.mark.parametrize("host", ["localhost", "localhost:99", "127.0.0.1", "127.8.9.1:1", "[::1]:80"])
def test_every_loopback_name_is_this_machine(api: Api, host: str) -> None:
    assert api.http.get("/v1/jobs", headers={"Host": host}).status_code == 200


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "192.0.2.7", "tune.example"])
def test_a_server_that_others_reach_wants_a_token_for_everything(store: Store, host: str) -> None:
    with serving(store, Settings(host=host)) as api:
        assert _allowed(api, {}) == set()


def test_with_a_token_a_request_may_come_from_elsewhere(store: Store) -> None:
    with serving(store, Settings(host="0.0.0.0")) as api:
        headers = {**api.token("jobs:write"), "Host": "tune.example", "X-Forwarded-For": "10.1.1.1"}
        assert _status(api, "submit", headers) == 202


def test_health_needs_no_token_and_reads_none(store: Store) -> None:
    with serving(store, Settings(host="0.0.0.0")) as api:
        statuses = [
            api.http.get(path, headers={"Authorization": "Bearer wrong"}).status_code
            for path in ("/livez", "/readyz", "/version")
        ]
    assert statuses == [200, 200, 200]
