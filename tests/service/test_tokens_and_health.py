from __future__ import annotations

from importlib.metadata import version

import pytest
from service_harness import Api, problem


def test_a_tokens_value_is_in_the_answer_that_makes_it_and_works(api: Api) -> None:
    made = api.http.post(
        "/v1/tokens",
        json={"name": "lab", "scopes": ["worker"], "pool": "b", "expires_seconds": 60},
        headers=api.token("admin"),
    )
    token = made.json()["token"]
    listed = api.http.get(
        "/v1/workers", headers={"Authorization": f"Bearer {made.json()['value']}"}
    ).status_code
    assert (made.status_code, listed) == (201, 200)
    assert token["expires_at"] - token["created_at"] == pytest.approx(60)
    assert {k: token[k] for k in ("name", "scopes", "pool", "revoked_at")} == {
        "name": "lab",
        "scopes": ["worker"],
        "pool": "b",
        "revoked_at": None,
    }


def test_listed_tokens_have_no_value(api: Api) -> None:
    headers = api.token("admin")
    value = headers["Authorization"].removeprefix("Bearer ")
    answer = api.http.get("/v1/tokens", headers=headers)
    assert ([t["name"] for t in answer.json()["tokens"]], value in answer.text) == (["test"], False)


def test_a_token_can_be_revoked_over_http(api: Api) -> None:
    token, value = api.store.create_token("t", ["worker"])
    api.http.post(f"/v1/tokens/{token.id}:revoke", headers=api.token("admin"))
    answer = api.http.get("/v1/workers", headers={"Authorization": f"Bearer {value}"})
    assert answer.status_code == 401


def test_an_unknown_scope_is_refused_naming_those_there_are(api: Api) -> None:
    answer = api.http.post("/v1/tokens", json={"name": "t", "scopes": ["root"]}, headers=api.token("admin"))
    detail = (
        "should be 'jobs:write', 'schedules:read', 'schedules:write', 'worker', 'builder' or 'admin', "
        'got "root"'
    )
    assert answer.json()["errors"] == [{"pointer": "/scopes/0", "detail": detail}]


def test_the_server_says_what_it_is(api: Api) -> None:
    assert api.http.get("/version").json() == {
        "service": "tilewright",
        "version": version("tilewright"),
        "protocol": 2,
        "codegen": "7",
    }


def test_a_server_that_is_well_is_live_and_ready(api: Api) -> None:
    answers = [api.http.get(path).json() for path in ("/livez", "/readyz")]
    assert answers == [{"status": "ok"}, {"status": "ok"}]


def test_a_server_whose_searches_do_not_run_is_live_but_not_ready(api: Api) -> None:
    api.dispatcher.trouble = "the shepherd of searches is not running"
    assert api.http.get("/livez").status_code == 200
    assert api.http.get("/readyz").json() == problem(
        503, "not-ready", "The server cannot serve yet", "the shepherd of searches is not running"
    )


@pytest.mark.parametrize("path", ["/livez", "/readyz", "/version"])
def test_health_can_be_asked_without_a_body(api: Api, path: str) -> None:
    answer = api.http.head(path)
    assert (answer.status_code, answer.content) == (200, b"")
