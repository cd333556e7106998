"""The web server's reading of HTTP, whose refusals are problem documents as all others are."""

from __future__ import annotations

import asyncio
import json
import secrets
from collections.abc import Sized
from http import HTTPStatus

from uvicorn.protocols.http.flow_control import FlowControl
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from .errors import MEDIA_TYPE, HeadTooLarge, NotHttp, ServiceError, answer

MOST_HEAD_BYTES = 64 << 10


class ProblemProtocol(HttpToolsProtocol):
    """uvicorn's protocol; beside that, it bounds a request's line and headers, which the parser keeps however
    long they are, and the fields after a body in chunks (trailers), which it takes for headers: those are
    forgotten, for whoever stands before this server has not seen them when it passes the headers on. A
    request says once for which Host it is."""

    _in_head = False
    _head_bytes = 0
    _other_ended = False
    _refusal: ServiceError | None = None
    _in_trailers = False
    _trailer_bytes = 0

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self.flow = _OneReadAhead(transport, self.pipeline)

    def data_received(self, data: bytes) -> None:
        self._other_ended = False
        self._trailer_bytes += len(data)
        super().data_received(data)
        if self._in_trailers and self._trailer_bytes > MOST_HEAD_BYTES and not self.transport.is_closing():
            self._refuse(_too_large())
            return
        if not self._in_head or self._other_ended or self.transport.is_closing():
            return  # how many bytes are of a head that followed another request is not known
        self._head_bytes += len(data)
        if self._head_bytes > MOST_HEAD_BYTES:
            self._refuse(_too_large())

    def on_message_begin(self) -> None:
        super().on_message_begin()
        self._in_head, self._head_bytes = True, 0

    def on_header(self, name: bytes, value: bytes) -> None:
        if self._in_head:
            super().on_header(name, value)

    def on_chunk_header(self) -> None:
        # Its bytes follow, or it is the last one and has none: then trailers do. Of the bytes read with it,
        # some are the chunk's own or older, so the count begins with the next ones.
        self._in_trailers, self._trailer_bytes = True, 0

    def on_body(self, body: bytes) -> None:
        self._in_trailers = False
        super().on_body(body)

    def on_message_complete(self) -> None:
        self._other_ended = True
        self._in_trailers = False
        super().on_message_complete()

    def on_headers_complete(self) -> None:
        self._in_head = False
        if len(self.url) + sum(len(name) + len(value) for name, value in self.headers) > MOST_HEAD_BYTES:
            self._refusal = _too_large()
        else:
            hosts = sum(name == b"host" for name, _ in self.headers)
            self._refusal = _wrong_host(hosts, self.parser.get_http_version())
        if self._refusal is not None:
            raise self._refusal  # the parser ends by it, and asks for the response below
        super().on_headers_complete()

    def send_400_response(self, msg: str) -> None:
        self._refuse(
            self._refusal
            or NotHttp("what was sent is no HTTP/1.1 request: its line, a header or its framing is wrong")
        )

    def _refuse(self, error: ServiceError) -> None:
        """Answer, unless an answer has begun, and close: where the next request begins is not known."""
        if self.cycle is None or not self.cycle.response_started or self.cycle.response_complete:
            made = answer(error, secrets.token_hex(16))
            body = json.dumps(made.body).encode()
            lines = [
                f"HTTP/1.1 {made.status} {HTTPStatus(made.status).phrase}",
                f"content-type: {MEDIA_TYPE}",
                f"content-length: {len(body)}",
                f"x-trace-id: {made.body['trace_id']}",
                "connection: close",
            ]
            self.transport.write("\r\n".join(lines).encode() + b"\r\n\r\n" + body)
        self.transport.close()


class _OneReadAhead(FlowControl):
    """Reads nothing while requests wait that were sent ahead of the answers to others: what waits would grow
    for as long as a client sends and reads nothing."""

    def __init__(self, transport: asyncio.Transport, waiting: Sized) -> None:
        super().__init__(transport)
        self._waiting = waiting

    def resume_reading(self) -> None:
        if not self._waiting:
            super().resume_reading()


def _wrong_host(hosts: int, version: str) -> NotHttp | None:
    """RFC 9112, section 3.2: two Host headers are refused, and so is a request of HTTP/1.1 without one."""
    if hosts > 1:
        return NotHttp(f"the header Host stands {hosts} times in the request; send it once")
    if hosts == 0 and version == "1.1":
        return NotHttp("the request has no header Host; send it once")
    return None


def _too_large() -> HeadTooLarge:
    return HeadTooLarge(f"a request's line and headers may have at most {MOST_HEAD_BYTES} bytes together")
