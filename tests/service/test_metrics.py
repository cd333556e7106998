"""What Prometheus reads."""

from __future__ import annotations

import socket
import time
from importlib.metadata import version
from typing import Any
from urllib.parse import urlsplit

import httpx
from prometheus_client.parser import text_string_to_metric_families
from service_harness import MATMUL, Api, attach, searched, serving, settle

from tilewright.db import Store
from tilewright.db.errors import StoreUnavailable
from tilewright.measure.messages import PROTOCOL
from tilewright.service.metrics import Metrics
from tilewright.service.settings import Settings


def _samples(answer: httpx.Response) -> dict[tuple[str, frozenset[tuple[str, str]]], float]:
    assert answer.status_code == 200, answer.text
    return {
        (sample.name, frozenset(sample.labels.items())): sample.value
        for family in text_string_to_metric_families(answer.text)
        for sample in family.samples
    }


def _of(samples: Any, name: str, **labels: str) -> float | None:
    """Of the database; with `process`, of this process."""
    return samples.get((name, frozenset(labels.items())))


def _own(samples: Any, name: str, **labels: str) -> float | None:
    return _of(samples, name, **labels, process="0")


def test_requests_are_counted_by_the_template_of_their_route(store: Store) -> None:
    with serving(store) as api:
        for name in ("a", "b", "c"):
            api.http.get(f"/v1/jobs/{name}")
        api.http.get("/nonsense/secret-id")
        answer = api.http.get("/metrics")
        found = _samples(answer)
    route = {"method": "GET", "route": "/v1/jobs/{job_id}"}
    assert _own(found, "tilewright_http_requests_total", **route, status="404") == 3
    assert _own(found, "tilewright_http_request_seconds_count", **route) == 3
    assert _own(found, "tilewright_http_requests_total", method="GET", route="none", status="404") == 1
    assert ("secret-id" in answer.text, answer.headers["content-type"]) == (
        False,
        "text/plain; version=0.0.4; charset=utf-8",
    )


def test_who_hangs_up_before_all_is_said_is_no_error_of_the_servers(store: Store) -> None:
    with serving(store) as api:
        address = urlsplit(api.url)
        with socket.create_connection((address.hostname, address.port), timeout=10) as connection:
            connection.sendall(b"POST /v1/jobs HTTP/1.1\r\nHost: localhost\r\nContent-Length: 100\r\n\r\n{")
        of = {"method": "POST", "route": "none", "status": "499"}
        for _ in range(100):
            found = _samples(api.http.get("/metrics"))
            if _own(found, "tilewright_http_requests_total", **of):
                break
            time.sleep(0.05)
    assert _own(found, "tilewright_http_requests_total", **of) == 1
    assert _own(found, "tilewright_http_requests_total", **(of | {"status": "500"})) is None


def test_what_is_in_the_database_is_counted_when_it_is_asked_for(store: Store) -> None:
    worker = attach(store)
    searched(store, 5)
    settle(store, [1e-3, "run_error"], worker)
    with serving(store) as api:
        found = _samples(api.http.get("/metrics"))
    expected = {
        ("tilewright_jobs", "state", "running"): 1,
        ("tilewright_jobs", "state", "failed"): 0,
        ("tilewright_workers", "state", "online"): 1,
        ("tilewright_trials_unmeasured", "outcome", "pending"): 3,
        ("tilewright_trials_unmeasured", "outcome", "started"): 0,
    }
    assert {key: _of(found, key[0], **{key[1]: key[2]}) for key in expected} == expected
    assert (_of(found, "tilewright_leases_open"), _of(found, "tilewright_database_up")) == (0, 1)
    assert (_of(found, "tilewright_queue_oldest_seconds") or 0) > 0
    assert _of(found, "tilewright_search_seconds_count") == 0


def test_results_and_leases_and_transactions_are_counted_where_they_pass(store: Store) -> None:
    job = searched(store, 2, origin="outside")
    with serving(store) as api:
        for number, said in enumerate(({"seconds": 1.0}, {"failure": {"kind": "run_error"}})):
            api.http.post(f"/v1/jobs/{job.id}/trials:tell", json={"number": number, **said})
        found = _samples(api.http.get("/metrics"))
    settled = {o: _own(found, "tilewright_trials_settled_total", outcome=o) for o in ("ok", "run_error")}
    assert settled == {"ok": 1, "run_error": 1}
    assert _own(found, "tilewright_trials_settled_total", outcome="wrong_output") == 0
    assert (_own(found, "tilewright_database_transaction_seconds_count", kind="write") or 0) >= 2


def test_the_build_is_named(api: Api) -> None:
    found = _samples(api.http.get("/metrics"))
    (labels,) = [dict(labels) for name, labels in found if name == "tilewright_build_info"]
    assert labels == {
        "version": version("tilewright"),
        "codegen": "7",
        "protocol": str(PROTOCOL),
        "process": "0",
    }


def test_where_the_database_does_not_answer_the_rest_is_told(store: Store) -> None:
    def away() -> Any:
        raise StoreUnavailable("it is away")

    store.census = away  # type: ignore[method-assign]
    with serving(store) as api:
        found = _samples(api.http.get("/metrics"))
    assert (_of(found, "tilewright_database_up"), _of(found, "tilewright_leases_open")) == (0, None)


def test_two_applications_in_one_process_count_for_themselves(store: Store) -> None:
    with serving(store) as one, serving(store) as two:
        one.http.get("/livez")
        counts = [
            _own(
                _samples(api.http.get("/metrics")),
                "tilewright_http_requests_total",
                method="GET",
                route="/livez",
                status="200",
            )
            for api in (one, two)
        ]
    assert counts == [1, None]


def test_metrics_are_for_whoever_may_read_jobs_or_for_everyone_by_a_setting(store: Store) -> None:
    statuses = []
    for open_to_all in (False, True):
        with serving(store, Settings(host="0.0.0.0", metrics_open=open_to_all)) as api:
            tokens: list[dict[str, str]] = [{}, api.token("worker"), api.token("schedules:read")]
            statuses.append([api.http.get("/metrics", headers=headers).status_code for headers in tokens])
    assert statuses == [[401, 403, 200], [200, 200, 200]]


def test_no_label_is_anything_that_a_client_chooses(store: Store) -> None:
    with serving(store) as api:
        api.http.request("PROPFIND", "/v1/jobs")
        api.http.post("/v1/jobs", json={"workload": {**MATMUL, "name": "chosen"}})
        text = api.http.get("/metrics").text
    assert ("PROPFIND" in text, "chosen" in text, 'method="other"' in text) == (False, False, True)


def test_processes_behind_one_socket_are_told_apart(store: Store) -> None:
    """A scrape reaches any of them: what it counts must not look like the others' counters gone back."""
    metrics = [Metrics(store.census, "7", process) for process in (0, 1)]
    metrics[1].leases.inc()
    texts = [one.text().decode() for one in metrics]
    assert 'tilewright_leases_granted_total{process="0"} 0.0' in texts[0]
    assert 'tilewright_leases_granted_total{process="1"} 1.0' in texts[1]
    assert ["tilewright_leases_open 0.0" in text for text in texts] == [True, True]
