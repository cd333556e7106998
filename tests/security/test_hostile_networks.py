"""What stands between a client and its server, or in its place, gets no token and no other answer taken."""

from __future__ import annotations

from collections.abc import Callable

import httpx
import pytest

from tilewright.service.client import Client
from tilewright.service.transport import InsecureToken, Transport

SECRET = "twk_secret"
VERSION = {"service": "tilewright", "version": "0.1.0", "protocol": 1}


class Network:
    """Answers every request with `answer`, but for the handshake, and writes down who was asked with which
    token."""

    def __init__(self, answer: Callable[[httpx.Request], httpx.Response]) -> None:
        self.asked: list[tuple[str, str | None]] = []
        self.answer = answer

    def __call__(self, request: httpx.Request) -> httpx.Response:
        self.asked.append((request.url.host, request.headers.get("authorization")))
        return httpx.Response(200, json=VERSION) if request.url.path == "/version" else self.answer(request)


def transport(network: Network, url: str = "https://tune.example") -> Transport:
    return Transport(url, SECRET, insecure_http=False, timeout=5, handler=httpx.MockTransport(network))


@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
@pytest.mark.parametrize(
    "to", ["https://evil.example/v1/jobs", "http://tune.example/v1/jobs", "//evil.example/", "/v1/jobs?x"]
)
def test_a_redirect_is_not_followed(status: int, to: str) -> None:
    network = Network(lambda request: httpx.Response(status, headers={"Location": to}))
    with transport(network) as client, pytest.raises(Exception, match="without a problem document"):
        client.request("GET", "/v1/jobs")
    assert {host for host, _ in network.asked} == {"tune.example"}


def test_a_handshake_that_leads_elsewhere_is_no_handshake_and_gets_no_token() -> None:
    asked: list[tuple[str, str | None]] = []

    def elsewhere(request: httpx.Request) -> httpx.Response:
        asked.append((request.url.host, request.headers.get("authorization")))
        return httpx.Response(302, headers={"Location": "https://evil.example/version"})

    handler = httpx.MockTransport(elsewhere)
    client = Transport("https://tune.example", SECRET, insecure_http=False, timeout=5, handler=handler)
    with client, pytest.raises(Exception, match="expected a tilewright service"):
        client.request("GET", "/v1/jobs")
    assert asked == [("tune.example", None)]


@pytest.mark.parametrize(
    "url",
    [
        "http://tune.example",
        "http://10.0.0.1",
        "http://127.0.0.1.evil.example",
        "http://localhost.evil.example",
        "http://[2001:db8::1]",
        "http://0x7f.1.evil.example",
    ],
)
def test_a_token_is_not_sent_in_the_clear_to_another_machine(url: str) -> None:
    with pytest.raises(InsecureToken):
        Transport(url, SECRET, insecure_http=False, timeout=5)


@pytest.mark.parametrize("url", ["ftp://x", "file:///etc/passwd", "https://", "javascript:x", "https://x:0"])
def test_what_is_no_server_is_refused(url: str) -> None:
    with pytest.raises(ValueError, match="server's URL"):
        Client(url)


@pytest.mark.parametrize(
    "name", ["../tokens", "x/../../tokens", "x?y", "x#y", "x%2f..", "x\r\nHost: evil", "x y", ""]
)
def test_an_id_is_no_path(name: str) -> None:
    network = Network(lambda request: httpx.Response(200, json={}))
    client = Client("https://tune.example", token=SECRET, handler=httpx.MockTransport(network))
    with client, pytest.raises(ValueError, match="id"):
        client.job(name)
    assert network.asked == []


def test_an_answer_that_is_not_what_it_should_be_is_an_error_of_its_own() -> None:
    for text in ("", "[]", "null", "{", '{"id": 7}', "<html>"):
        network = Network(lambda request, text=text: httpx.Response(200, text=text))
        client = Client("https://tune.example", token=SECRET, handler=httpx.MockTransport(network))
        with client, pytest.raises((ConnectionError, ValueError, Exception)) as caught:
            client.job("job_1")
        assert SECRET not in str(caught.value)
