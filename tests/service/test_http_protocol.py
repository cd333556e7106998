from __future__ import annotations

import gc
import select
import socket
from typing import Any
from urllib.parse import urlsplit

import httpx
import pytest
from service_harness import Api, served
from uvicorn.protocols.http.httptools_impl import RequestResponseCycle

from tilewright.service.http_protocol import MOST_HEAD_BYTES


def _asked(url: str, *sent: bytes) -> httpx.Response:
    """The answer to these bytes, after which the server closes the connection."""
    address = urlsplit(url)
    received = b""
    with socket.create_connection((address.hostname, address.port), timeout=10) as connection:
        for piece in sent:
            connection.sendall(piece)
        while chunk := connection.recv(65536):
            received += chunk
    head, _, body = received.partition(b"\r\n\r\n")
    line, *headers = head.decode().split("\r\n")
    return httpx.Response(int(line.split()[1]), headers=[h.split(": ", 1) for h in headers], content=body)


def _problem(answer: httpx.Response) -> dict[str, Any]:
    """The document without its trace, which is a new one and the header's, too."""
    document = answer.json()
    assert document.pop("trace_id") == answer.headers["x-trace-id"]
    return {**document, "media": answer.headers["content-type"], "connection": answer.headers["connection"]}


def _refusal(status: int, code: str, title: str, detail: str) -> dict[str, Any]:
    return {
        "type": f"urn:tilewright:problem:{code}",
        "title": title,
        "status": status,
        "code": code,
        "detail": detail,
        "media": "application/problem+json",
        "connection": "close",
    }


NOT_HTTP = _refusal(
    400,
    "not-http",
    "The request is not HTTP",
    "what was sent is no HTTP/1.1 request: its line, a header or its framing is wrong",
)
TOO_LARGE = _refusal(
    431,
    "head-too-large",
    "The request's line and headers are too long",
    "a request's line and headers may have at most 65536 bytes together",
)


@pytest.mark.parametrize(
    "sent",
    [
        b"garbage\r\n\r\n",
        b"GET /livez HTTP/9.1\r\nHost: x\r\n\r\n",
        b"GET /li\x01vez HTTP/1.1\r\nHost: x\r\n\r\n",
        b"GET /livez HTTP/1.1\r\nHost: x\r\nno header\r\n\r\n",
        b"POST /v1/jobs HTTP/1.1\r\nHost: x\r\nContent-Length: 3\r\nContent-Length: 4\r\n\r\nabc",
        b"POST /v1/jobs HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\nno number\r\n",
    ],
)
def test_what_is_no_http_is_refused_by_a_problem(api: Api, sent: bytes) -> None:
    assert _problem(_asked(api.url, sent)) == NOT_HTTP


@pytest.mark.parametrize(
    "sent",
    [
        b"GET /livez HTTP/1.1\r\nHost: x\r\nLong: " + b"x" * MOST_HEAD_BYTES + b"\r\n\r\n",
        b"GET /livez HTTP/1.1\r\nHost: x\r\n" + (b"A: " + b"x" * 1000 + b"\r\n") * 66 + b"\r\n",
        b"GET /livez HTTP/1.1\r\nHost: x\r\nNever-Ends: " + b"x" * (MOST_HEAD_BYTES + 1),
        b"GET /livez?" + b"x" * MOST_HEAD_BYTES + b" HTTP/1.1\r\nHost: x\r\n\r\n",
    ],
)
def test_a_request_whose_line_and_headers_are_too_long_is_refused_by_a_problem(api: Api, sent: bytes) -> None:
    assert _problem(_asked(api.url, sent)) == TOO_LARGE


def test_headers_as_long_as_they_may_be_are_read_and_a_connection_serves_many(api: Api) -> None:
    long = b"GET /livez HTTP/1.1\r\nHost: x\r\nLong: " + b"x" * (MOST_HEAD_BYTES - 100) + b"\r\n"
    answer = _asked(api.url, (long + b"\r\n") * 2, long + b"Connection: close\r\n\r\n")
    assert (answer.status_code, answer.text.count("HTTP/1.1 200 OK")) == (200, 2)


@pytest.mark.parametrize("path", ["/v1/jobs", "/livez", "/nowhere"])
@pytest.mark.parametrize("again", [b"evil.example", b"localhost"])
@pytest.mark.parametrize("token", ["none", "good"])
def test_two_hosts_are_refused_whoever_asks_for_whatever(
    api: Api, path: str, again: bytes, token: str
) -> None:
    sent = f"GET {path} HTTP/1.1\r\nHost: localhost\r\n".encode() + b"hOST: " + again + b"\r\n"
    if token == "good":
        sent += f"Authorization: {api.token('admin')['Authorization']}\r\n".encode()
    detail = "the header Host stands 2 times in the request; send it once"
    assert _problem(_asked(api.url, sent + b"\r\n")) == {**NOT_HTTP, "detail": detail}


