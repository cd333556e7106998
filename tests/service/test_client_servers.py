"""What a client does where a server is out of reach, is another one, or is not to see its token."""

from __future__ import annotations

import contextlib
import socket
import threading
import time
from collections.abc import Iterator
from typing import Any

import httpx
import pytest
from service_harness import (
    HEX,
    served,
)

from tilewright.measure.messages import (
    NotATilewright,
    SourceUnreachable,
)
from tilewright.service.client import Client, InsecureToken


@contextlib.contextmanager
def _listening(answer: bytes | None) -> Iterator[str]:
    """A TCP server that is not tilewright: it accepts, and sends `answer`, if anything, to whoever speaks."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        listener.settimeout(0.1)
        over = threading.Event()

        def serve() -> None:
            connections = []
            while not over.is_set():
                with contextlib.suppress(TimeoutError):
                    connection, _ = listener.accept()
                    connections.append(connection)
                    if answer is not None:
                        connection.recv(65536)
                        connection.sendall(answer)
                        connection.close()
            for connection in connections:
                connection.close()

        thread = threading.Thread(target=serve)
        thread.start()
        yield f"http://127.0.0.1:{listener.getsockname()[1]}"
        over.set()
        thread.join()


def _closed_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        return int(listener.getsockname()[1])


def test_a_closed_port_is_unreachable_naming_it() -> None:
    url = f"http://127.0.0.1:{_closed_port()}"
    with Client(url) as client, pytest.raises(SourceUnreachable) as unreachable:
        client.job("job_1")
    assert str(unreachable.value) == f"nothing answers at {url}: [Errno 111] Connection refused"


def test_looking_a_schedule_up_where_nobody_answers_takes_at_most_a_second() -> None:
    with _listening(None) as url, Client(url) as client:
        begun = time.monotonic()
        with pytest.raises(ConnectionError):
            client.best(HEX, HEX, HEX)
        assert time.monotonic() - begun < 1.0


async def _elsewhere(scope: Any, receive: Any, send: Any) -> None:
    headers = [(b"content-type", b"text/html")]
    await send({"type": "http.response.start", "status": 404, "headers": headers})
    await send({"type": "http.response.body", "body": b"<h1>Not here</h1>"})


def test_another_http_server_is_recognised_and_described() -> None:
    with served(_elsewhere) as url, Client(url) as client:
        with pytest.raises(NotATilewright) as found:
            client.jobs().__next__()
        assert str(found.value) == (
            f"expected a tilewright service at {url}, found an HTTP server (uvicorn) that answers 404 with "
            "text/html at /version"
        )


def test_a_compiler_that_asks_another_server_is_told_like_one_that_reaches_none() -> None:
    with served(_elsewhere) as url, Client(url) as client:
        with pytest.raises(ConnectionError) as found:
            client.best(HEX, HEX, HEX)
        assert str(found.value).startswith(f"expected a tilewright service at {url}, found an HTTP server")


def test_a_server_that_speaks_no_http_is_recognised() -> None:
    with _listening(b"220 mail.example ESMTP\r\n\r\n") as url, Client(url) as client:
        with pytest.raises(NotATilewright) as found:
            client.job("job_1")
        assert str(found.value).startswith(
            f"expected a tilewright service at {url}, found something that does not speak HTTP"
        )


@pytest.mark.parametrize(
    "answer", [b"", b"SSH-2.0-OpenSSH_9.2\r\n", b"HTTP/1.1 200 OK\r\nContent-Length: 50\r\n\r\n{"]
)
def test_a_connection_that_breaks_before_its_answer_is_one_to_a_server_out_of_reach(answer: bytes) -> None:
    """A balancer whose servers are down, or a server that is killed; a worker then tries again."""
    with _listening(answer) as url, Client(url) as client:
        with pytest.raises(SourceUnreachable) as found:
            client.job("job_1")
        said = str(found.value)
        assert said.startswith(f"the connection broke at {url}: ")
        assert said.endswith("; its server is not up, or does not speak HTTP")


def test_a_server_that_says_nothing_is_given_up_in_time() -> None:
    with _listening(None) as url, Client(url) as client:
        begun = time.monotonic()
        with pytest.raises(SourceUnreachable):
            client.job("job_1")
        assert time.monotonic() - begun < 5


def test_a_token_is_not_shown_to_what_is_not_tilewright() -> None:
    seen: list[httpx.Headers] = []

    def elsewhere(request: httpx.Request) -> httpx.Response:
        seen.append(request.headers)
        return httpx.Response(200, json={"service": "other"})

    with (
        Client("https://tune.example", "secret", handler=httpx.MockTransport(elsewhere)) as client,
        pytest.raises(NotATilewright),
    ):
        client.job("job_1")
    assert ["authorization" in headers for headers in seen] == [False]


def test_a_token_is_not_sent_over_http_to_another_machine() -> None:
    with pytest.raises(InsecureToken) as refused:
        Client("http://tune.example", "secret")
    assert str(refused.value) == (
        "refusing to send the token over http to tune.example: anyone on the way can read it; "
        "use https, or allow it with --insecure-http (insecure_http=True)"
    )


@pytest.mark.parametrize("url", ["https://tune.example", "http://localhost:1", "http://[::1]:1"])
def test_a_token_is_sent_over_https_and_to_this_machine(url: str) -> None:
    Client(url, "secret").close()


def test_insecure_http_can_be_allowed() -> None:
    Client("http://tune.example", "secret", insecure_http=True).close()


@pytest.mark.parametrize("url", ["tune.example", "ftp://tune.example", "http://", "http://host:port"])
def test_what_is_no_url_of_a_server_is_refused(url: str) -> None:
    with pytest.raises(ValueError, match="URL"):
        Client(url)
