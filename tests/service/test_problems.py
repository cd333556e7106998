from __future__ import annotations

import json
from typing import Any

import pytest
from service_harness import MATMUL, TRACE_ID, Api, problem, serving, stored_job

from tilewright.db import Store
from tilewright.service.settings import Settings

JSON = {"Content-Type": "application/json"}
MALFORMED = (400, "malformed-json", "The body is not JSON")


def _post(api: Api, body: str | bytes, headers: dict[str, str] | None = None) -> Any:
    return api.http.post("/v1/jobs", content=body, headers=JSON if headers is None else headers)


def test_an_unknown_route_is_404(api: Api) -> None:
    answer = api.http.get("/v1/nonsense")
    assert answer.json() == problem(
        404,
        "route-not-found",
        "There is no such route",
        "there is no route /v1/nonsense; the routes are listed in /openapi.json",
    )


def test_a_wrong_method_is_405_with_those_allowed(api: Api) -> None:
    answer = api.http.delete("/v1/operators")
    assert (answer.json(), answer.headers["allow"]) == (
        problem(
            405,
            "method-not-allowed",
            "This route does not take this method",
            "/v1/operators does not take DELETE, only GET",
        ),
        "GET",
    )


def test_a_wrong_method_is_405_with_the_methods_of_all_routes_of_the_path(api: Api) -> None:
    answer = api.http.delete("/v1/jobs")
    assert (answer.json()["detail"], answer.headers["allow"]) == (
        "/v1/jobs does not take DELETE, only GET, POST",
        "GET, POST",
    )


def test_a_bug_is_500_that_shows_nothing_of_itself(api: Api) -> None:
    answer = api.http.post("/v1/jobs", json={"workload": {"op": "crash"}})
    assert answer.json() == problem(
        500,
        "internal-error",
        "The server failed",
        f"the server failed on this request; its log tells why under trace {TRACE_ID}",
    )


def test_every_problem_is_sent_as_problem_json(api: Api) -> None:
    requests = [
        api.http.get("/v1/nonsense"),
        api.http.delete("/v1/operators"),
        api.http.post("/v1/jobs", json={"workload": {"op": "crash"}}),
        api.http.post("/v1/jobs", json={}),
        api.http.get("/v1/tokens"),
        _post(api, "{"),
    ]
    assert {answer.headers["content-type"] for answer in requests} == {"application/problem+json"}


def test_a_problem_without_a_traceparent_gets_a_trace_of_its_own(api: Api) -> None:
    answers = [api.http.get("/v1/nonsense", headers={"traceparent": "junk"}) for _ in range(2)]
    first, second = (answer.json()["trace_id"] for answer in answers)
    assert (len(first), first != second, answers[0].headers["x-trace-id"]) == (32, True, first)


@pytest.mark.parametrize(
    ("body", "detail"),
    [
        ("{", "the body must be JSON: Expecting property name enclosed in double quotes at line 1 column 2"),
        (b"\xff", "the body must be UTF-8: byte 0 is not"),
        ('{"a": NaN}', "the body must be JSON: NaN is no JSON number"),
        ('{"a": -Infinity}', "the body must be JSON: -Infinity is no JSON number"),
        (
            '{"a": 1e999}',
            "the body must be JSON: the number 1e999 is beyond what a 64-bit float holds",
        ),
        ('{"a": 1, "a": 2}', "the body must be JSON: the name 'a' stands twice in one object"),
        ('{"a": "\\ud800"}', "the body must be JSON: a string holds half of a surrogate pair"),
        ('{"a": "\\u0000"}', "the body must be JSON: a string holds the character NUL"),
    ],
)
def test_what_is_not_json_for_every_reader_is_refused(api: Api, body: str, detail: str) -> None:
    assert _post(api, body).json() == problem(*MALFORMED, detail)


def test_a_number_of_too_many_digits_is_refused(api: Api) -> None:
    answer = _post(api, '{"a": ' + "9" * 5000 + "}")
    assert (answer.status_code, answer.json()["code"]) == (400, "malformed-json")


@pytest.mark.parametrize("opened", ["[", '{"a":'])
def test_json_that_is_nested_too_deeply_is_refused(api: Api, opened: str) -> None:
    closed = "]" if opened == "[" else "}"
    answer = _post(api, opened * 20_000 + "1" + closed * 20_000)
    assert answer.json() == problem(
        422,
        "json-too-deep",
        "The body's JSON is nested too deeply",
        "the body's arrays and objects may be nested at most 256 deep",
    )


def test_json_as_deep_as_allowed_is_read(api: Api) -> None:
    nested: Any = 1
    for _ in range(254):
        nested = [nested]
    answer = _post(api, json.dumps({"workload": {"op": nested}}))
    assert answer.json()["code"] == "invalid-workload"


def test_a_body_that_is_too_large_is_refused(store: Store) -> None:
    with serving(store, Settings(max_body_bytes=2048)) as api:
        answer = _post(api, json.dumps({"workload": MATMUL, "padding": "x" * 4000}))
    assert answer.json() == problem(
        413, "body-too-large", "The request's body is too large", "a body may have at most 2048 bytes"
    )


