"""Lookups that have not changed are answered before a route is looked for, and no others."""

from __future__ import annotations

import re
from typing import Any

import pytest
from service_harness import HARDWARE, Api, attach, searched, settle

from tilewright.service.routes import schedules


class Lookup:
    """One lookup, as a token asks it; `routed` counts those that came to their route."""

    def __init__(self, api: Api, monkeypatch: pytest.MonkeyPatch) -> None:
        self.api = api
        self.routed = 0
        worker = attach(api.store)
        job = searched(api.store, 4)
        settle(api.store, [2e-5, 1e-5], worker)
        self.key = {"workload": job.workload, "target": job.target, "hardware": HARDWARE}
        self.token = api.token("schedules:read")
        kinds = schedules._kinds

        def counted(allow: str) -> tuple[str, ...]:
            self.routed += 1
            return kinds(allow)

        monkeypatch.setattr(schedules, "_kinds", counted)

    def get(self, etag: str | None = None, token: dict[str, str] | None = None, **more: str) -> Any:
        headers = dict(token or self.token) | ({} if etag is None else {"If-None-Match": etag})
        return self.api.http.get("/v1/schedules/best", params=self.key | more, headers=headers)


@pytest.fixture
def lookup(api: Api, monkeypatch: pytest.MonkeyPatch) -> Lookup:
    return Lookup(api, monkeypatch)


def test_who_has_the_answer_is_told_so_without_the_route(lookup: Lookup) -> None:
    first = lookup.get()
    again = lookup.get(first.headers["etag"])
    assert (again.status_code, again.content, lookup.routed) == (304, b"", 1)
    assert {name: again.headers[name] for name in ("etag", "cache-control")} == {
        name: first.headers[name] for name in ("etag", "cache-control")
    }


def test_it_is_counted_by_the_route(lookup: Lookup, api: Api) -> None:
    etag = lookup.get().headers["etag"]
    assert lookup.get(etag).status_code == 304
    said = api.http.get("/metrics", headers=api.token("admin")).text
    (counted,) = re.findall(r"http_requests_total\{(.*304.*)\} 1.0", said)
    assert 'route="/v1/schedules/best"' in counted


def test_other_tags_other_queries_and_other_tokens_come_to_the_route(lookup: Lookup, api: Api) -> None:
    etag = lookup.get().headers["etag"]
    assert lookup.get('"another"').status_code == 200
    assert lookup.get(etag, allow="transferred").status_code == 304
    assert lookup.get(etag, token=api.token("schedules:read")).status_code == 304
    assert lookup.routed == 4


def test_a_token_without_the_scope_is_refused_whatever_it_has(lookup: Lookup, api: Api) -> None:
    etag = lookup.get().headers["etag"]
    assert lookup.get(etag, token=api.token("builder")).status_code == 403


def test_a_token_that_was_revoked_is_refused_from_then_on(lookup: Lookup, api: Api) -> None:
    etag = lookup.get().headers["etag"]
    assert lookup.get(etag).status_code == 304
    for token in api.store.tokens():
        api.store.revoke_token(token.id)
    assert lookup.get(etag).status_code == 401


def test_what_has_changed_is_sent(lookup: Lookup, api: Api) -> None:
    etag = lookup.get().headers["etag"]
    settle(api.store, [5e-6], attach(api.store))
    again = lookup.get(etag)
    assert (again.status_code, again.json()["seconds"]) == (200, 5e-6)
    assert lookup.get(etag).status_code == 200


def test_no_answer_is_no_answer_the_next_time(lookup: Lookup) -> None:
    wanted = lookup.key
    lookup.key = wanted | {"workload": "0" * 64}
    assert [lookup.get("*").status_code for _ in range(2)] == [404, 404]