def test_a_request_without_a_host_is_refused_unless_it_is_of_an_older_http(api: Api) -> None:
    assert _problem(_asked(api.url, b"GET /livez HTTP/1.1\r\n\r\n")) == {
        **NOT_HTTP,
        "detail": "the request has no header Host; send it once",
    }
    assert _asked(api.url, b"GET /livez HTTP/1.0\r\n\r\n").status_code == 200


CHUNKED = b"POST /v1/jobs HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n"


def _chunks(*chunks: bytes) -> bytes:
    return b"".join(b"%x\r\n%b\r\n" % (len(chunk), chunk) for chunk in chunks) + b"0\r\n"


def test_a_field_after_the_body_is_no_header(api: Api) -> None:
    key = api.token("jobs:write")["Authorization"].encode()
    head = CHUNKED + b"Content-Type: application/json\r\nConnection: close\r\n\r\n"
    answer = _asked(api.url, head, _chunks(b"{}"), b"Authorization: " + key + b"\r\n\r\n")
    at_once = _asked(api.url, head + _chunks(b"{}") + b"Authorization: " + key + b"\r\n\r\n")
    assert (answer.status_code, at_once.status_code) == (401, 401)


@pytest.mark.parametrize(
    "field", [b"Never-Ends: " + b"x" * 1000, b"x" * 1000, b"A: " + b"x" * 997 + b"\r\nB: "]
)
def test_fields_after_the_body_that_are_too_long_are_refused_by_a_problem(api: Api, field: bytes) -> None:
    head = CHUNKED + b"Content-Type: application/json\r\nAuthorization: "
    head += api.token("jobs:write")["Authorization"].encode() + b"\r\n\r\n"
    address = urlsplit(api.url)
    with socket.create_connection((address.hostname, address.port), timeout=10) as connection:
        connection.sendall(head + _chunks(b"{}"))
        for _ in range(10):  # what was read together with the body is not counted
            connection.sendall(field * 70)
            if select.select([connection], [], [], 1.0)[0]:
                break
        assert connection.recv(65536).startswith(b"HTTP/1.1 431 ")


def test_a_body_in_many_chunks_that_come_in_pieces_is_read(api: Api) -> None:
    head = CHUNKED + b"Content-Type: application/json\r\nConnection: close\r\nAuthorization: "
    head += api.token("jobs:write")["Authorization"].encode() + b"\r\n\r\n"
    body = b'{"workload": {"op": "none"}}' + b" " * (1 << 20)
    chunks = _chunks(*(body[at : at + 5000] for at in range(0, len(body), 5000))) + b"After: all\r\n\r\n"
    pieces = [chunks[at : at + 9999] for at in range(0, len(chunks), 9999)]
    assert "unknown operator" in _asked(api.url, head, *pieces).json()["detail"]


def test_a_connection_has_few_requests_read_that_wait_for_their_turn(api: Api) -> None:
    many = b"GET /livez HTTP/1.1\r\nHost: x\r\n\r\n" * 20_000
    address = urlsplit(api.url)
    with socket.create_connection((address.hostname, address.port), timeout=1) as connection:
        with pytest.raises(TimeoutError):  # nobody reads the answers, so the server reads no more
            for _ in range(100):
                connection.sendall(many)
        read = sum(isinstance(each, RequestResponseCycle) for each in gc.get_objects())
    assert 0 < read < 20_000


def test_requests_that_were_sent_before_their_turn_are_all_answered_in_turn(api: Api) -> None:
    one = b"GET /livez HTTP/1.1\r\nHost: x\r\n"
    answer = _asked(api.url, (one + b"\r\n") * 500, one + b"Connection: close\r\n\r\n")
    assert (answer.status_code, answer.text.count("HTTP/1.1 200 OK")) == (200, 500)


def test_an_answer_that_has_begun_is_not_followed_by_a_problem() -> None:
    async def answers_before_it_reads(scope: Any, receive: Any, send: Any) -> None:
        await send({"type": "http.response.start", "status": 200, "headers": [(b"x-trace-id", b"1")]})
        await send({"type": "http.response.body", "body": b"begun", "more_body": True})
        while (await receive())["type"] == "http.request":
            pass

    head = b"POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n"
    with served(answers_before_it_reads) as url:
        address = urlsplit(url)
        with socket.create_connection((address.hostname, address.port), timeout=10) as connection:
            connection.sendall(head)
            received = b""
            while b"begun" not in received:
                received += connection.recv(65536)
            connection.sendall(b"no number\r\n")
            while chunk := connection.recv(65536):
                received += chunk
    assert received.endswith(b"\r\n\r\n5\r\nbegun\r\n")
