"""What is sent to the service: bodies that lie, texts that mean something to SQL, to a shell, to a terminal
or to a file system, and requests that a browser was talked into."""

from __future__ import annotations

import gzip
import json
import re
import socket
import time
from collections.abc import Iterator
from typing import Any
from urllib.parse import quote

import httpx
import pytest
from service_harness import FACTS, HARDWARE, MATMUL, Api, searched, serving

from tilewright.db import Store
from tilewright.service.settings import Settings

Json = Any
JOB = {"workload": MATMUL, "budget": {"trials": 4}, "hardware": HARDWARE}


@pytest.fixture
def admin(api: Api) -> Iterator[httpx.Client]:
    headers = api.token("admin", "worker")
    with httpx.Client(base_url=api.url, headers=headers, trust_env=False, timeout=10) as http:
        yield http


def refused(answer: httpx.Response) -> tuple[int, str]:
    """Status and word of a problem document, in which nothing of this program's inside stands."""
    assert answer.headers["content-type"] == "application/problem+json"
    assert not re.search(r"Traceback|File \"|sqlalchemy|sqlite3|psycopg", answer.text)
    return answer.status_code, answer.json()["code"]


def posted(api: Api, body: bytes, media: str | None = "application/json") -> tuple[int, str]:
    headers = {} if media is None else {"Content-Type": media}
    return refused(api.http.post("/v1/jobs", content=body, headers=headers))


# ---- bodies ----


@pytest.mark.parametrize(
    ("body", "code"),
    {
        "a name that stands twice": (b'{"workload": {}, "workload": {}}', "malformed-json"),
        "a name that stands twice deep inside": (
            b'{"workload": {"op": "matmul", "m": 1, "m": 64}}',
            "malformed-json",
        ),
        "NaN": (b'{"budget": {"seconds": NaN}}', "malformed-json"),
        "Infinity": (b'{"budget": {"seconds": -Infinity}}', "malformed-json"),
        "a number beyond every float": (b'{"budget": {"seconds": 1e999}}', "malformed-json"),
        "an integer of 5000 digits": (b'{"seed": ' + b"9" * 5000 + b"}", "malformed-json"),
        "no UTF-8": (b'{"strategy": "\xff"}', "malformed-json"),
        "UTF-16": ('{"strategy": "x"}'.encode("utf-16"), "malformed-json"),
        "half of a surrogate pair": (b'{"strategy": "\\ud800"}', "malformed-json"),
        "NUL": (b'{"strategy": "x\\u0000"}', "malformed-json"),
        "nothing but brackets": (b"[" * 100_000, "json-too-deep"),
        "300 levels": (b'{"a":' * 300 + b"1" + b"}" * 300, "json-too-deep"),
        "two documents": (b"{}{}", "malformed-json"),
        "a number": (b"1", "invalid-request"),
    }.values(),
)
def test_a_body_that_is_not_plain_json_is_refused(api: Api, body: bytes, code: str) -> None:
    status, word = posted(api, body)
    assert (400 <= status < 500, word) == (True, code)


@pytest.mark.parametrize(
    "media",
    [None, "text/plain", "application/x-www-form-urlencoded", "multipart/form-data; boundary=x", "text/json"],
)
def test_a_form_of_a_browser_is_no_request(api: Api, media: str | None) -> None:
    """What a page may send to another address without asking there first is none of these."""
    assert posted(api, json.dumps(JOB).encode(), media) == (415, "unsupported-media-type")
    assert api.store.jobs(None, None, 9).items == ()


def test_a_compressed_body_is_not_unpacked(api: Api) -> None:
    bomb = gzip.compress(b"[" + b" " * (1 << 26) + b"]")
    answer = api.http.post(
        "/v1/jobs", content=bomb, headers={"Content-Type": "application/json", "Content-Encoding": "gzip"}
    )
    assert refused(answer) == (415, "unsupported-media-type")


def test_a_body_over_the_limit_is_refused_before_it_is_sent(api: Api) -> None:
    answer = _raw(
        api,
        b"POST /v1/jobs HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
        b"Content-Length: 99999999999999999999\r\n\r\n",
    )
    assert answer.startswith(b"HTTP/1.1 413") or answer.startswith(b"HTTP/1.1 400")


def test_a_body_in_chunks_without_end_is_cut_off(api: Api) -> None:
    with socket.create_connection(_address(api), 10) as connection:
        connection.sendall(
            b"POST /v1/jobs HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
            b"Transfer-Encoding: chunked\r\n\r\n"
        )
        chunk = b"10000\r\n" + b" " * 0x10000 + b"\r\n"
        sent = 0
        try:
            while sent < 64 << 20:
                connection.sendall(chunk)
                sent += len(chunk)
                connection.settimeout(0.001)
                try:
                    if answer := connection.recv(1 << 16):
                        break
                except TimeoutError:
                    connection.settimeout(10)
        except (BrokenPipeError, ConnectionResetError):
            answer = b"HTTP/1.1 413"
    assert answer.startswith(b"HTTP/1.1 413")
    assert sent < 32 << 20


