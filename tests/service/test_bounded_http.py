"""Servers that answer for ever, or too much."""

from __future__ import annotations

import contextlib
import socket
import threading
import time
import zlib
from collections.abc import Callable, Iterator

import httpx
import pytest
from service_harness import Api

from tilewright.measure.messages import NotATilewright, SourceUnreachable
from tilewright.service.bounded_http import BoundedHttp, TimeUp, TooLong
from tilewright.service.client import Client

HEAD = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n"
VERSION = HEAD + b'Content-Length: 24\r\n\r\n{"service":"tilewright"}'


@contextlib.contextmanager
def _answering(answer: Callable[[bytes], tuple[bytes, bytes]]) -> Iterator[str]:
    """A TCP server; `answer` gives, for a request, what is sent at once and what is repeated for ever."""
    over = threading.Event()
    threads: list[threading.Thread] = []

    def converse(connection: socket.socket) -> None:
        with connection, contextlib.suppress(OSError):
            first, again = answer(connection.recv(65536))
            connection.sendall(first)
            while again and not over.wait(0.05):
                connection.sendall(again)

    def accept() -> None:
        while not over.is_set():
            with contextlib.suppress(TimeoutError):
                threads.append(threading.Thread(target=converse, args=(listener.accept()[0],)))
                threads[-1].start()

    with socket.create_server(("127.0.0.1", 0)) as listener:
        listener.settimeout(0.05)
        accepting = threading.Thread(target=accept)
        accepting.start()
        try:
            yield f"http://127.0.0.1:{listener.getsockname()[1]}"
        finally:
            over.set()
            for thread in (accepting, *threads):
                thread.join()


def _drips(*paths: bytes) -> Callable[[bytes], tuple[bytes, bytes]]:
    """A tilewright server whose answers at these paths are begun with 200, and never end."""

    def answer(request: bytes) -> tuple[bytes, bytes]:
        path = request.split(b" ")[1]
        return (HEAD + b"\r\n", b" ") if path in paths else (VERSION, b"")

    return answer


@pytest.fixture
def http() -> Iterator[BoundedHttp]:
    bounded = BoundedHttp(None, trust_env=False)
    yield bounded
    bounded.close()


def test_an_answer_whose_body_never_ends_is_given_up_in_time(http: BoundedHttp) -> None:
    with _answering(_drips(b"/")) as url, pytest.raises(TimeUp):
        begun = time.monotonic()
        http.request("GET", f"{url}/", seconds=0.5, most_bytes=1000)
    assert time.monotonic() - begun < 1.5


def test_an_answer_whose_headers_never_end_is_given_up_in_time(http: BoundedHttp) -> None:
    with _answering(lambda request: (HEAD + b"X: ", b"x")) as url, pytest.raises(TimeUp) as late:
        http.request("GET", url, seconds=0.5, most_bytes=1000)
    assert str(late.value) == "no whole answer within 0.5 s"


def test_an_answer_that_is_too_long_is_not_read_to_its_end(http: BoundedHttp) -> None:
    with _answering(lambda request: (HEAD + b"\r\n", b"x" * 600)) as url, pytest.raises(TooLong) as long:
        http.request("GET", url, seconds=5, most_bytes=1000)
    assert str(long.value) == "an answer of more than 1000 bytes"


def test_an_answer_that_comes_in_time_is_whole(http: BoundedHttp) -> None:
    with _answering(_drips()) as url:
        answer = http.request("GET", url, seconds=5, most_bytes=1000)
    assert (answer.status_code, answer.json()) == (200, {"service": "tilewright"})


def test_a_compressed_answer_is_read_as_what_it_was() -> None:
    compressed = httpx.Response(200, headers={"content-encoding": "deflate"}, content=zlib.compress(b"aaaa"))
    http = BoundedHttp(httpx.MockTransport(lambda request: compressed), trust_env=False)
    assert http.request("GET", "http://a/", seconds=5, most_bytes=1000).text == "aaaa"
    http.close()


def test_a_server_that_drips_at_the_handshake_is_named_with_what_was_tried() -> None:
    with _answering(_drips(b"/version")) as url, Client(url, timeout=0.5) as client:
        with pytest.raises(SourceUnreachable) as late:
            client.operators()
        assert str(late.value) == (
            f"{url} gave no whole answer to GET /version within 0.5 s; is it the address of a tilewright "
            "server?"
        )


def test_a_server_that_drips_later_is_named_with_what_was_tried() -> None:
    with _answering(_drips(b"/v1/operators")) as url, Client(url, timeout=0.5) as client:
        begun = time.monotonic()
        with pytest.raises(SourceUnreachable) as late:
            client.operators()
        assert (str(late.value), time.monotonic() - begun < 2) == (
            f"{url} gave no whole answer to GET /v1/operators within 0.5 s",
            True,
        )


def test_something_that_says_too_much_at_the_handshake_is_no_tilewright() -> None:
    with _answering(lambda request: (HEAD + b"\r\n", b"x" * 65536)) as url, Client(url) as client:
        with pytest.raises(NotATilewright) as found:
            client.operators()
        assert str(found.value) == (
            f"expected a tilewright service at {url}, found an answer of more than 65536 bytes at /version"
        )


def test_the_tries_of_one_call_share_its_time() -> None:
    def answer(request: httpx.Request) -> httpx.Response:
        if request.url.path == "/version":
            return httpx.Response(200, json={"service": "tilewright"})
        raise httpx.ReadError("reset")

    begun = time.monotonic()
    opened = Client("http://127.0.0.1:1", handler=httpx.MockTransport(answer), timeout=0.3)
    with opened as client, pytest.raises(SourceUnreachable):
        client.operators()
    assert time.monotonic() - begun < 0.6


def test_a_call_that_is_over_leaves_no_timer_behind(api: Api) -> None:
    with Client(api.url) as client:
        client.operators()
    time.sleep(0.1)
    assert not [thread for thread in threading.enumerate() if isinstance(thread, threading.Timer)]