def test_a_body_that_grows_too_large_as_it_comes_is_refused(store: Store) -> None:
    with serving(store, Settings(max_body_bytes=2048)) as api:
        chunks = (b"x" * 1000 for _ in range(5))
        answer = api.http.post("/v1/jobs", content=chunks, headers=JSON)
    assert answer.status_code == 413


@pytest.mark.parametrize(
    ("headers", "detail"),
    [
        ({}, "the body has no Content-Type; it must be application/json"),
        (
            {"Content-Type": "text/plain"},
            "the body's Content-Type is 'text/plain'; it must be application/json",
        ),
        (
            {"Content-Type": "application/json; charset=latin-1"},
            "the body must be UTF-8, its Content-Type says 'charset=latin-1'",
        ),
        (
            {**JSON, "Content-Encoding": "gzip"},
            "the body's Content-Encoding is 'gzip'; it must be sent as it is",
        ),
    ],
)
def test_a_body_that_does_not_say_it_is_json_is_refused(
    api: Api, headers: dict[str, str], detail: str
) -> None:
    assert _post(api, json.dumps({"workload": MATMUL}), headers).json() == problem(
        415, "unsupported-media-type", "Bodies must be application/json", detail
    )


@pytest.mark.parametrize(
    "name", ["Authorization", "Origin", "Idempotency-Key", "Content-Type", "Content-Encoding"]
)
def test_a_header_that_stands_twice_is_refused_by_its_name(api: Api, name: str) -> None:
    twice = [("Content-Type", "application/json"), (name, "one"), (name, "two")]
    given = twice[1:] if name == "Content-Type" else twice
    answer = api.http.post("/v1/jobs", content=json.dumps({"workload": MATMUL}), headers=given)
    detail = f"the header {name} stands 2 times in the request; send it once"
    title = "The request does not say what this route needs"
    fault = {"parameter": name, "detail": detail}
    assert answer.json() == problem(422, "invalid-request", title, detail, fault)
    assert api.store.jobs().items == ()


def test_a_body_that_says_utf_8_is_read(api: Api) -> None:
    answer = _post(api, json.dumps({"workload": MATMUL}), {"Content-Type": "application/json; charset=utf-8"})
    assert answer.status_code == 202


def test_a_body_that_is_no_object_is_refused(api: Api) -> None:
    assert _post(api, "[]").json()["errors"] == [
        {"pointer": "", "detail": "should be a valid dictionary or object to extract fields from, got []"}
    ]


def test_a_query_parameter_that_stands_twice_is_refused(api: Api) -> None:
    detail = "stands 2 times in the query; say it once"
    assert api.http.get("/v1/jobs?state=completed&state=running").json()["errors"] == [
        {"parameter": "state", "detail": detail}
    ]


@pytest.mark.parametrize(
    ("method", "path", "where", "name"),
    [
        ("GET", "/v1/jobs/a%00b", "path", "job_id"),
        ("GET", "/v1/jobs/a%00b/events", "path", "job_id"),
        ("POST", "/v1/jobs/%00:cancel", "path", "job_id"),
        ("GET", "/v1/workers/a%00b", "path", "worker"),
        ("GET", "/v1/audit?actor=a%00b", "query", "actor"),
    ],
)
def test_a_nul_in_a_parameter_is_refused_by_the_name_of_the_parameter(
    api: Api, method: str, path: str, where: str, name: str
) -> None:
    answer = api.http.request(method, path, headers=api.token("admin"))
    detail = f"{where} parameter {name} holds the character NUL"
    assert (answer.status_code, answer.json()["errors"]) == (422, [{"parameter": name, "detail": detail}])


def test_a_refused_change_of_what_has_a_nul_in_its_name_is_in_the_audit_log(api: Api) -> None:
    api.http.post("/v1/jobs/a%00b:cancel", headers=api.token("jobs:write"))
    entries = api.store.audit(None, None, 9).items
    assert [(e.verb, e.subject, e.outcome) for e in entries] == [
        ("cancel_job", "/v1/jobs/a%00b:cancel", "invalid-request")
    ]


@pytest.mark.parametrize("path", ["/v1/jobs/", "/v1/workers/", "/livez/"])
def test_a_path_with_a_slash_at_its_end_is_no_route_and_leads_nowhere(api: Api, path: str) -> None:
    for method in ("GET", "POST"):
        answer = api.http.request(method, path, follow_redirects=False)
        assert (answer.status_code, answer.json()["code"]) == (404, "route-not-found")


def test_a_query_parameter_that_no_route_knows_is_refused(api: Api) -> None:
    detail = "unknown query parameter; did you mean 'state'? known parameters: state, page_size, page_token"
    assert api.http.get("/v1/jobs?stat=running").json()["errors"] == [{"parameter": "stat", "detail": detail}]
    assert api.http.get("/livez?probe=1").status_code == 200
    job = stored_job(api.store).id
    api.store.cancel_job(job)
    assert api.http.get(f"/v1/jobs/{job}/events?after=1").status_code == 200