def test_a_client_that_sends_a_byte_now_and_then_holds_up_nobody(api: Api) -> None:
    slow = [socket.create_connection(_address(api), 10) for _ in range(50)]
    try:
        for connection in slow:
            connection.sendall(
                b"POST /v1/jobs HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
                b'Content-Length: 1000\r\n\r\n{"'
            )
        begun = time.monotonic()
        assert api.http.get("/v1/jobs").status_code == 200
        assert time.monotonic() - begun < 5
    finally:
        for connection in slow:
            connection.close()


def test_two_lengths_are_no_request(api: Api) -> None:
    """What proxy and server could take for different requests."""
    head = b"POST /v1/jobs HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
    for lengths in (
        b"Content-Length: 2\r\nContent-Length: 40\r\n",
        b"Content-Length: 2\r\nTransfer-Encoding: chunked, identity\r\n",
        b"Content-Length: -1\r\n",
        b"Content-Length: 1_0\r\n",
    ):
        assert _raw(api, head + lengths + b"\r\n{}").startswith(b"HTTP/1.1 4")


# ---- who asks ----


@pytest.mark.parametrize(
    "headers",
    [
        {"Host": "evil.example"},
        {"Host": "evil.example:80"},
        {"Host": "127.0.0.1.evil.example"},
        {"Host": "localhost.evil.example"},
        {"Host": "localhost@evil.example"},
        {"Host": ""},
        {"Origin": "https://evil.example"},
        {"Origin": "null"},
        {"Origin": "http://localhost.evil.example"},
        {"Origin": "http://127.0.0.1@evil.example"},
        {"X-Forwarded-For": "127.0.0.1"},
        {"Forwarded": "for=127.0.0.1"},
        {"X-Forwarded-Host": "localhost"},
    ],
)
def test_a_page_of_the_web_cannot_use_a_server_on_loopback(api: Api, headers: dict[str, str]) -> None:
    """Neither by a form, nor by a name of its own that leads to 127.0.0.1, nor through a proxy."""
    answer = api.http.post("/v1/jobs", json=JOB, headers=headers)
    assert answer.status_code in (400, 401)
    assert api.store.jobs(None, None, 9).items == ()


def test_no_answer_invites_another_origin(api: Api) -> None:
    ours = api.http.get("/v1/jobs", headers={"Origin": "http://localhost:1"})
    asked = api.http.request("OPTIONS", "/v1/jobs", headers={"Origin": "http://localhost:1"})
    for answer in (ours, asked):
        assert not [name for name in answer.headers if name.startswith("access-control-")]


def test_a_server_that_others_reach_needs_a_token_for_everything(store: Store) -> None:
    with serving(store, Settings(host="0.0.0.0")) as api:
        open_to_all = {
            path
            for path, verbs in api.http.get("/openapi.json", headers=api.token("admin"))
            .json()["paths"]
            .items()
            if api.http.request(next(iter(verbs)), re.sub(r"{\w+}", "x", path)).status_code not in (401, 403)
        }
    assert open_to_all <= {"/livez", "/readyz", "/version"}


def test_a_token_that_is_nearly_right_is_none(api: Api, store: Store) -> None:
    """Only the hash of the whole is compared: how much of a token is right changes nothing that could be
    timed."""
    _, value = store.create_token("t", ["admin"])
    wrong = [
        value[:-1],
        value + "A",
        value[:-1] + ("A" if value[-1] != "A" else "B"),
        value.upper(),
        "twk_",
        "%",
    ]
    statuses = [
        api.http.get("/v1/jobs", headers={"Authorization": f"Bearer {one}"}).status_code for one in wrong
    ]
    assert statuses == [401] * len(wrong)


def test_tokens_that_ended_are_none(api: Api, store: Store) -> None:
    _, expired = store.create_token("t", ["admin"], expires_in=0.05)
    token, revoked = store.create_token("t", ["admin"])
    store.revoke_token(token.id)
    time.sleep(0.1)
    for value in (expired, revoked):
        answer = api.http.get("/v1/jobs", headers={"Authorization": f"Bearer {value}"})
        assert refused(answer) == (401, "token-wrong")


# ---- texts ----

TEXTS = [
    "'; DROP TABLE jobs; --",
    '" OR 1=1 --',
    "1 UNION SELECT secret_sha256 FROM tokens",
    "%' OR '%'='",
    "$(reboot)",
    "`id`",
    "../../etc/passwd",
    "..%2f..%2fetc%2fpasswd",
    "/etc/passwd",
    "file:///etc/passwd",
    "http://169.254.169.254/",
    "x\r\nSet-Cookie: a=b",
    "x\nlevel=error forged=1",
    "\x1b[2J\x1b]0;owned\x07",
    "\u202eevil\u2066",
    "аdmin",  # noqa: RUF001 - a Cyrillic letter
    "x" * 5_000,
    "{{7*7}}",
    "${jndi:ldap://x}",
    "__proto__",
    "-1",
    "9" * 400,
    "1e400",
    "NaN",
    "\u0000",
    "\U000e0001",
]


def _places(document: Json) -> list[tuple[str, str, str, str]]:
    """(verb, path, where, parameter) of every parameter of every route."""
    return [
        (verb, path, parameter["in"], parameter["name"])
        for path, verbs in document["paths"].items()
        for verb, route in verbs.items()
        for parameter in route.get("parameters", [])
    ]


