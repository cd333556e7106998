"""HTTP requests that are over in time, whatever the other side sends, and read no more than they may.

The time limits of the HTTP library hold for each step: a server that sends a byte now and then would keep a
call for ever.
"""

from __future__ import annotations

import contextlib
import socket
import threading
import time
from collections.abc import Callable, Mapping
from types import TracebackType
from typing import Any, Self

import httpx

# Of the library's trace: a connection to a host, and then the encrypted one in its place.
_CONNECTED = ("connect_tcp.complete", "start_tls.complete")
# The body is handed on as it was read, decoded and whole.
_FRAMING = ("content-encoding", "content-length", "transfer-encoding")


class TimeUp(Exception):
    """The whole answer did not come in time."""


class TooLong(Exception):
    """The answer has more bytes than it may."""


class BoundedHttp:
    """An HTTP client; safe to use from several threads.

    Each request has a connection of its own, so that the one to cut off is known.
    """

    def __init__(self, handler: httpx.BaseTransport | None, *, trust_env: bool) -> None:
        limits = httpx.Limits(max_keepalive_connections=0)
        self._http = httpx.Client(transport=handler, trust_env=trust_env, limits=limits)

    def request(
        self,
        method: str,
        url: str,
        *,
        seconds: float,
        most_bytes: int,
        json: Any = None,
        content: bytes | None = None,
        params: Mapping[str, Any] | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> httpx.Response:
        """The whole answer. Raises TimeUp after `seconds`, TooLong, and the library's HTTPError."""
        with _Watch(seconds) as watch:
            asked = self._http.build_request(
                method,
                url,
                json=json,
                content=content,
                params=params,
                headers=headers,
                timeout=seconds,
                extensions={"trace": watch.see},
            )
            answer = self._http.send(asked, stream=True)
            with contextlib.closing(answer):
                return whole(answer, asked, _read(answer, watch, most_bytes))

    def stream(
        self, url: str, *, params: Mapping[str, Any], headers: Mapping[str, str], timeout: httpx.Timeout
    ) -> Any:
        """A context manager of the streamed answer of a GET, which has no end in time."""
        return self._http.stream("GET", url, params=params, headers=headers, timeout=timeout)

    def close(self) -> None:
        self._http.close()


class _Watch:
    """Cuts the connection that it sees being made once `seconds` have passed, and says so in place of the
    error that this gives."""

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds
        self._ends = time.monotonic() + seconds
        self._cut: Callable[[], None] | None = None
        self._timer = threading.Timer(seconds, self._fire)
        self._timer.daemon = True

    def see(self, event: str, info: Mapping[str, Any]) -> None:
        if event.endswith(_CONNECTED):
            connection = info["return_value"].get_extra_info("socket")
            self._cut = lambda: socket.socket.shutdown(connection, socket.SHUT_RDWR)

    def check(self) -> None:
        if time.monotonic() >= self._ends:
            raise TimeUp(f"no whole answer within {self._seconds:g} s")

    def _fire(self) -> None:
        if self._cut is not None:
            with contextlib.suppress(OSError):  # it has ended by itself
                self._cut()

    def __enter__(self) -> Self:
        self._timer.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._timer.cancel()
        if isinstance(error, httpx.HTTPError):
            self.check()


def _read(answer: httpx.Response, watch: _Watch, most_bytes: int) -> bytes:
    body = bytearray()
    for chunk in answer.iter_bytes():
        watch.check()
        body += chunk
        if len(body) > most_bytes:
            raise TooLong(f"an answer of more than {most_bytes} bytes")
    watch.check()  # an answer that ends with its connection ends by the cut, too
    return bytes(body)


def whole(answer: httpx.Response, asked: httpx.Request, body: bytes) -> httpx.Response:
    """A streamed answer with the body that was read of it."""
    headers = [(name, value) for name, value in answer.headers.multi_items() if name not in _FRAMING]
    return httpx.Response(answer.status_code, headers=headers, content=body, request=asked)
