"""When a client makes a call again, and how long it waits."""

from __future__ import annotations

import httpx
import pytest
from service_harness import (
    MATMUL,
    Api,
)

from tilewright.service.client import ApiError, Client


def _flaky(failures: int, status: int | None) -> tuple[httpx.MockTransport, list[str]]:
    """A server whose first calls beyond the handshake break, or answer `status`."""
    calls: list[str] = []

    def answer(request: httpx.Request) -> httpx.Response:
        if request.url.path == "/version":
            return httpx.Response(200, json={"service": "tilewright"})
        calls.append(request.method)
        if len(calls) > failures:
            return httpx.Response(200, json={"operators": []})
        if status is None:
            raise httpx.ReadError("reset")
        return httpx.Response(status, json={"code": "store-unavailable", "detail": "busy"})

    return httpx.MockTransport(answer), calls


@pytest.mark.parametrize("status", [None, 503])
def test_what_only_reads_is_tried_again(status: int | None) -> None:
    handler, calls = _flaky(2, status)
    with Client("http://127.0.0.1:1", handler=handler) as client:
        assert (client.operators(), calls) == ([], ["GET"] * 3)


def test_a_job_whose_answer_is_lost_is_submitted_again_as_the_same_request(api: Api) -> None:
    """The server makes the job, and the first two answers are lost on their way."""
    keys: list[str] = []

    def losing(request: httpx.Request) -> httpx.Response:
        sent = {"content": request.content, "headers": request.headers, "trust_env": False}
        answer = httpx.request(request.method, request.url.copy_with(), **sent)
        if request.method == "POST":
            keys.append(request.headers["idempotency-key"])
            if len(keys) < 3:
                raise httpx.ReadError("reset")
        return answer

    with Client(api.url, handler=httpx.MockTransport(losing)) as client:
        first, second = client.submit(MATMUL), client.submit(MATMUL)
    assert (len(keys), len(set(keys[:3])), len(set(keys))) == (4, 1, 2)
    assert [job.id for job in api.store.jobs().items] == [second.id, first.id]


@pytest.mark.parametrize("status", [429, 409])
def test_a_client_waits_as_long_as_the_server_says(status: int) -> None:
    answers = [
        httpx.Response(status, json={"code": "in-flight", "detail": "wait"}, headers={"Retry-After": "0"}),
        httpx.Response(200, json={"operators": []}),
    ]
    seen: list[int] = []

    def answer(request: httpx.Request) -> httpx.Response:
        if request.url.path == "/version":
            return httpx.Response(200, json={"service": "tilewright"})
        seen.append(1)
        return answers[len(seen) - 1]

    with Client("http://127.0.0.1:1", handler=httpx.MockTransport(answer)) as client:
        assert (client.operators(), len(seen)) == ([], 2)


def test_a_client_does_not_wait_longer_than_it_may() -> None:
    def answer(request: httpx.Request) -> httpx.Response:
        if request.url.path == "/version":
            return httpx.Response(200, json={"service": "tilewright"})
        problem = {"code": "quota-exceeded", "detail": "too many"}
        return httpx.Response(429, json=problem, headers={"Retry-After": "3600"})

    handler = httpx.MockTransport(answer)
    with Client("http://127.0.0.1:1", handler=handler) as client, pytest.raises(ApiError, match="too many"):
        client.submit(MATMUL)