def _without_streams(document: Json) -> list[tuple[str, str, str, str]]:
    return [place for place in _places(document) if not place[1].endswith("/events") or place[2] == "path"]


def test_no_text_in_any_parameter_of_any_route_is_more_than_a_text(
    api: Api, admin: httpx.Client, store: Store
) -> None:
    """Of every route of the description: none answers 5xx, and none does what the text says."""
    searched(store, 2)
    before = _contents(store)
    document = api.http.get("/openapi.json").json()
    places = _without_streams(document)
    assert len(places) > 30
    for n, (verb, path, where, name) in enumerate(places):
        for text in TEXTS[n % 3 :: 3]:
            bad = quote(text, safe="")
            url = re.sub(r"{\w+}", lambda m, bad=bad, name=name: bad if m[0] == f"{{{name}}}" else "x", path)
            params = {name: text} if where == "query" else {}
            try:
                answer = admin.request(verb, url, params=params, headers=_header(where, name, text))
            except httpx.LocalProtocolError:
                continue  # no HTTP library sends this
            assert answer.status_code < 500, (verb, path, name, text, answer.text)
            assert "set-cookie" not in answer.headers
            assert b"root:" not in answer.content
    assert _contents(store) == before


def _header(where: str, name: str, text: str) -> dict[str, str]:
    return {name: text} if where == "header" and text.isascii() and text.isprintable() else {}


def _contents(store: Store) -> Json:
    return (store.jobs(None, None, 99).items, len(store.tokens()), store.hardwares())


FIELDS = {
    "/v1/jobs": (JOB, ["target", "hardware", "strategy", "history", "measure"]),
    "/v1/tokens": ({"name": "n", "scopes": ["worker"], "pool": "p"}, ["name", "pool"]),
}


@pytest.mark.parametrize("path", FIELDS)
def test_no_text_in_a_body_is_more_than_a_text(api: Api, admin: httpx.Client, path: str) -> None:
    body, names = FIELDS[path]
    for name in names:
        for text in TEXTS:
            answer = admin.post(path, json={**body, name: text})
            assert answer.status_code < 500
            if answer.is_success and name in answer.json():
                assert answer.json()[name] == text
    assert admin.get(path).status_code == 200


def test_no_text_of_a_worker_is_more_than_a_text(api: Api, admin: httpx.Client, store: Store) -> None:
    hello = {
        "protocol": api.http.get("/version").json().get("protocol", 1),
        "session": "5" * 32,
        "hardware_key": HARDWARE,
        "hardware": FACTS,
        "versions": {"codegen": "7"},
        "labels": {},
    }
    for n, text in enumerate(TEXTS):
        for name in ("name", "labels", "versions"):
            said = {"labels": {text: text}, "versions": {text: text}, "name": text}[name]
            answer = admin.post("/v1/workers", json={**hello, "name": f"w{n}", name: said})
            assert answer.status_code < 500
    assert admin.get("/v1/workers").status_code == 200


def test_what_is_not_stored_is_not_answered_with_what_was_sent_as_a_header(api: Api) -> None:
    answer = _raw(
        api, b"GET /v1/jobs/x%0d%0aX-Injected:%20yes HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n"
    )
    head = answer.split(b"\r\n\r\n")[0]
    assert head.startswith(b"HTTP/1.1 404")
    assert b"injected" not in head.lower()


@pytest.mark.parametrize(
    "path",
    ["/../etc/passwd", "//etc/passwd", "/v1/../../etc/passwd", "/%2e%2e/etc/passwd"],
)
def test_no_path_leads_to_a_file(api: Api, path: str) -> None:
    answer = _raw(api, f"GET {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n".encode())
    assert answer.startswith(b"HTTP/1.1 404")


def test_the_service_asks_nobody(api: Api, admin: httpx.Client, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever stands in a request, the server opens no connection."""
    with socket.create_server(("127.0.0.1", 0)) as trap:
        url = f"http://127.0.0.1:{trap.getsockname()[1]}/x"
        for body in ({**JOB, "target": url}, {**JOB, "workload": {"op": url}}, {**JOB, "hardware": url}):
            admin.post("/v1/jobs", json=body)
        admin.post("/v1/tokens", json={"name": url, "scopes": ["worker"], "pool": url})
        admin.get("/v1/jobs", params={"page_token": url, "state": url})
        trap.settimeout(0.3)
        with pytest.raises(TimeoutError):
            trap.accept()


def _address(api: Api) -> tuple[str, int]:
    url = httpx.URL(api.url)
    assert url.port is not None
    return url.host, url.port


def _raw(api: Api, request: bytes) -> bytes:
    """What the server answers to these very bytes."""
    with socket.create_connection(_address(api), 10) as connection:
        connection.sendall(request)
        answer = b""
        connection.settimeout(5)
        try:
            while data := connection.recv(1 << 16):
                answer += data
                if b"\r\n\r\n" in answer and b"Connection: close" not in request:
                    break
        except TimeoutError:
            pass
        return answer
